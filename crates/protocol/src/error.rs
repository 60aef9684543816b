//! What can be wrong with bytes of a peer.

use thiserror::Error;

/// Bytes of a peer that are not what the protocol allows. The connection that sent them is closed;
/// nothing else is touched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A frame's header announces more than the limit.
    #[error("frame of {announced} bytes, above the limit of {limit}")]
    FrameTooLong {
        /// What the header said, in bytes.
        announced: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The connection does not begin with musec's magic.
    #[error("not musec: the connection begins with {0}")]
    NotMusec(String),
    /// No version of the protocol is known to both sides.
    #[error("peer speaks versions {min} to {max} of the protocol, this program speaks {ours}")]
    Version {
        /// Lowest version that the peer speaks.
        min: u16,
        /// Highest version that the peer speaks.
        max: u16,
        /// The version spoken here.
        ours: u16,
    },
    /// A message is not decodable protobuf.
    #[error("undecodable {what}: {why}")]
    Undecodable {
        /// Which message.
        what: &'static str,
        /// The decoder's words.
        why: String,
    },
    /// A message lacks a part, or a part has a value that is not allowed.
    #[error("{what} with {why}")]
    Malformed {
        /// Which message.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
}
