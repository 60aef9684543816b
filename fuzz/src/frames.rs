//! Frames and messages: what a peer sends after the handshake.
//!
//! The first byte says how the rest is cut into reads. However it is cut, the same frames come out;
//! a message that is understood is said and understood again.

use musec_protocol::{FrameDecoder, FromWorker, ProtocolError, ToWorker};

pub(crate) fn check(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let whole = decode(stream, stream.len().max(1));
    let cut = decode(stream, usize::from(cut).max(1));
    assert_eq!(whole, cut, "the cuts of a stream are seen in its frames");
    for frame in &whole.0 {
        if let Ok(message) = ToWorker::decode(frame) {
            let mut again = Vec::new();
            message.encode(&mut again);
            assert_eq!(ToWorker::decode(&again), Ok(message));
        }
        if let Ok(message) = FromWorker::decode(frame) {
            let mut again = Vec::new();
            message.encode(&mut again);
            assert_eq!(FromWorker::decode(&again), Ok(message));
        }
    }
}

/// The frames of a stream that is read `cut` bytes at a time, and how it ended.
fn decode(stream: &[u8], cut: usize) -> (Vec<Vec<u8>>, Result<bool, ProtocolError>) {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for read in stream.chunks(cut) {
        decoder.push(read);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame.to_vec()),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(decoder.is_mid_frame()))
}
