//! A peer of our own making: says what it likes, over the same TLS as a worker.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use musec_protocol::{
    ALPN, ANSWER_BYTES, Answer, ClockKind, Command, CommandId, FrameDecoder, FromWorker, Hello,
    LaunchId, Outcome, Pong, Preamble, Refusal, Reply, RunId, Ticket, ToWorker, WTime, begin_frame,
    end_frame,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Nothing here takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// No peer is to be there for longer: who misbehaves is sent away.
const LIFE: Duration = Duration::from_secs(90);

/// What a peer proves itself with.
pub(crate) enum Proof {
    /// The certificate of this ticket.
    Ticket,
    /// None.
    Nothing,
    /// A certificate of the same name, by another authority.
    AnotherRun,
}

pub(crate) struct Peer {
    stream: StreamOwned<ClientConnection, TcpStream>,
    decoder: FrameDecoder,
    since: Instant,
}

/// TLS as a worker with this ticket would speak it.
pub(crate) fn tls(ticket: &Ticket, proof: &Proof) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(ticket.ca_der.clone())).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots);
    let mut config = match proof {
        Proof::Nothing => config.with_no_client_auth(),
        Proof::Ticket => {
            let certificate = CertificateDer::from(ticket.certificate_der.clone());
            let key = PrivatePkcs8KeyDer::from(ticket.key_pkcs8.clone());
            config.with_client_auth_cert(vec![certificate], key.into()).expect("a certificate")
        }
        Proof::AnotherRun => {
            let (certificate, key) = of_another_run(ticket);
            config.with_client_auth_cert(vec![certificate], key.into()).expect("a certificate")
        }
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    let name = ServerName::try_from(Ticket::coordinator_name(ticket.run)).expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("TLS")
}

fn of_another_run(ticket: &Ticket) -> (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>) {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
    let name = Ticket::attempt_name(ticket.run, ticket.launch);
    let params = CertificateParams::new(vec![name]).expect("names");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &authority.expect("an authority")).expect("signed");
    (certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()))
}

pub(crate) fn connect(ticket: &Ticket) -> TcpStream {
    let tcp = TcpStream::connect(&ticket.addresses[0]).expect("the coordinator listens");
    tcp.set_nodelay(true).expect("no delay");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tcp.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    tcp
}

impl Peer {
    pub(crate) fn new(ticket: &Ticket, proof: &Proof) -> Self {
        let stream = StreamOwned::new(tls(ticket, proof), connect(ticket));
        Self { stream, decoder: FrameDecoder::default(), since: Instant::now() }
    }

    /// A worker that was let in and has been welcomed.
    pub(crate) fn joined(ticket: &Ticket) -> Self {
        let mut peer = Self::new(ticket, &Proof::Ticket);
        assert_eq!(peer.knock(ticket.run, ticket.launch), None, "an awaited attempt is let in");
        assert!(matches!(peer.hear(), Some(ToWorker::Welcome(_))));
        peer
    }

    /// Preamble and hello; the coordinator's refusal.
    pub(crate) fn knock(&mut self, run: RunId, launch: LaunchId) -> Option<Refusal> {
        let mut bytes = Preamble::new(run, launch).to_bytes().to_vec();
        frame(&FromWorker::Hello(hello()), &mut bytes);
        self.write(&bytes).expect("said");
        let mut answer = [0; ANSWER_BYTES];
        self.stream.read_exact(&mut answer).expect("an answer");
        Answer::from_bytes(&answer).expect("an answer").refusal
    }

    /// Bytes inside TLS.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        assert!(self.since.elapsed() < LIFE, "the coordinator still listens to this peer");
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    pub(crate) fn say(&mut self, message: &FromWorker) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        frame(message, &mut bytes);
        self.write(&bytes)
    }

    /// The next message; none when the coordinator has closed.
    pub(crate) fn hear(&mut self) -> Option<ToWorker> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            assert!(self.since.elapsed() < LIFE, "the coordinator still talks to this peer");
            if let Some(frame) = self.decoder.next_frame().expect("a frame") {
                return Some(ToWorker::decode(frame).expect("a message"));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(bytes) => self.decoder.push(&buffer[..bytes]),
                Err(error) if is_timeout(&error) => panic!("the coordinator says nothing"),
                Err(_) => return None,
            }
        }
    }

    /// The next command; heartbeats before it are answered.
    pub(crate) fn command(&mut self) -> Option<Command> {
        loop {
            match self.hear()? {
                ToWorker::Command(command) => return Some(command),
                ToWorker::Ping(seq) => drop(self.say(&pong(seq))),
                ToWorker::Welcome(_) => panic!("a second welcome"),
            }
        }
    }

    /// Waits until the coordinator has closed the connection.
    pub(crate) fn awaits_hangup(mut self) {
        while self.hear().is_some() {}
    }

    pub(crate) fn hello_again(&mut self) -> std::io::Result<()> {
        self.say(&FromWorker::Hello(hello()))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.stream.sock
    }
}

pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// Appends a framed message.
pub(crate) fn frame(message: &FromWorker, bytes: &mut Vec<u8>) {
    let start = begin_frame(bytes);
    message.encode(bytes);
    end_frame(bytes, start).expect("short enough");
}

fn hello() -> Hello {
    Hello {
        host: b"rogue".to_vec(),
        boot_id: String::new(),
        time_namespace: String::new(),
        pid: 1,
        clock: ClockKind::MonotonicRaw,
        encoded: WTime::from_ns(1),
        clock_gap_ns: 0,
        wall_ns: 0,
        cpus: 1,
        memory_bytes: 1,
        version: "rogue".into(),
        facts: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn pong(seq: u64) -> FromWorker {
    let at = WTime::from_ns(1);
    FromWorker::Pong(Pong { seq, received: at, encoded: at, clock_gap_ns: 0 })
}

pub(crate) fn reply(id: CommandId) -> Reply {
    let at = WTime::from_ns(1);
    let bare = Reply::bare(id, Outcome::Ok);
    Reply { received: at, started: at, finished: at, encoded: at, ..bare }
}

pub(crate) fn answer(id: CommandId) -> FromWorker {
    FromWorker::Reply(reply(id))
}
