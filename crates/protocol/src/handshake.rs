//! The first bytes of a connection, before any protobuf. They are frozen: every version of musec,
//! however old, can tell a newer peer from a stranger by them.
//!
//! ```text
//! worker      ─► magic (8) · lowest version (2) · highest version (2) · run (16) · launch (8)
//! coordinator ─► magic (8) · chosen version (2) · refusal (2, 0 when accepted)
//! ```
//! Numbers are big endian.

use crate::{LaunchId, ProtocolError, RunId};

/// The application protocol that TLS agrees on.
pub const ALPN: &[u8] = b"musec/1";

/// The version of the protocol that is spoken here.
pub const VERSION: u16 = 1;

/// Length of a [`Preamble`], in bytes.
pub const PREAMBLE_BYTES: usize = 36;

/// Length of an [`Answer`], in bytes.
pub const ANSWER_BYTES: usize = 12;

const MAGIC: [u8; 8] = *b"musec\r\n\x1a";

/// What a worker says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Lowest version that the worker speaks.
    pub version_min: u16,
    /// Highest version that the worker speaks.
    pub version_max: u16,
    /// The run it wants to join.
    pub run: RunId,
    /// Which launch it is; its certificate must name the same.
    pub launch: LaunchId,
}

/// What the coordinator answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The version to speak.
    pub version: u16,
    /// Why the worker was refused, if it was.
    pub refusal: Option<Refusal>,
}

/// Why a connection with a valid certificate was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No version is known to both sides.
    Version,
    /// Another run's id.
    Run,
    /// The certificate was not issued for this launch.
    Certificate,
    /// No launch of this number is awaited: it has joined already, has ended, or never was.
    Launch,
    /// The run is over.
    Over,
}

impl Refusal {
    const ALL: [Self; 5] = [Self::Version, Self::Run, Self::Certificate, Self::Launch, Self::Over];

    const fn code(self) -> u16 {
        match self {
            Self::Version => 1,
            Self::Run => 2,
            Self::Certificate => 3,
            Self::Launch => 4,
            Self::Over => 5,
        }
    }

    /// The reason as it is counted in reports.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Version => "protocol version",
            Self::Run => "another run",
            Self::Certificate => "certificate of another attempt",
            Self::Launch => "attempt not awaited",
            Self::Over => "run is over",
        }
    }
}

impl Preamble {
    /// What a worker of this version says.
    #[must_use]
    pub const fn new(run: RunId, launch: LaunchId) -> Self {
        Self { version_min: VERSION, version_max: VERSION, run, launch }
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version_min.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.version_max.to_be_bytes());
        bytes[12..28].copy_from_slice(&self.run.0);
        bytes[28..].copy_from_slice(&self.launch.0.to_be_bytes());
        bytes
    }

    /// The preamble in `bytes`. Whether its version can be spoken is for [`Self::is_spoken`].
    ///
    /// # Errors
    /// If the magic is another's.
    pub fn from_bytes(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Self, ProtocolError> {
        check_magic(bytes)?;
        Ok(Self {
            version_min: u16::from_be_bytes([bytes[8], bytes[9]]),
            version_max: u16::from_be_bytes([bytes[10], bytes[11]]),
            run: RunId(part(bytes, 12)),
            launch: LaunchId(u64::from_be_bytes(part(bytes, 28))),
        })
    }

    /// Whether this program's version is among those of the peer.
    #[must_use]
    pub const fn is_spoken(self) -> bool {
        self.version_min <= VERSION && VERSION <= self.version_max
    }
}

impl Answer {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_be_bytes());
        bytes[10..].copy_from_slice(&self.refusal.map_or(0, Refusal::code).to_be_bytes());
        bytes
    }

    /// The answer in `bytes`.
    ///
    /// # Errors
    /// If the magic is another's, the version is not spoken here, or the refusal is unknown.
    pub fn from_bytes(bytes: &[u8; ANSWER_BYTES]) -> Result<Self, ProtocolError> {
        check_magic(bytes)?;
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        let code = u16::from_be_bytes([bytes[10], bytes[11]]);
        let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code);
        if code != 0 && refusal.is_none() {
            return Err(ProtocolError::Malformed { what: "answer", why: "an unknown refusal" });
        }
        if refusal.is_none() && version != VERSION {
            return Err(ProtocolError::Version { min: version, max: version, ours: VERSION });
        }
        Ok(Self { version, refusal })
    }
}

fn check_magic(bytes: &[u8]) -> Result<(), ProtocolError> {
    if bytes.starts_with(&MAGIC) {
        return Ok(());
    }
    Err(ProtocolError::NotMusec(bytes[..8].escape_ascii().to_string()))
}

fn part<const FROM: usize, const N: usize>(bytes: &[u8; FROM], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_the_preamble_are_frozen() {
        let run = RunId(*b"0123456789abcdef");
        let preamble = Preamble::new(run, LaunchId(0x0102_0304_0506_0708));
        let golden = *b"musec\r\n\x1a\0\x01\0\x010123456789abcdef\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(preamble.to_bytes(), golden);
        assert_eq!(Preamble::from_bytes(&golden), Ok(preamble));
        assert!(preamble.is_spoken());
    }

    #[test]
    fn the_bytes_of_the_answer_are_frozen() {
        let accepted = Answer { version: 1, refusal: None };
        assert_eq!(accepted.to_bytes(), *b"musec\r\n\x1a\0\x01\0\0");
        for (refusal, code) in Refusal::ALL.into_iter().zip(1u8..) {
            let answer = Answer { version: 1, refusal: Some(refusal) };
            let mut golden = *b"musec\r\n\x1a\0\x01\0\0";
            golden[11] = code;
            assert_eq!(answer.to_bytes(), golden);
            assert_eq!(Answer::from_bytes(&golden), Ok(answer));
        }
    }

    #[test]
    fn a_plain_http_request_is_named_for_what_it_is() {
        let mut request = [0; PREAMBLE_BYTES];
        request.copy_from_slice(b"GET /index.html HTTP/1.1\r\nHost: a.bc");
        let error = Preamble::from_bytes(&request).expect_err("not musec");
        assert_eq!(error.to_string(), "not musec: the connection begins with GET /ind");
    }
}
