//! Who has no business here: refused by name, counted, without a slot.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use musec_protocol::{LaunchId, Preamble, Refusal, RunId, Ticket, limits};

use crate::peer::{Peer, Proof, connect, is_timeout, tls};
use crate::stage::{Stage, WATCHDOG, tickets_of_workers};
use crate::support::{Place, number, wait_for};

/// Memory that a handful of strangers at a time may cost: buffers of TLS, and what the allocator
/// keeps of them.
const FEW_BYTES_MAX: u64 = 16 << 20;

/// Strangers, one after another, while honest workers work; each must be sent away before the next
/// one comes. Returns how many there were, and what the run was like.
fn one_after_another(reason: &str, stranger: impl Fn(&[Ticket])) -> u64 {
    let stage = Stage::new(0);
    let tickets = stage.stolen();
    assert_eq!(tickets.len(), 2, "two workers are at work");
    let (over, strangers) = stage.under(|_, goes_on| {
        let mut strangers = 0;
        while strangers < 3 || goes_on() {
            stranger(&tickets);
            strangers += 1;
        }
        strangers
    });
    assert_eq!(over.refused(reason), strangers, "{}", over.report["coordinator"]);
    let refused = over.report["coordinator"]["refused"].as_object().expect("counts");
    assert_eq!(refused.len(), 1, "for no other reason: {refused:?}");
    over.assert_memory(FEW_BYTES_MAX);
    strangers
}

/// Waits until the coordinator has closed.
fn closed(mut tcp: TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end as good as any.
    if let Err(error) = tcp.read_to_end(&mut rest) {
        assert!(!is_timeout(&error), "the coordinator does not close");
    }
}

#[test]
fn a_plain_http_request_is_refused_and_takes_no_slot() {
    one_after_another("not TLS", |tickets| {
        let mut tcp = connect(&tickets[0]);
        tcp.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
        closed(tcp);
    });
}

#[test]
fn tls_without_a_certificate_is_refused() {
    one_after_another("no certificate", |tickets| {
        Peer::new(&tickets[0], &Proof::Nothing).awaits_refusal();
    });
}

#[test]
fn a_certificate_of_another_run_is_refused() {
    one_after_another("certificate of another run", |tickets| {
        Peer::new(&tickets[0], &Proof::AnotherRun).awaits_refusal();
    });
}

#[test]
fn a_certificate_of_another_attempt_is_refused() {
    one_after_another("certificate of another attempt", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let refused = peer.knock(tickets[0].run, tickets[1].launch);
        assert_eq!(refused, Some(Refusal::Certificate));
    });
}

#[test]
fn an_attempt_that_was_never_launched_is_refused() {
    one_after_another("certificate of another attempt", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let refused = peer.knock(tickets[0].run, LaunchId(u64::MAX));
        assert_eq!(refused, Some(Refusal::Certificate));
    });
}

#[test]
fn an_attempt_that_has_joined_cannot_join_again() {
    one_after_another("attempt not awaited", |tickets| {
        let mut peer = Peer::new(&tickets[1], &Proof::Ticket);
        assert_eq!(peer.knock(tickets[1].run, tickets[1].launch), Some(Refusal::Launch));
    });
}

#[test]
fn a_worker_that_names_another_run_is_refused() {
    one_after_another("another run", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        assert_eq!(peer.knock(RunId([7; 16]), tickets[0].launch), Some(Refusal::Run));
    });
}

#[test]
fn garbage_after_the_handshake_is_refused() {
    one_after_another("not musec inside TLS", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        peer.write(&[b'x'; 5000]).expect("written");
        peer.awaits_hangup();
    });
}

#[test]
fn garbage_in_the_place_of_a_hello_is_refused() {
    one_after_another("not musec inside TLS", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let mut bytes = preamble(&tickets[0]);
        bytes.extend_from_slice(&[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        peer.write(&bytes).expect("written");
        peer.awaits_hangup();
    });
}

#[test]
fn another_message_in_the_place_of_a_hello_is_refused() {
    one_after_another("not musec inside TLS", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let mut bytes = preamble(&tickets[0]);
        crate::peer::frame(&crate::peer::pong(0), &mut bytes);
        peer.write(&bytes).expect("written");
        peer.awaits_hangup();
    });
}

#[test]
fn a_header_of_four_gibibytes_before_the_hello_is_refused() {
    one_after_another("frame above the limit", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let mut bytes = preamble(&tickets[0]);
        bytes.extend_from_slice(&[0xff; 4]);
        peer.write(&bytes).expect("written");
        peer.awaits_hangup();
    });
}

#[test]
fn a_hello_as_long_as_a_frame_is_refused_before_it_is_taken_in() {
    one_after_another("frame above the limit", |tickets| {
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        let mut bytes = preamble(&tickets[0]);
        bytes.extend_from_slice(
            &u32::try_from(limits::FRAME_BYTES_MAX).expect("4 MiB").to_be_bytes(),
        );
        peer.write(&bytes).expect("written");
        peer.awaits_hangup();
    });
}

#[test]
fn of_two_thousand_idle_connections_the_newest_wait_and_the_others_go() {
    const IDLE: usize = 2000;
    /// What TLS holds of a connection that says nothing, with what the allocator adds.
    const IDLE_BYTES_MAX: u64 = 40 << 10;
    raise_descriptors(IDLE as u64 + 500);
    let stage = Stage::new(0);
    let tickets = stage.stolen();
    let (over, idle) = stage.under(|stage, goes_on| {
        let idle: Vec<TcpStream> = (0..IDLE).map(|_| connect(&tickets[0])).collect();
        let mut refused = 0;
        let seen = wait_for(WATCHDOG, || {
            refused = refused_so_far(stage, "too many unauthenticated");
            (refused >= (IDLE - limits::UNAUTHENTICATED_MAX) as u64 && !goes_on()).then_some(())
        });
        assert!(seen.is_some(), "{refused} of {IDLE} made room for the others");
        // A worker that comes meanwhile is heard at once.
        let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
        assert_eq!(peer.knock(tickets[0].run, tickets[0].launch), Some(Refusal::Launch));
        idle
    });
    drop(idle);
    assert_eq!(over.refused("attempt not awaited"), 1);
    over.assert_memory(limits::UNAUTHENTICATED_MAX as u64 * IDLE_BYTES_MAX);
}

#[test]
fn one_byte_a_second_ends_with_the_time_for_the_handshake() {
    /// Of each kind.
    const SLOW: u64 = 20;
    let stage = Stage::new(0);
    let tickets = stage.stolen();
    let sent = AtomicU64::new(0);
    let (over, ()) = stage.under(|_, _| {
        std::thread::scope(|scope| {
            for _ in 0..SLOW {
                scope.spawn(|| {
                    let mut hello = Vec::new();
                    tls(&tickets[0], &Proof::Ticket).write_tls(&mut hello).expect("a hello of TLS");
                    let mut tcp = connect(&tickets[0]);
                    drip(&hello, &sent, |byte| tcp.write_all(&[byte]));
                });
                scope.spawn(|| {
                    let mut peer = Peer::new(&tickets[0], &Proof::Ticket);
                    let bytes = preamble(&tickets[0]);
                    drip(&bytes, &sent, |byte| peer.write(&[byte]));
                });
            }
        });
    });
    assert_eq!(over.refused("handshake timeout"), 2 * SLOW, "{}", over.report["coordinator"]);
    let sent = sent.into_inner();
    let bytes_max = 2 * SLOW * (limits::HANDSHAKE_TIME_MAX.as_secs() + 20);
    assert!((2 * SLOW..bytes_max).contains(&sent), "{sent} bytes went through");
    over.assert_memory(FEW_BYTES_MAX);
}

/// One byte a second until nobody takes them any more.
fn drip(bytes: &[u8], sent: &AtomicU64, mut write: impl FnMut(u8) -> std::io::Result<()>) {
    for byte in bytes {
        if write(*byte).is_err() {
            return;
        }
        sent.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("the coordinator took all {} bytes", bytes.len());
}

#[test]
fn workers_come_to_the_address_that_listen_names_and_the_port_that_it_fixes() {
    let job =
        "[job]\nworkers = 1\n[[step]]\nrun = \"until [ -e $STAGE/go ]; do sleep 0.02; done\"\n";
    // A port that was free a moment ago may be taken by now: then another is tried.
    let done = (0..20).any(|_| {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
        let address = free.expect("an address").to_string();
        let place = Place::new(job);
        let mut command = place.musec(&["run", "job.toml", "--quiet", "--listen", &address]);
        let mut musec = command.env("STAGE", place.path("")).spawn().expect("musec starts");
        let seen = wait_for(WATCHDOG, || {
            if musec.try_wait().expect("waited").is_some() {
                return Some(None);
            }
            let tickets = tickets_of_workers(&place);
            tickets.into_iter().next().map(Some)
        });
        let Some(ticket) = seen.expect("a worker, or an end") else { return false };
        std::fs::write(place.path("go"), "").expect("marked");
        assert_eq!(ticket.addresses, [address]);
        let ended = wait_for(WATCHDOG, || musec.try_wait().expect("waited"));
        assert_eq!(ended.expect("it ends").code(), Some(0));
        true
    });
    assert!(done, "no port was free");
}

fn preamble(ticket: &Ticket) -> Vec<u8> {
    Preamble::new(ticket.run, ticket.launch).to_bytes().to_vec()
}

fn refused_so_far(stage: &Stage, reason: &str) -> u64 {
    let report = stage.place.report();
    report["coordinator"]["refused"].get(reason).map_or(0, number)
}

/// Room for as many connections in this process.
fn raise_descriptors(needed: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).expect("2,500 open files are allowed");
    }
}

impl Peer {
    /// Asserts that the coordinator does not go on after TLS' last step, which is the server's.
    fn awaits_refusal(mut self) {
        // Whether this gets through depends on who is faster.
        drop(self.say(&crate::peer::pong(0)));
        self.awaits_hangup();
    }
}
