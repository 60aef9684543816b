//! Workers that say more than there is to say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use musec_protocol::note::Told;
use musec_protocol::{
    FromWorker, Note, Object, Outcome, Phase, PhaseKind, Reply, Stall, Tail, WTime, limits,
};

use crate::peer::{Peer, frame, pong, reply};
use crate::stage::Stage;

/// Workers that flood at the same time.
const ROGUES: u32 = 2;

/// What they may cost together: a frame being read and what waits for the loop, for each.
const MEMORY_BYTES_MAX: u64 = 48 << 20;

/// Bytes of a burst: far more than sockets hold.
const BURST_BYTES: usize = 8 << 20;

/// Rogues that send one message over and over until they are hung up on.
fn rogues_that_repeat(message: &FromWorker, words: &str) {
    let stage = Stage::new(ROGUES);
    let peers: Vec<Peer> = stage.rogues().iter().map(Peer::joined).collect();
    let mut burst = Vec::new();
    while burst.len() < BURST_BYTES {
        frame(message, &mut burst);
    }
    let (over, ()) = stage.under(|_, _| {
        std::thread::scope(|scope| {
            for mut peer in peers {
                scope.spawn(|| {
                    // Endless, unless it is hung up on.
                    while peer.write(&burst).is_ok() {}
                    drop(peer);
                });
            }
        });
    });
    over.assert_rogues_failed(words);
    over.assert_memory(MEMORY_BYTES_MAX);
}

#[test]
fn a_flood_of_stalls_fails_its_worker_by_name() {
    let stall = Stall { from: WTime::from_ns(1), to: WTime::from_ns(2_000_000_000) };
    rogues_that_repeat(&FromWorker::Stall(stall), "it reported more stalls than time has passed");
}

#[test]
fn a_flood_of_answers_to_heartbeats_fails_its_worker_by_name() {
    rogues_that_repeat(&pong(0), "it answered a heartbeat that was not sent");
}

#[test]
fn a_flood_of_answers_fails_its_worker_by_name() {
    rogues_that_repeat(&crate::peer::answer(musec_protocol::CommandId(9)), "which was not awaited");
}

#[test]
fn a_flood_of_short_infos_fails_its_worker_by_name() {
    rogues_that_repeat(&info(b"v"), "its code told more than 16777216 bytes of infos");
}

#[test]
fn a_flood_of_long_infos_fails_its_worker_by_name() {
    let longest = vec![b'v'; limits::NOTE_BYTES_MAX - b"info k\n".len()];
    rogues_that_repeat(&info(&longest), "its code told more than 16777216 bytes of infos");
}

#[test]
fn a_flood_of_notes_that_mean_nothing_fails_its_worker_by_name() {
    let garbled = Note { received: WTime::from_ns(1), text: b"garbled".to_vec() };
    rogues_that_repeat(
        &FromWorker::Note(garbled),
        "its code told more than 16777216 bytes of infos",
    );
}

fn info(value: &[u8]) -> FromWorker {
    let text = Told::Info { key: "k".into(), value: value.to_vec() }.to_bytes();
    FromWorker::Note(Note { received: WTime::from_ns(1), text: text.expect("an info") })
}

#[test]
fn an_output_above_the_limit_fails_its_worker_by_name() {
    let mut long = reply(musec_protocol::CommandId(0));
    long.stdout = tail(limits::OUTPUT_TAIL_BYTES_MAX + 1);
    rogues_that_repeat(&FromWorker::Reply(long), "an output tail above the limit");
}

#[test]
fn objects_of_a_command_that_moves_none_fail_its_worker_by_name() {
    let mut long = reply(musec_protocol::CommandId(0));
    long.objects = vec![object("k"); limits::OBJECTS_MAX];
    rogues_that_repeat(&FromWorker::Reply(long), "with 65536 objects, above 1");
}

#[test]
fn a_name_of_an_object_above_the_limit_fails_its_worker_by_name() {
    let mut long = reply(musec_protocol::CommandId(0));
    long.objects = vec![object(&"k".repeat(limits::OBJECT_TEXT_BYTES_MAX + 1))];
    rogues_that_repeat(&FromWorker::Reply(long), "an object's name above the limit");
}

fn object(key: &str) -> Object {
    let at = WTime::from_ns(1);
    Object {
        key: key.into(),
        etag: String::new(),
        version: String::new(),
        bytes: 1,
        asked: at,
        first_byte: at,
        last_byte: at,
        done: at,
    }
}

#[test]
fn a_worker_that_floods_output_slows_nobody() {
    let mut longest = reply(musec_protocol::CommandId(0));
    longest.stdout = tail(limits::OUTPUT_TAIL_BYTES_MAX);
    longest.stderr = tail(limits::OUTPUT_TAIL_BYTES_MAX);
    let at = longest.started;
    longest.phases = vec![Phase { kind: PhaseKind::User, from: at, to: at }; limits::PHASES_MAX];
    floods_slow_nobody(&longest, 100);
}

/// Rogues that answer each command at once, and with this, for as long as the attack goes on.
fn floods_slow_nobody(longest: &Reply, answers_min: u64) {
    let stage = Stage::new(ROGUES);
    let peers: Vec<Peer> = stage.rogues().iter().map(Peer::joined).collect();
    let (over, answered) = stage.under(|_, goes_on| {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flood = |peer| scope.spawn(|| flood(peer, longest, &is_over));
            let floods: Vec<_> = peers.into_iter().map(flood).collect();
            while goes_on() {
                std::thread::sleep(Duration::from_millis(20));
            }
            is_over.store(true, Ordering::Relaxed);
            floods.into_iter().map(|flood| flood.join().expect("flooded")).sum::<u64>()
        })
    });
    println!("{answered} answers of the largest size");
    assert!(answered > answers_min, "{answered} answers are no flood");
    over.assert_rogues_failed("the worker vanished");
    over.assert_memory(MEMORY_BYTES_MAX);
}

fn flood(mut peer: Peer, longest: &Reply, is_over: &AtomicBool) -> u64 {
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        let command = peer.command().expect("its program is endless");
        let outcome = Outcome::Exited(0);
        let answer = Reply { id: command.id, outcome, ..longest.clone() };
        peer.say(&FromWorker::Reply(answer)).expect("it is let go on");
        answered += 1;
    }
    answered
}

fn tail(bytes: usize) -> Tail {
    Tail { text: vec![b'x'; bytes], total_bytes: 1 << 40 }
}
