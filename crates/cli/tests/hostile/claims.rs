//! Workers with a certificate of their own that break the protocol: failed by name, alone.

use musec_protocol::{Command, CommandId, FromWorker, limits};

use crate::peer::{Peer, answer, frame, pong};
use crate::stage::{Over, Stage};

/// Workers that break the protocol, each in its turn.
const ROGUES: u32 = 3;

/// What a rogue may cost: its connection, its buffers, its failure in words.
const MEMORY_BYTES_MAX: u64 = 24 << 20;

/// Rogues that do this when they have their first command; each is hung up on, and its failure has
/// these words.
fn rogues_that(does: impl Fn(&mut Peer, &Command), words: &str) -> Over {
    rogues_with_steps_that("", does, words)
}

/// The same, with steps before the others.
fn rogues_with_steps_that(steps: &str, does: impl Fn(&mut Peer, &Command), words: &str) -> Over {
    let stage = Stage::with_steps(ROGUES, steps);
    let mut peers = Vec::new();
    for ticket in stage.rogues() {
        let mut peer = Peer::joined(&ticket);
        let command = peer.command().expect("its first command");
        peers.push((peer, command));
    }
    let (over, ()) = stage.under(|_, _| {
        for (mut peer, command) in peers {
            does(&mut peer, &command);
            peer.awaits_hangup();
        }
    });
    over.assert_rogues_failed(words);
    over.assert_memory(MEMORY_BYTES_MAX);
    over
}

/// What it says may find the connection closed already.
fn say(peer: &mut Peer, message: &FromWorker) {
    drop(peer.say(message));
}

#[test]
fn an_answer_to_a_command_never_sent_fails_its_worker_by_name() {
    let over = rogues_that(
        |peer, _| say(peer, &answer(CommandId(77))),
        "it answered command 77, which was not awaited",
    );
    assert_eq!(over.report["workers"]["failed"], ROGUES);
}

#[test]
fn a_second_answer_to_a_command_fails_its_worker_by_name() {
    rogues_that(
        |peer, command| {
            // In one write: the second one comes before the answer to the first.
            let mut bytes = Vec::new();
            frame(&answer(command.id), &mut bytes);
            frame(&answer(command.id), &mut bytes);
            drop(peer.write(&bytes));
        },
        "it answered command 0, which was not awaited",
    );
}

#[test]
fn answers_out_of_order_fail_their_worker_by_name() {
    rogues_that(
        |peer, command| {
            say(peer, &answer(CommandId(command.id.0 + 1)));
            say(peer, &answer(command.id));
        },
        "it answered command 1, which was not awaited",
    );
}

#[test]
fn answers_that_overtake_one_another_in_their_lane_fail_their_worker_by_name() {
    let list = "[[step]]\nstate = \"list\"\npipelined = true\n\
                do = [{ echo = \"a\" }, { echo = \"b\" }, { echo = \"c\" }]\n";
    rogues_with_steps_that(
        list,
        |peer, _| {
            let second = peer.command().expect("the whole list is sent at once");
            say(peer, &answer(second.id));
        },
        "it answered command 1 before command 0 of its lane",
    );
}

#[test]
fn an_answer_to_a_heartbeat_never_sent_fails_its_worker_by_name() {
    rogues_that(|peer, _| say(peer, &pong(u64::MAX)), "it answered a heartbeat that was not sent");
}

#[test]
fn a_second_hello_fails_its_worker_by_name() {
    rogues_that(|peer, _| drop(peer.hello_again()), "it said hello twice");
}

#[test]
fn a_header_of_four_gibibytes_after_the_hello_fails_its_worker_by_name() {
    rogues_that(
        |peer, _| drop(peer.write(&[0xff; 4])),
        &format!("frame of 4294967295 bytes, above the limit of {}", limits::FRAME_BYTES_MAX),
    );
}

#[test]
fn garbage_after_the_hello_fails_its_worker_by_name() {
    rogues_that(
        |peer, _| drop(peer.write(&[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9])),
        "undecodable message of a worker",
    );
}

#[test]
fn bytes_that_are_no_tls_after_the_hello_end_their_worker_alone() {
    use std::io::Write;
    rogues_that(|peer, _| drop(peer.socket().write_all(b"GET / HTTP/1.1\r\n\r\n")), "TLS broken");
}
