//! Framing: a length of 4 bytes, big endian, then that many bytes.

use crate::{ProtocolError, limits::FRAME_BYTES_MAX};

const HEADER_BYTES: usize = 4;

/// Starts a frame in `out` and returns where; [`end_frame`] fills in its length.
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    start
}

/// Ends the frame that was begun at `start`.
///
/// # Errors
/// If what was appended since is longer than a frame may be; it is then taken away again.
pub fn end_frame(out: &mut Vec<u8>, start: usize) -> Result<(), ProtocolError> {
    let length = out.len() - start - HEADER_BYTES;
    match u32::try_from(length) {
        Ok(header) if length <= FRAME_BYTES_MAX => {
            out[start..start + HEADER_BYTES].copy_from_slice(&header.to_be_bytes());
            Ok(())
        }
        _ => {
            out.truncate(start);
            Err(too_long(length as u64))
        }
    }
}

/// Cuts a stream of bytes into frames. Memory: at most one frame and one read beyond it.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameDecoder {
    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > FRAME_BYTES_MAX {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if its bytes are there. Call again until it is `None`.
    ///
    /// # Errors
    /// If a header announces more than the limit; the stream is then of no further use.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, ProtocolError> {
        let waiting = &self.buffer[self.start..];
        let Some((header, rest)) = waiting.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*header) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(too_long(length as u64));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let from = self.start + HEADER_BYTES;
        self.start = from + length;
        Ok(Some(&self.buffer[from..self.start]))
    }

    /// Whether bytes of an unfinished frame are waiting.
    #[must_use]
    pub fn is_mid_frame(&self) -> bool {
        self.start < self.buffer.len()
    }
}

fn too_long(announced: u64) -> ProtocolError {
    ProtocolError::FrameTooLong { announced, limit: FRAME_BYTES_MAX as u64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_of_four_gibibytes_is_refused_before_anything_is_allocated() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&[0xff; 4]);
        assert_eq!(decoder.next_frame(), Err(too_long(u64::from(u32::MAX))));
    }

    #[test]
    fn a_frame_above_the_limit_is_not_sent() {
        let mut out = vec![1, 2];
        let start = begin_frame(&mut out);
        out.resize(start + HEADER_BYTES + FRAME_BYTES_MAX + 1, 0);
        assert!(end_frame(&mut out, start).is_err());
        assert_eq!(out, [1, 2]);
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_the_bytes_are_cut(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            cuts in prop::collection::vec(1usize..50, 1..50),
        ) {
            let mut bytes = Vec::new();
            for frame in &frames {
                let start = begin_frame(&mut bytes);
                bytes.extend_from_slice(frame);
                end_frame(&mut bytes, start).expect("short");
            }
            let mut decoder = FrameDecoder::default();
            let mut seen = Vec::new();
            let mut rest = &bytes[..];
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let cut = (*cuts.next().expect("endless")).min(rest.len());
                decoder.push(&rest[..cut]);
                rest = &rest[cut..];
                while let Some(frame) = decoder.next_frame().expect("well formed") {
                    seen.push(frame.to_vec());
                }
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(!decoder.is_mid_frame());
        }
    }
}
