//! What the engine knows of each attempt's connection, and what goes out to one together.

use std::rc::Rc;

use musec_protocol::{LaunchId, ProtocolError, ToWorker, begin_frame, end_frame, limits};
use musec_trace::CTime;
use rustls::pki_types::CertificateDer;

use crate::connection::{Connection, ConnectionError, Counts};
use crate::recorder::Traffic;

/// What is gathered at most before it is sent: some records of TLS.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// By launch; launches are numbered without gaps.
#[derive(Default)]
pub(crate) struct Peers {
    peers: Vec<Peer>,
    /// Of the connections that are gone.
    past: Traffic,
}

#[derive(Default)]
pub(super) struct Peer {
    pub(super) certificate: Option<CertificateDer<'static>>,
    pub(super) connection: Option<Rc<Connection>>,
    /// The heartbeat under way, with its t0.
    pub(super) ping: Option<(u64, CTime)>,
    pub(super) pings: u64,
    /// When something was last sent to it, and when something of it was last read, C.
    pub(super) sent: CTime,
    pub(super) heard: CTime,
    /// t3 of its hello, C.
    pub(super) joined: CTime,
    pub(super) stalls: u64,
}

impl Peer {
    /// Whether messages went both ways since then: that is as good as a heartbeat.
    pub(super) fn has_exchanged_since(&self, since: CTime) -> bool {
        self.sent > since && self.heard > since
    }
}

impl Peers {
    pub(super) fn entry(&mut self, launch: LaunchId) -> &mut Peer {
        let index = usize::try_from(launch.0).unwrap_or(usize::MAX);
        if index >= self.peers.len() {
            self.peers.resize_with(index + 1, Peer::default);
        }
        &mut self.peers[index]
    }

    pub(super) fn known(&mut self, launch: LaunchId) -> Option<&mut Peer> {
        self.peers.get_mut(usize::try_from(launch.0).ok()?)
    }

    /// Closes an attempt's connection; its place cannot be taken again.
    pub(super) fn forget(&mut self, launch: LaunchId) {
        let Some(peer) = self.known(launch) else { return };
        peer.certificate = None;
        peer.ping = None;
        let Some(connection) = peer.connection.take() else { return };
        connection.close();
        self.past = self.past.with(connection.counts(), 0);
    }

    /// Counts a stall that was reported at `t3`, C; whether there was time for so many.
    pub(super) fn has_time_to_stall(&mut self, launch: LaunchId, t3: CTime) -> bool {
        let peer = self.entry(launch);
        peer.stalls += 1;
        let shortest_ns = limits::STALL_AFTER.as_nanos().max(1);
        let possible = u128::from(t3.since(peer.joined)) / shortest_ns;
        u128::from(peer.stalls) <= possible + u128::from(limits::STALLS_SPARE)
    }

    /// All connections, those that are gone included in the bytes.
    pub(super) fn traffic(&self) -> Traffic {
        let connections = self.peers.iter().filter_map(|peer| peer.connection.as_ref());
        connections.fold(self.past, |sum, connection| sum.with(connection.counts(), 1))
    }
}

impl Traffic {
    fn with(self, counts: &Counts, connections: u32) -> Self {
        Self {
            connections: self.connections + connections,
            bytes_in: self.bytes_in + counts.bytes_in.get(),
            bytes_out: self.bytes_out + counts.bytes_out.get(),
        }
    }
}

/// Messages for one worker that go out in one write, however many were decided together.
#[derive(Default)]
pub(crate) struct Batch {
    launch: Option<LaunchId>,
    frames: Vec<u8>,
}

impl Batch {
    /// Whether another message for this worker can be added.
    pub(super) fn is_for(&self, launch: LaunchId) -> bool {
        self.launch == Some(launch) && self.frames.len() < BATCH_BYTES_MAX
    }

    pub(super) const fn launch(&self) -> Option<LaunchId> {
        self.launch
    }

    pub(super) fn add(
        &mut self,
        launch: LaunchId,
        message: &ToWorker,
    ) -> Result<(), ProtocolError> {
        self.launch = Some(launch);
        let start = begin_frame(&mut self.frames);
        message.encode(&mut self.frames);
        end_frame(&mut self.frames, start)
    }

    pub(super) fn encrypt(&self, connection: &Connection) -> Result<(), ConnectionError> {
        if self.frames.is_empty() {
            return Ok(());
        }
        connection.encrypt(&self.frames)
    }

    pub(super) fn clear(&mut self) {
        self.launch = None;
        self.frames.clear();
        // One large command must not be remembered for ever.
        self.frames.shrink_to(BATCH_BYTES_MAX);
    }
}
