//! What user code tells its worker: one datagram each, on the socket that [`VARIABLE`] names. The
//! worker forwards them as they are; the coordinator decodes them.
//!
//! An info is `info KEY`, a line feed, and the value: any bytes. Other words are for later
//! versions.

use crate::limits::{INFO_KEY_BYTES_MAX, NOTE_BYTES_MAX};

/// The variable of user code's environment that names the socket.
pub const VARIABLE: &str = "MUSEC_SPANS";

/// A decoded note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A value for a key.
    Info {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
}

impl Told {
    /// The bytes of a note.
    ///
    /// # Errors
    /// In words, if it cannot be told.
    pub fn to_bytes(&self) -> Result<Vec<u8>, &'static str> {
        let Self::Info { key, value } = self;
        check_key(key)?;
        let bytes = [b"info ", key.as_bytes(), b"\n", value].concat();
        if bytes.len() > NOTE_BYTES_MAX {
            return Err("key and value are longer than 8 KiB");
        }
        Ok(bytes)
    }

    /// What the bytes of a note mean.
    ///
    /// # Errors
    /// In words, if nothing.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let rest = bytes.strip_prefix(b"info ").ok_or("it does not begin with `info `")?;
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("its key has no end")?;
        let (key, value) = rest.split_at(end);
        let key = std::str::from_utf8(key).map_err(|_| "its key is not UTF-8")?;
        check_key(key)?;
        let value = value.get(1..).unwrap_or_default().to_vec();
        Ok(Self::Info { key: key.to_owned(), value })
    }
}

fn check_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        return Err("the key is empty");
    }
    if key.len() > INFO_KEY_BYTES_MAX {
        return Err("the key is longer than 256 bytes");
    }
    if key.chars().any(|char| char.is_whitespace() || char.is_control()) {
        return Err("the key has spaces or control characters");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_info_comes_back_as_it_was_told_whatever_its_value_is() {
        for value in [&b""[..], b"8080", b"two\nlines\n", b"\xff\0"] {
            let told = Told::Info { key: "port".to_owned(), value: value.to_vec() };
            assert_eq!(Told::from_bytes(&told.to_bytes().unwrap()), Ok(told));
        }
    }

    #[test]
    fn what_is_no_note_is_refused_in_words() {
        for bytes in [
            &b""[..],
            b"info",
            b"info port",
            b"info \n8",
            b"info a b\n",
            b"span x\n",
            b"info \xff\n",
        ] {
            assert!(Told::from_bytes(bytes).is_err(), "{bytes:?}");
        }
        let long = Told::Info { key: "k".to_owned(), value: vec![0; NOTE_BYTES_MAX] };
        assert!(long.to_bytes().is_err());
        let long = Told::Info { key: "k".repeat(INFO_KEY_BYTES_MAX + 1), value: Vec::new() };
        assert!(long.to_bytes().is_err());
    }
}
