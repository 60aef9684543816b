//! The listener: accepts connections, lets each prove who it is, and turns its bytes into messages.
//!
//! A stranger costs one task and its TLS state until it fails, for at most
//! [`limits::HANDSHAKE_TIME_MAX`], and takes no worker's place: only the engine gives those. When
//! there are too many strangers the one that has dallied longest goes, so that connections which
//! say nothing cannot keep out a worker, which takes milliseconds to say who it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use musec_core::fleet::Closed;
use musec_protocol::{
    Answer, FromWorker, Hello, LaunchId, PREAMBLE_BYTES, Preamble, ProtocolError, Refusal, VERSION,
    limits,
};
use musec_trace::{CClock, CTime};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::connection::{Connection, ConnectionError, Incoming};
use crate::engine::SharedEngine;

/// Pause after the system refused to accept, so that a lack of descriptors does not become a spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The system's refusals are told this often at most; the report counts them all.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// A peer that has proved who it is, and wants to join.
pub(crate) struct Knock {
    pub(crate) connection: Rc<Connection>,
    pub(crate) preamble: Preamble,
    pub(crate) tcp: CTime,
    pub(crate) tls: CTime,
    pub(crate) t3: CTime,
    pub(crate) hello: Hello,
}

/// Accepts for as long as it is polled.
pub(crate) async fn accept_all(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    clock: CClock,
    engine: SharedEngine,
    strangers_max: usize,
) {
    let strangers = Strangers::new(strangers_max);
    let mut quiet_until = CTime::ZERO;
    loop {
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                let now = clock.now();
                if now >= quiet_until {
                    tracing::warn!("cannot accept connections: {error}");
                    quiet_until = now.after(WARN_EVERY);
                }
                engine.refused("system refused to accept");
                // What it lacks is most likely descriptors, and strangers have some.
                strangers.turn_away_oldest();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let tcp = clock.now();
        if strangers.make_room() {
            engine.refused("too many unauthenticated");
        }
        let (place, number) = strangers.place();
        let serving = serve(socket, Arc::clone(&config), clock, tcp, place, engine.clone());
        strangers.is_served(number, tokio::task::spawn_local(serving).abort_handle());
    }
}

/// The connections that have not proved who they are, in the order of their coming.
#[derive(Clone)]
struct Strangers {
    served: Rc<RefCell<BTreeMap<u64, AbortHandle>>>,
    next: Cell<u64>,
    /// At most [`limits::UNAUTHENTICATED_MAX`].
    max: usize,
}

impl Strangers {
    fn new(max: usize) -> Self {
        Self { served: Rc::default(), next: Cell::default(), max }
    }

    /// Turns away the oldest if there is no room for one more; whether that was needed.
    fn make_room(&self) -> bool {
        if self.served.borrow().len() < self.max {
            return false;
        }
        self.turn_away_oldest();
        true
    }

    fn turn_away_oldest(&self) {
        let oldest = self.served.borrow_mut().pop_first();
        if let Some((_, oldest)) = oldest {
            oldest.abort();
        }
    }

    fn place(&self) -> (Place, u64) {
        let number = self.next.get();
        self.next.set(number + 1);
        (Place { served: Rc::clone(&self.served), number }, number)
    }

    fn is_served(&self, number: u64, task: AbortHandle) {
        self.served.borrow_mut().insert(number, task);
    }
}

/// One of the places for connections that have not proved who they are; given back when dropped.
struct Place {
    served: Rc<RefCell<BTreeMap<u64, AbortHandle>>>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.served.borrow_mut().remove(&self.number);
    }
}

async fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    clock: CClock,
    tcp: CTime,
    place: Place,
    engine: SharedEngine,
) {
    let mut incoming = Incoming::new(PREAMBLE_BYTES);
    let introduced = introduce(socket, config, clock, &mut incoming);
    let introduced = tokio::time::timeout(limits::HANDSHAKE_TIME_MAX, Box::pin(introduced));
    let (connection, tls, t3, preamble, hello) = match introduced.await {
        Ok(Ok(introduced)) => introduced,
        Ok(Err(error)) => {
            tracing::info!("refused a connection: {error}");
            engine.refused(reason(&error));
            return;
        }
        Err(_) => {
            engine.refused("handshake timeout");
            return;
        }
    };
    drop(place);
    let knock = Knock { connection: Rc::clone(&connection), preamble, tcp, tls, t3, hello };
    if engine.knock(knock) {
        let why = forward(&connection, &mut incoming, preamble.launch, &engine).await;
        engine.closed(preamble.launch, clock.now(), why);
    }
}

type Introduced = (Rc<Connection>, CTime, CTime, Preamble, Hello);

async fn introduce(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    clock: CClock,
    incoming: &mut Incoming,
) -> Result<Introduced, ConnectionError> {
    let connection = Rc::new(Connection::new(socket, config, clock)?);
    connection.handshake().await?;
    let tls = clock.now();
    loop {
        let t3 = connection.read(incoming).await?;
        let Some(preamble) = incoming.preamble() else { continue };
        let preamble = Preamble::from_bytes(&preamble)?;
        if !preamble.is_spoken() {
            let refusal = Some(Refusal::Version);
            connection.send(&Answer { version: VERSION, refusal }.to_bytes())?;
            connection.close();
            return Err(version(preamble).into());
        }
        let Some(frame) = incoming.frames.next_frame()? else { continue };
        let FromWorker::Hello(hello) = FromWorker::decode(frame)? else {
            return Err(malformed("another message before its hello").into());
        };
        incoming.frames.limit(limits::FRAME_BYTES_MAX);
        return Ok((connection, tls, t3, preamble, hello));
    }
}

const fn malformed(why: &'static str) -> ProtocolError {
    ProtocolError::Malformed { what: "connection", why }
}

const fn version(preamble: Preamble) -> ProtocolError {
    let (min, max) = (preamble.version_min, preamble.version_max);
    ProtocolError::Version { min, max, ours: VERSION }
}

/// Hands on frames until the connection ends, and says why it did. A worker that floods gives way
/// after each read, and its socket fills up.
async fn forward(
    connection: &Connection,
    incoming: &mut Incoming,
    launch: LaunchId,
    engine: &SharedEngine,
) -> Closed {
    let mut t3 = connection.now();
    loop {
        if let Err(error) = engine.frames(launch, t3, &mut incoming.frames) {
            return Closed::Protocol(error.to_string());
        }
        connection.give_way().await;
        match connection.read(incoming).await {
            Ok(stamp) => t3 = stamp,
            Err(ConnectionError::Protocol(error)) => return Closed::Protocol(error.to_string()),
            Err(error) => return Closed::Lost(error.to_string()),
        }
    }
}

/// The reason as it is counted in reports: few, so that strangers cannot grow the table.
fn reason(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::Closed => "closed before its hello",
        ConnectionError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "closed before its hello"
        }
        ConnectionError::Io(_) => "connection broken before its hello",
        ConnectionError::NotReading => "does not read",
        ConnectionError::Protocol(ProtocolError::Version { .. }) => Refusal::Version.reason(),
        ConnectionError::Protocol(ProtocolError::FrameTooLong { .. }) => "frame above the limit",
        ConnectionError::Protocol(_) => "not musec inside TLS",
        ConnectionError::Tls(error) => tls_reason(error),
    }
}

fn tls_reason(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::NoCertificatesPresented => "no certificate",
        rustls::Error::InvalidCertificate(_) => "certificate of another run",
        rustls::Error::InvalidMessage(_) => "not TLS",
        rustls::Error::NoApplicationProtocol => "another application protocol",
        rustls::Error::PeerIncompatible(_) => "incompatible TLS",
        _ => "TLS failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn idle(place: Place) {
        std::future::pending::<()>().await;
        drop(place);
    }

    #[test]
    fn the_stranger_that_has_dallied_longest_makes_room_for_the_newest() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let strangers = Strangers::new(limits::UNAUTHENTICATED_MAX);
            let mut tasks = Vec::new();
            for count in 0..limits::UNAUTHENTICATED_MAX + 3 {
                let is_full = count >= limits::UNAUTHENTICATED_MAX;
                assert_eq!(strangers.make_room(), is_full, "{count} came before");
                let (place, number) = strangers.place();
                let task = tokio::task::spawn_local(idle(place));
                strangers.is_served(number, task.abort_handle());
                tasks.push(task);
            }
            let mut later = tasks.split_off(3);
            for turned_away in tasks {
                assert!(turned_away.await.is_err_and(|error| error.is_cancelled()));
            }
            assert!(!later.iter().any(tokio::task::JoinHandle::is_finished));
            let leaving = later.swap_remove(7);
            leaving.abort();
            assert!(leaving.await.is_err());
            assert!(!strangers.make_room(), "one has left by itself");
        });
    }
}
