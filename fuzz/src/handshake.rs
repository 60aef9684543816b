//! The handshake: a stranger's first bytes, the coordinator's answer, a ticket's text.
//!
//! What is understood is said in the same bytes again; of a ticket, in bytes that mean the same.

use musec_protocol::{ANSWER_BYTES, Answer, PREAMBLE_BYTES, Preamble, Ticket};

pub(crate) fn check(bytes: &[u8]) {
    if let Some(first) = bytes.first_chunk::<PREAMBLE_BYTES>()
        && let Ok(preamble) = Preamble::from_bytes(first)
    {
        assert_eq!(preamble.to_bytes(), *first);
    }
    if let Some(first) = bytes.first_chunk::<ANSWER_BYTES>()
        && let Ok(answer) = Answer::from_bytes(first)
    {
        assert_eq!(answer.to_bytes(), *first);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(ticket) = Ticket::from_text(text)
    {
        assert_eq!(Ticket::from_text(&ticket.to_text()), Ok(ticket));
    }
}
