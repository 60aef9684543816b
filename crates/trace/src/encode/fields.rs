//! Fields of a protobuf message, written straight into a buffer.
//!
//! In: tags and values. Out: the very bytes that the generated types would give: fields in the
//! order of calls, proto3's rule that zero and empty are left out, shortest numbers. Absent:
//! reading.

/// Most bytes of a number of 64 bits.
const NUMBER_BYTES_MAX: usize = 10;

/// Most bytes of a field's key: tags are below 2048.
const KEY_BYTES_MAX: usize = 2;

/// Bytes made ready at a time, so that few fields have to look for room: a reply with one phase
/// fits.
const ROOM_BYTES: usize = 256;

/// Wire types: a number, and what has a length.
const NUMBER: u32 = 0;
const LENGTH: u32 = 2;

/// A buffer that fields are appended to. The bytes from `at` on are room, not content.
pub(crate) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Fields<'a> {
    /// Appends to `out`.
    pub(crate) const fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        Self { out, at }
    }

    /// Takes back what was not needed.
    pub(crate) fn finish(self) {
        self.out.truncate(self.at);
    }

    /// A number, unless it is 0.
    pub(crate) fn number(&mut self, tag: u32, value: u64) {
        if value != 0 {
            self.present(tag, value);
        }
    }

    /// A number that may be absent, which is not the same as 0.
    pub(crate) fn optional(&mut self, tag: u32, value: Option<u64>) {
        if let Some(value) = value {
            self.present(tag, value);
        }
    }

    /// A signed number (`sint64`), unless it is 0.
    pub(crate) fn signed(&mut self, tag: u32, value: i64) {
        self.number(tag, zigzag(value));
    }

    /// A signed number (`sint64`) that may be absent.
    pub(crate) fn optional_signed(&mut self, tag: u32, value: Option<i64>) {
        self.optional(tag, value.map(zigzag));
    }

    /// Bytes or text, unless empty.
    pub(crate) fn bytes(&mut self, tag: u32, value: &[u8]) {
        if !value.is_empty() {
            self.element(tag, value);
        }
    }

    /// One of repeated bytes, which may be empty.
    pub(crate) fn element(&mut self, tag: u32, value: &[u8]) {
        self.room(KEY_BYTES_MAX + NUMBER_BYTES_MAX + value.len());
        self.key(tag, LENGTH);
        self.varint(value.len() as u64);
        self.out[self.at..self.at + value.len()].copy_from_slice(value);
        self.at += value.len();
    }

    /// Repeated numbers, packed.
    pub(crate) fn packed(&mut self, tag: u32, values: &[u32]) {
        if values.is_empty() {
            return;
        }
        self.message(tag, |fields| {
            for value in values {
                fields.room(NUMBER_BYTES_MAX);
                fields.varint(u64::from(*value));
            }
        });
    }

    /// A message within this one, whatever it holds.
    pub(crate) fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        self.room(KEY_BYTES_MAX + NUMBER_BYTES_MAX);
        self.key(tag, LENGTH);
        // Most are shorter than 128 bytes: their length takes one byte. Others are moved.
        let length_at = self.at;
        self.at += 1;
        let start = self.at;
        write(self);
        let length = self.at - start;
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => self.out[length_at] = short,
            Ok(_) | Err(_) => self.make_room_for_length(length_at, length),
        }
    }

    fn make_room_for_length(&mut self, length_at: usize, length: usize) {
        let (start, end) = (length_at + 1, self.at);
        let more = length_bytes(length) - 1;
        self.room(more + NUMBER_BYTES_MAX);
        self.out.copy_within(start..end, start + more);
        // The number is written with what follows it in its eight bytes, so that is kept.
        let mut kept = [0; NUMBER_BYTES_MAX];
        let content = start + more;
        kept.copy_from_slice(&self.out[content..content + NUMBER_BYTES_MAX]);
        self.at = length_at;
        self.varint(length as u64);
        self.out[content..content + NUMBER_BYTES_MAX].copy_from_slice(&kept);
        self.at = end + more;
    }

    fn present(&mut self, tag: u32, value: u64) {
        self.room(KEY_BYTES_MAX + NUMBER_BYTES_MAX);
        self.key(tag, NUMBER);
        self.varint(value);
    }

    /// Makes room for `wanted` bytes from `at` on.
    fn room(&mut self, wanted: usize) {
        if self.out.len() < self.at + wanted {
            self.out.resize(self.at + wanted.max(ROOM_BYTES), 0);
        }
    }

    fn key(&mut self, tag: u32, kind: u32) {
        let key = u64::from(tag << 3 | kind);
        self.varint_short(key);
    }

    /// A number of at most 14 bits.
    #[expect(clippy::cast_possible_truncation, reason = "cut on purpose: seven bits a byte")]
    fn varint_short(&mut self, value: u64) {
        if value < 0x80 {
            self.out[self.at] = value as u8;
            self.at += 1;
        } else {
            self.out[self.at] = value as u8 | 0x80;
            self.out[self.at + 1] = (value >> 7) as u8;
            self.at += 2;
        }
    }

    /// A number: seven bits a byte, the lowest first; all bytes but the last have their high bit
    /// set. Eight bytes are made at once, by moving groups of bits apart, and those that count are
    /// kept.
    fn varint(&mut self, value: u64) {
        const EIGHT: u64 = 1 << 56;
        if value >= EIGHT {
            return self.varint_long(value);
        }
        let spread = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
        let spread = spread & 0x0000_3fff_0000_3fff | (spread & 0x0fff_c000_0fff_c000) << 2;
        let spread = spread & 0x007f_007f_007f_007f | (spread & 0x3f80_3f80_3f80_3f80) << 1;
        let bytes = 8 - (spread | 1).leading_zeros() as usize / 8;
        let more = 0x8080_8080_8080_8080 & ((1 << (8 * (bytes - 1))) - 1);
        self.out[self.at..self.at + 8].copy_from_slice(&(spread | more).to_le_bytes());
        self.at += bytes;
    }

    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "cut on purpose: seven bits a byte")]
    fn varint_long(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out[self.at] = value as u8 | 0x80;
            self.at += 1;
            value >>= 7;
        }
        self.out[self.at] = value as u8;
        self.at += 1;
    }
}

/// How many bytes a length takes.
const fn length_bytes(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[expect(clippy::cast_sign_loss, reason = "the sign is moved to the lowest bit")]
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Fields<'_>)) -> Vec<u8> {
        let mut out = b"before".to_vec();
        let mut fields = Fields::new(&mut out);
        write(&mut fields);
        fields.finish();
        out.split_off(6)
    }

    fn of_prost(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn numbers_around_every_power_of_two_are_those_of_prost() {
        for shift in 0..64 {
            for value in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let ours = written(|fields| fields.optional(17, Some(value)));
                assert_eq!(ours, of_prost(|out| prost::encoding::uint64::encode(17, &value, out)));
                let signed = value.cast_signed();
                for signed in [signed, signed.wrapping_neg()] {
                    let ours = written(|fields| fields.optional_signed(3, Some(signed)));
                    let wanted = of_prost(|out| prost::encoding::sint64::encode(3, &signed, out));
                    assert_eq!(ours, wanted);
                }
            }
        }
    }

    #[test]
    fn lengths_around_their_borders_are_those_of_prost() {
        for length in [0, 1, 127, 128, 129, 255, 256, 16_383, 16_384, 2_097_151, 2_097_152] {
            let value: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let wanted = of_prost(|out| prost::encoding::bytes::encode(5, &value, out));
            assert_eq!(written(|fields| fields.element(5, &value)), wanted, "{length}");
            let within = written(|fields| fields.message(6, |fields| fields.element(5, &value)));
            let wanted = of_prost(|out| prost::encoding::bytes::encode(6, &wanted, out));
            assert_eq!(within, wanted, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_numbers_packed_are_those_of_prost(values: Vec<u32>) {
            let ours = written(|fields| fields.packed(2, &values));
            let wanted = of_prost(|out| prost::encoding::uint32::encode_packed(2, &values, out));
            prop_assert_eq!(ours, wanted);
        }
    }
}
