//! Items of any bytes, and how they are written where only text can stand.
//!
//! Invariant: decoding what was encoded gives the same bytes. Items lie one after the other in one
//! buffer, so that a hundred thousand of them cost little more than their bytes.

use std::borrow::Cow;

/// Items of any bytes, numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteItems {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
}

impl ByteItems {
    /// Appends one.
    pub fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The item with this number.
    #[must_use]
    pub fn item(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(start.copied().unwrap_or(0)..end)
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.item(number))
    }
}

/// Bytes as text: percent signs, and what is no UTF-8, as `%` and two hexadecimal digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' => text.push_str("%25"),
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The bytes that [`encode`] was given. Other text stays as it is where it is not encoded.
pub(crate) fn decode(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('%') {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_bytes_an_item_has_they_come_back() {
        let odd: [&[u8]; 7] = [
            b"",
            b"plain",
            b"100%",
            b"%41 %zz %",
            b"a\nb \"c\" 'd'",
            b"\xff\xfe\x80",
            "gr\u{fc}n\u{1f600}".as_bytes(),
        ];
        let mut items = ByteItems::default();
        for item in odd {
            assert_eq!(decode(&encode(item)), item, "{item:?}");
            items.push(item);
        }
        assert_eq!(items.len(), odd.len());
        assert!(items.iter().eq(odd));
        assert_eq!(encode(b"gr\xc3\xbcn\xff%"), "grün%FF%25");
    }
}
