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

/// Room that a decoder keeps when nothing waits in it: one long frame must not be remembered for
/// ever, and short ones must not allocate each time.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Cuts a stream of bytes into frames. Memory: at most twice what waits, which is one frame and one
/// read beyond it. Time: linear, however the bytes are cut.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    start: usize,
    frame_bytes_max: usize,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::with_limit(FRAME_BYTES_MAX)
    }
}

impl FrameDecoder {
    /// A decoder that takes no longer frames than these, in bytes.
    #[must_use]
    pub const fn with_limit(frame_bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, frame_bytes_max }
    }

    /// From now on frames may be this long, in bytes.
    pub const fn limit(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        let waiting = self.buffer.len() - self.start;
        if waiting == 0 {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES_MAX);
            self.start = 0;
        } else if self.start >= waiting {
            // No more is moved than was taken out since the last time.
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
        if length > self.frame_bytes_max {
            let (announced, limit) = (length as u64, self.frame_bytes_max as u64);
            return Err(ProtocolError::FrameTooLong { announced, limit });
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
    fn a_frame_above_a_lower_limit_is_refused_until_the_limit_is_raised() {
        let mut decoder = FrameDecoder::with_limit(10);
        decoder.push(&[0, 0, 0, 11]);
        let refused = ProtocolError::FrameTooLong { announced: 11, limit: 10 };
        assert_eq!(decoder.next_frame(), Err(refused));
        decoder.limit(11);
        assert_eq!(decoder.next_frame(), Ok(None));
        decoder.push(&[7; 11]);
        assert_eq!(decoder.next_frame(), Ok(Some(&[7; 11][..])));
    }

    #[test]
    fn a_decoder_holds_no_more_than_twice_what_waits_and_forgets_a_long_frame() {
        // Frames of 99 bytes in reads of 100: something always waits.
        let mut bytes = Vec::new();
        for _ in 0..100_000 {
            let start = begin_frame(&mut bytes);
            bytes.extend_from_slice(&[7; 95]);
            end_frame(&mut bytes, start).expect("short");
        }
        let mut decoder = FrameDecoder::default();
        for read in bytes.chunks(100) {
            decoder.push(read);
            while decoder.next_frame().expect("well formed").is_some() {}
            assert!(decoder.buffer.capacity() <= 1000, "{}", decoder.buffer.capacity());
        }
        let mut long = Vec::new();
        let start = begin_frame(&mut long);
        long.resize(start + HEADER_BYTES + FRAME_BYTES_MAX, 0);
        end_frame(&mut long, start).expect("as long as is allowed");
        let mut decoder = FrameDecoder::default();
        decoder.push(&long);
        assert!(decoder.next_frame().expect("well formed").is_some());
        decoder.push(&[0]);
        assert!(decoder.buffer.capacity() <= KEPT_BYTES_MAX, "{}", decoder.buffer.capacity());
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
