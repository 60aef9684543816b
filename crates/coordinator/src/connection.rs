//! One connection: TLS over a socket, without a lock and without a queue of its own.
//!
//! In: bytes of a peer, never trusted. Out: frames with the instant at which their last byte was
//! read. Sending happens where it is decided, so that its stamp is taken right before the first
//! byte goes to TLS; what the socket does not take at once is sent by the connection's task.
//! Invariant: a peer that does not read costs at most [`UNSENT_BYTES_MAX`].

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::Arc;

use musec_protocol::{FrameDecoder, ProtocolError, ToWorker, begin_frame, end_frame, limits};
use musec_trace::{CClock, CTime};
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes that wait for a peer that does not read, before it is given up: the largest command twice.
const UNSENT_BYTES_MAX: usize = 2 * limits::FRAME_BYTES_MAX;

/// Plain bytes taken out of TLS at a time.
const READ_BYTES: usize = 4 << 10;

/// Why a connection is of no further use.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    #[error("connection closed")]
    Closed,
    #[error("connection broken: {0}")]
    Io(#[from] io::Error),
    #[error("TLS broken: {0}")]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("peer does not read: more than {UNSENT_BYTES_MAX} bytes wait for it")]
    NotReading,
}

pub(crate) struct Connection {
    socket: TcpStream,
    tls: RefCell<ServerConnection>,
    /// Told when bytes were left unsent, or when the connection shall end.
    wake: Notify,
    closing: std::cell::Cell<bool>,
    clock: CClock,
    counts: Counts,
}

/// Bytes on the wire so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) bytes_in: std::cell::Cell<u64>,
    pub(crate) bytes_out: std::cell::Cell<u64>,
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
            wake: Notify::new(),
            closing: std::cell::Cell::new(false),
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

    /// Sends one message and returns t0, C: right before its first byte went to TLS.
    pub(crate) fn send(&self, message: &ToWorker) -> Result<CTime, ConnectionError> {
        let mut frame = Vec::with_capacity(256);
        let start = begin_frame(&mut frame);
        message.encode(&mut frame);
        end_frame(&mut frame, start)?;
        self.send_bytes(&frame)
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8]) -> Result<CTime, ConnectionError> {
        let t0 = self.clock.now();
        let written = self.tls.borrow_mut().writer().write(bytes)?;
        if written < bytes.len() {
            return Err(ConnectionError::NotReading);
        }
        self.flush()?;
        Ok(t0)
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
        self.wake.notify_one();
    }

    /// Gives the socket what it takes now; the task is woken for the rest.
    fn flush(&self) -> Result<(), ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        while tls.wants_write() {
            match tls.write_tls(&mut Socket(&self.socket)) {
                Ok(bytes) => add(&self.counts.bytes_out, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wake.notify_one();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the socket can be read, sending what was left meanwhile. Cancel-safe.
    async fn readable(&self) -> Result<(), ConnectionError> {
        loop {
            if self.closing.get() {
                return Err(ConnectionError::Closed);
            }
            let unsent = self.tls.borrow().wants_write();
            let interest =
                if unsent { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            tokio::select! {
                ready = self.socket.ready(interest) => {
                    let ready = ready?;
                    if unsent && ready.is_writable() {
                        self.flush()?;
                    }
                    if ready.is_readable() || ready.is_read_closed() {
                        return Ok(());
                    }
                }
                () = self.wake.notified() => {}
            }
        }
    }

    /// Takes what the socket has into TLS; false if it has nothing.
    fn receive(&self) -> Result<bool, ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        let received = match tls.read_tls(&mut Socket(&self.socket)) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        add(&self.counts.bytes_in, received);
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

    /// Moves plain bytes out of TLS; false if there are none.
    fn take_plain(&self, incoming: &mut Incoming) -> Result<bool, ConnectionError> {
        let mut tls = self.tls.borrow_mut();
        let mut any = false;
        let mut chunk = [0; READ_BYTES];
        loop {
            match tls.reader().read(&mut chunk) {
                Ok(0) => return if any { Ok(true) } else { Err(ConnectionError::Closed) },
                Ok(bytes) => {
                    incoming.push(&chunk[..bytes]);
                    any = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(any),
                Err(error) => return Err(error.into()),
            }
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
            frames: FrameDecoder::default(),
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

fn add(counter: &std::cell::Cell<u64>, bytes: usize) {
    counter.set(counter.get() + bytes as u64);
}

/// A socket as rustls reads and writes it: what would block says so.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
