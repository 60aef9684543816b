//! One connection: TLS over a socket, without a lock and without a queue of its own.
//!
//! In: bytes of a peer, never trusted. Out: frames with the instant at which their last byte was
//! read. Sending happens where it is decided; what the socket does not take at once is sent by the
//! connection's task.
//! Invariants: a peer that does not read costs at most [`UNSENT_BYTES_MAX`]; one that floods gives
//! way to the others after each read.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use musec_protocol::{FrameDecoder, ProtocolError, limits};
use musec_trace::{CClock, CTime};
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes that wait for a peer that does not read, before it is given up: the largest command twice.
const UNSENT_BYTES_MAX: usize = 2 * limits::FRAME_BYTES_MAX;

/// Why a connection is of no further use.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    #[error("connection closed")]
    Closed,
    #[error("{}", broken(.0))]
    Io(#[from] io::Error),
    #[error("TLS broken: {0}")]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("peer does not read: more than {UNSENT_BYTES_MAX} bytes wait for it")]
    NotReading,
}

/// The system gives a connection up after [`limits::SILENCE_MAX`], be it that nothing comes back
/// from the peer's machine or that the peer does not read.
fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            format!("it took nothing of what was sent to it for {:?}", limits::SILENCE_MAX)
        }
        _ => format!("connection broken: {error}"),
    }
}

pub(crate) struct Connection {
    socket: TcpStream,
    tls: RefCell<ServerConnection>,
    /// The connection's task, while it waits; woken when bytes were left unsent, or when the
    /// connection shall end.
    task: RefCell<Option<Waker>>,
    closing: Cell<bool>,
    /// Whether the last read left nothing in the socket.
    drained: Cell<bool>,
    clock: CClock,
    counts: Counts,
}

/// Bytes on the wire so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) bytes_in: Cell<u64>,
    pub(crate) bytes_out: Cell<u64>,
}

impl Connection {
    pub(crate) fn new(
        socket: TcpStream,
        config: Arc<ServerConfig>,
        clock: CClock,
    ) -> Result<Self, ConnectionError> {
        socket.set_nodelay(true)?;
        let options = socket2::SockRef::from(&socket);
        #[cfg(target_os = "linux")]
        options.set_tcp_user_timeout(Some(limits::SILENCE_MAX))?;
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(limits::SILENCE_MAX / 2)
            .with_interval(limits::HEARTBEAT);
        options.set_tcp_keepalive(&keepalive)?;
        let mut tls = ServerConnection::new(config)?;
        tls.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self {
            socket,
            tls: RefCell::new(tls),
            task: RefCell::new(None),
            closing: Cell::new(false),
            drained: Cell::new(false),
            clock,
            counts: Counts::default(),
        })
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Now, C.
    pub(crate) fn now(&self) -> CTime {
        self.clock.now()
    }

    /// The certificate that the peer proved itself with, once the handshake is done.
    pub(crate) fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        let tls = self.tls.borrow();
        tls.peer_certificates()?.first().map(|certificate| certificate.clone().into_owned())
    }

    /// Sends bytes, as far as the socket takes them now.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.encrypt(bytes)?;
        self.flush()
    }

    /// Takes bytes that are to be sent with the next [`Self::flush`].
    pub(crate) fn encrypt(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let written = self.tls.borrow_mut().writer().write(bytes)?;
        if written < bytes.len() {
            return Err(ConnectionError::NotReading);
        }
        Ok(())
    }

    /// Ends the connection after what was sent: the peer is told, the task ends.
    pub(crate) fn close(&self) {
        if self.closing.replace(true) {
            return;
        }
        self.tls.borrow_mut().send_close_notify();
        if let Err(error) = self.flush() {
            tracing::debug!("closing: {error}");
        }
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Gives the socket what it takes now; the task is woken for the rest.
    pub(crate) fn flush(&self) -> Result<(), ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        while tls.wants_write() {
            match tls.write_tls(&mut Socket { socket: &self.socket, is_drained: false }) {
                Ok(bytes) => add(&self.counts.bytes_out, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wake();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the socket can be read, sending what was left meanwhile. Cancel-safe.
    async fn readable(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        if self.closing.get() {
            return Poll::Ready(Err(ConnectionError::Closed));
        }
        while self.tls.borrow().wants_write() {
            match self.socket.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => self.flush()?,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => break,
            }
        }
        let ready = self.socket.poll_read_ready(cx).map_err(ConnectionError::from);
        if ready.is_pending() {
            let mut task = self.task.borrow_mut();
            if task.as_ref().is_none_or(|task| !task.will_wake(cx.waker())) {
                *task = Some(cx.waker().clone());
            }
        }
        ready
    }

    /// Takes what the socket has into TLS; false if it has nothing.
    fn receive(&self) -> Result<bool, ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        let mut socket = Socket { socket: &self.socket, is_drained: false };
        let received = match tls.read_tls(&mut socket) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        add(&self.counts.bytes_in, received);
        self.drained.set(socket.is_drained);
        if socket.is_drained {
            // A short read has emptied the socket: to ask again would only be told so. What comes
            // from now on is told of anew.
            let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
            drop(self.socket.try_io(Interest::READABLE, nothing));
        }
        let processed = tls.process_new_packets();
        drop(tls);
        // An alert may be waiting for the peer, whatever came of its bytes.
        let flushed = self.flush();
        processed?;
        flushed?;
        Ok(true)
    }

    /// Completes the TLS handshake. Not cancel-safe: a connection that is given up is dropped.
    pub(crate) async fn handshake(&self) -> Result<(), ConnectionError> {
        while self.tls.borrow().is_handshaking() {
            self.readable().await?;
            self.receive()?;
        }
        self.flush()
    }

    /// Reads what there is into `incoming` and returns t3, C: after its last byte was read.
    pub(crate) async fn read(&self, incoming: &mut Incoming) -> Result<CTime, ConnectionError> {
        loop {
            if self.take_plain(incoming)? {
                return Ok(self.clock.now());
            }
            self.readable().await?;
            self.receive()?;
        }
    }

    /// Lets others have a turn, if this peer sends more than is read at a time.
    pub(crate) async fn give_way(&self) {
        if !self.drained.get() {
            tokio::task::yield_now().await;
        }
    }

    /// Moves plain bytes out of TLS; false if there are none.
    fn take_plain(&self, incoming: &mut Incoming) -> Result<bool, ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        let mut reader = tls.reader();
        let mut any = false;
        loop {
            let bytes = match reader.fill_buf() {
                Ok([]) => return if any { Ok(true) } else { Err(ConnectionError::Closed) },
                Ok(plain) => {
                    incoming.push(plain);
                    plain.len()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(any),
                Err(error) => return Err(error.into()),
            };
            reader.consume(bytes);
            any = true;
        }
    }
}

/// Bytes on their way to becoming frames.
pub(crate) struct Incoming {
    /// Bytes of the fixed preamble that are still awaited, then the preamble itself.
    preamble: Vec<u8>,
    preamble_bytes: usize,
    pub(crate) frames: FrameDecoder,
}

impl Incoming {
    pub(crate) fn new(preamble_bytes: usize) -> Self {
        Self {
            preamble: Vec::with_capacity(preamble_bytes),
            preamble_bytes,
            frames: FrameDecoder::with_limit(limits::HELLO_BYTES_MAX),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let missing = self.preamble_bytes - self.preamble.len();
        let (first, rest) = bytes.split_at(missing.min(bytes.len()));
        self.preamble.extend_from_slice(first);
        if !rest.is_empty() {
            self.frames.push(rest);
        }
    }

    /// The preamble, once it is whole.
    pub(crate) fn preamble<const N: usize>(&self) -> Option<[u8; N]> {
        <[u8; N]>::try_from(&self.preamble[..]).ok()
    }
}

fn add(counter: &Cell<u64>, bytes: usize) {
    counter.set(counter.get() + bytes as u64);
}

/// A socket as rustls reads and writes it: what would block says so.
struct Socket<'a> {
    socket: &'a TcpStream,
    /// Whether the last read got all there was.
    is_drained: bool,
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.socket.try_read(buffer)?;
        self.is_drained = bytes < buffer.len();
        Ok(bytes)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match bytes {
            [one] => self.socket.try_write(one),
            several => self.socket.try_write_vectored(several),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
