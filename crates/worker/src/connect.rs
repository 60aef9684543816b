//! From a ticket to a welcome: TCP, TLS 1.3 with both sides' certificates, the frozen handshake.
//!
//! In: the ticket. Out: a connection over which the coordinator has accepted this attempt.
//! Invariant: nothing but the ticket's own authority is trusted, and nothing is read beyond the
//! limits of the protocol.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use musec_protocol::limits::HANDSHAKE_TIME_MAX;
use musec_protocol::{
    ALPN, ANSWER_BYTES, Answer, FrameDecoder, FromWorker, Preamble, Ticket, ToWorker, Welcome,
    begin_frame, end_frame,
};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::clock::WClock;
use crate::{WorkerError, facts};

/// Bytes taken from the connection at a time: a command fits, and a worker stays small.
pub(crate) const READ_BYTES: usize = 16 << 10;

/// A connection on which the coordinator has welcomed this attempt.
pub(crate) struct Connected {
    pub(crate) stream: TlsStream<TcpStream>,
    /// Holds what came after the welcome.
    pub(crate) decoder: FrameDecoder,
    pub(crate) welcome: Welcome,
}

/// How long a worker tries again whose connection is broken off before it was let in: a coordinator
/// that is besieged by strangers, or short of descriptors, has room again soon.
const TRY_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Before the second try; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// As [`connect`], and again where the connection was broken off without a word: the ticket is
/// still good then. A coordinator that is gone, or that refuses, is believed at once.
///
/// # Errors
/// Those of the last try.
pub(crate) async fn connect_patiently(
    ticket: &Ticket,
    clock: WClock,
) -> Result<Connected, WorkerError> {
    let from = clock.now();
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match Box::pin(connect(ticket, clock)).await {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        let is_over = Duration::from_nanos(clock.now().since(from)) + pause > TRY_AGAIN_MAX;
        if is_over || !is_broken_off(&error) {
            return Err(error);
        }
        tracing::info!("trying again: {error}");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// Whether the other side went away in the middle of the handshake, without saying why.
fn is_broken_off(error: &WorkerError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let WorkerError::Handshake { source, .. } = error else { return false };
    matches!(source.kind(), ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof)
}

/// Connects to the first address of the ticket that answers, and says hello.
///
/// # Errors
/// If no address answers, the other side is not this run's coordinator, or it refuses.
pub(crate) async fn connect(ticket: &Ticket, clock: WClock) -> Result<Connected, WorkerError> {
    let config = Arc::new(client_config(ticket).map_err(WorkerError::Keys)?);
    let mut last = None;
    for address in &ticket.addresses {
        let tcp = tokio::time::timeout(HANDSHAKE_TIME_MAX, TcpStream::connect(address));
        match tcp.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(tcp) => {
                let limit = HANDSHAKE_TIME_MAX;
                let greeting = greet(tcp, config, ticket, address, clock);
                return tokio::time::timeout(limit, Box::pin(greeting)).await.unwrap_or_else(
                    |_| Err(WorkerError::HandshakeTime { address: address.clone(), limit }),
                );
            }
            Err(source) => last = Some((address, source)),
        }
    }
    let (address, source) = last.map_or_else(
        || (String::new(), io::ErrorKind::AddrNotAvailable.into()),
        |(address, source)| (address.clone(), source),
    );
    Err(WorkerError::Connect { address, source })
}

fn client_config(ticket: &Ticket) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(ticket.ca_der.as_slice()))?;
    let certificate = CertificateDer::from(ticket.certificate_der.clone());
    let key = PrivatePkcs8KeyDer::from(ticket.key_pkcs8.clone());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key.into())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

async fn greet(
    tcp: TcpStream,
    config: Arc<ClientConfig>,
    ticket: &Ticket,
    address: &str,
    clock: WClock,
) -> Result<Connected, WorkerError> {
    let failed = |source| WorkerError::Handshake { address: address.to_owned(), source };
    tcp.set_nodelay(true).map_err(failed)?;
    let name = ServerName::try_from(Ticket::coordinator_name(ticket.run))
        .map_err(|error| failed(io::Error::other(error)))?;
    let mut stream = TlsConnector::from(config).connect(name, tcp).await.map_err(failed)?;
    if stream.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(failed(io::Error::other("it does not speak musec's protocol")));
    }
    let first = first_bytes(ticket, clock)?;
    stream.write_all(&first).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let mut answer = [0; ANSWER_BYTES];
    stream.read_exact(&mut answer).await.map_err(failed)?;
    if let Some(refusal) = Answer::from_bytes(&answer)?.refusal {
        return Err(WorkerError::Refused(refusal));
    }
    let mut decoder = FrameDecoder::default();
    let welcome = read_welcome(&mut stream, &mut decoder).await?.map_err(failed)?;
    Ok(Connected { stream, decoder, welcome })
}

/// The preamble and the hello.
fn first_bytes(ticket: &Ticket, clock: WClock) -> Result<Vec<u8>, WorkerError> {
    let mut bytes = Preamble::new(ticket.run, ticket.launch).to_bytes().to_vec();
    let mut hello = facts::hello();
    let frame = begin_frame(&mut bytes);
    facts::stamp(&mut hello, clock);
    FromWorker::Hello(hello).encode(&mut bytes);
    end_frame(&mut bytes, frame)?;
    Ok(bytes)
}

async fn read_welcome(
    stream: &mut TlsStream<TcpStream>,
    decoder: &mut FrameDecoder,
) -> Result<io::Result<Welcome>, WorkerError> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if let Some(frame) = decoder.next_frame()? {
            return match ToWorker::decode(frame)? {
                ToWorker::Welcome(welcome) => Ok(Ok(welcome)),
                ToWorker::Command(_) => Err(WorkerError::Unexpected("a command before a welcome")),
                ToWorker::Ping(_) => Err(WorkerError::Unexpected("a heartbeat before a welcome")),
            };
        }
        match stream.read(&mut buffer).await {
            Ok(0) => return Ok(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => decoder.push(&buffer[..count]),
            Err(error) => return Ok(Err(error)),
        }
    }
}
