//! The join ticket: all that a launched worker needs to know.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use prost::Message;

use crate::{LaunchId, ProtocolError, RunId, wire};

/// What lets one attempt join one run. It holds a private key: it travels in the environment or in
/// a file of mode 0600, never in arguments, job scripts or logs; its `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The run.
    pub run: RunId,
    /// Which launch this is.
    pub launch: LaunchId,
    /// Where the coordinator listens, as `host:port`, in order of preference.
    pub addresses: Vec<String>,
    /// The run's own certificate authority, DER.
    pub ca_der: Vec<u8>,
    /// The attempt's certificate, DER.
    pub certificate_der: Vec<u8>,
    /// The attempt's private key, PKCS #8 DER.
    pub key_pkcs8: Vec<u8>,
    /// Folder in which the attempt makes its scratch folder; empty for the system's default.
    pub scratch_root: Vec<u8>,
    /// Socket of the host's guard; empty if the worker has to do without.
    pub guard_socket: Vec<u8>,
}

impl Ticket {
    /// Name of the environment variable that carries a ticket.
    pub const VARIABLE: &'static str = "MUSEC_TICKET";

    const PREFIX: &'static str = "musec1.";

    /// The name that the coordinator's certificate of a run is made out to.
    #[must_use]
    pub fn coordinator_name(run: RunId) -> String {
        format!("coordinator.{run}.musec")
    }

    /// The name that the certificate of an attempt is made out to.
    #[must_use]
    pub fn attempt_name(run: RunId, launch: LaunchId) -> String {
        format!("launch-{launch}.{run}.musec")
    }

    /// The ticket as one word of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let bytes = wire::Ticket {
            run: self.run.0.to_vec(),
            launch: self.launch.0,
            addresses: self.addresses.clone(),
            ca_der: self.ca_der.clone(),
            certificate_der: self.certificate_der.clone(),
            key_pkcs8: self.key_pkcs8.clone(),
            scratch_root: self.scratch_root.clone(),
            guard_socket: self.guard_socket.clone(),
        }
        .encode_to_vec();
        format!("{}{}", Self::PREFIX, BASE64URL_NOPAD.encode(&bytes))
    }

    /// The ticket in `text`, surrounding white space apart.
    ///
    /// # Errors
    /// If the text is no ticket. The error does not repeat the text.
    pub fn from_text(text: &str) -> Result<Self, ProtocolError> {
        let what = "ticket";
        let malformed = |why| ProtocolError::Malformed { what, why };
        let word = text.trim().strip_prefix(Self::PREFIX).ok_or_else(|| malformed("no prefix"))?;
        let bytes = BASE64URL_NOPAD
            .decode(word.as_bytes())
            .map_err(|_| malformed("characters that no ticket has"))?;
        let ticket = wire::Ticket::decode(&bytes[..])
            .map_err(|error| ProtocolError::Undecodable { what, why: error.to_string() })?;
        let run = <[u8; 16]>::try_from(ticket.run).map_err(|_| malformed("no run id"))?;
        if ticket.addresses.is_empty() {
            return Err(malformed("no address"));
        }
        Ok(Self {
            run: RunId(run),
            launch: LaunchId(ticket.launch),
            addresses: ticket.addresses,
            ca_der: ticket.ca_der,
            certificate_der: ticket.certificate_der,
            key_pkcs8: ticket.key_pkcs8,
            scratch_root: ticket.scratch_root,
            guard_socket: ticket.guard_socket,
        })
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("run", &self.run)
            .field("launch", &self.launch)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            run: RunId([7; 16]),
            launch: LaunchId(3),
            addresses: vec!["127.0.0.1:4000".into()],
            ca_der: vec![1; 300],
            certificate_der: vec![2; 300],
            key_pkcs8: b"secret".to_vec(),
            scratch_root: b"/tmp".to_vec(),
            guard_socket: Vec::new(),
        }
    }

    #[test]
    fn a_ticket_survives_its_text() {
        assert_eq!(Ticket::from_text(&format!(" {}\n", ticket().to_text())), Ok(ticket()));
    }

    #[test]
    fn neither_debug_nor_errors_show_the_key() {
        let shown = format!("{:?}", ticket());
        assert!(!shown.contains("115") && !shown.contains("secret"), "{shown}");
        let error = Ticket::from_text("musec1.c2VjcmV0!").expect_err("broken");
        assert!(!error.to_string().contains("c2Vj"), "{error}");
    }
}
