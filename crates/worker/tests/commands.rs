//! Commands over a real session: what comes back, and when.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use musec_protocol::limits::OUTPUT_TAIL_BYTES_MAX;
use musec_protocol::{
    Action, ByteRange, CommandId, ErrorKind, FromWorker, Get, Outcome, PhaseKind, Place, Put,
    Refusal, Reply, Run, ToWorker, Welcome, Which,
};
use support::{Coordinator, Running, Session, eventually, is_alive, number_in, shell, worker};

fn join() -> (Coordinator, Session, Running) {
    let coordinator = Coordinator::new();
    let worker = worker(&coordinator.ticket("".as_ref()));
    let session = coordinator.accept(coordinator.welcome());
    (coordinator, session, worker)
}

fn run(text: &str) -> Action {
    Action::Run(shell(text))
}

fn get(key: &str, file: &str) -> Action {
    Action::Get(one(key, file))
}

fn put(file: &str, key: &str) -> Action {
    Action::Put(Put {
        file: file.into(),
        key: key.into(),
        which: Which::One,
        concurrency: 1,
        deliver: None,
    })
}

fn one(key: &str, file: &str) -> Get {
    Get {
        place: Place::Store,
        key: key.into(),
        file: file.into(),
        which: Which::One,
        range: None,
        concurrency: 3,
    }
}

fn failure(reply: &Reply) -> (ErrorKind, &str) {
    match &reply.outcome {
        Outcome::Failed { kind, text } => (*kind, text),
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn hello_names_the_process_and_quit_ends_it_in_order() {
    let (coordinator, mut session, mut worker) = join();
    assert_eq!(session.hello().pid, worker.0.id());
    assert!(!session.hello().boot_id.is_empty() && session.hello().cpus > 0);
    assert_eq!(session.ask(Action::Echo(b"x".to_vec())).outcome, Outcome::Ok);
    assert!(coordinator.scratch().is_dir());
    assert_eq!(session.ask(Action::Quit).outcome, Outcome::Ok);
    assert!(session.is_closed());
    assert!(worker.ended().success());
    assert!(!coordinator.scratch().exists());
}

#[test]
fn a_refusal_is_told_in_words() {
    let coordinator = Coordinator::new();
    let mut worker = worker(&coordinator.ticket("".as_ref()));
    coordinator.refuse(Refusal::Over);
    assert!(!worker.ended().success());
    let mut told = String::new();
    let mut stderr = worker.0.stderr.take().expect("piped");
    std::io::Read::read_to_string(&mut stderr, &mut told).expect("text");
    assert!(told.contains("run is over"), "{told}");
}

#[test]
fn another_runs_coordinator_is_not_trusted() {
    let (ours, other) = (Coordinator::new(), Coordinator::new());
    let mut ticket = ours.ticket("".as_ref());
    ticket.addresses = other.ticket("".as_ref()).addresses;
    let mut worker = worker(&ticket);
    let stranger = std::thread::spawn(move || other.refuse(Refusal::Run));
    assert!(!worker.ended().success());
    assert!(stranger.join().is_err(), "no preamble came");
}

#[test]
fn exit_codes_and_signals_come_back_with_what_was_used() {
    let (_coordinator, mut session, _worker) = join();
    let reply = session.ask(run("echo out; echo err >&2; exit 3"));
    assert_eq!(reply.outcome, Outcome::Exited(3));
    assert_eq!((&*reply.stdout.text, &*reply.stderr.text), (&b"out\n"[..], &b"err\n"[..]));
    assert!(reply.usage.expect("used").peak_rss_bytes > 0);
    assert_eq!(reply.phases.len(), 1);
    assert_eq!(reply.phases[0].kind, PhaseKind::User);
    assert_eq!(session.ask(run("kill -9 $$")).outcome, Outcome::Signalled(9));
}

#[test]
fn a_process_sees_its_worker_and_not_the_ticket() {
    let (coordinator, mut session, _worker) = join();
    let text = "echo $MUSEC_WORKER $MUSEC_ATTEMPT ${MUSEC_TICKET-none} $A; pwd";
    let env = vec![(b"A".to_vec(), b"b".to_vec())];
    let reply = session.ask(Action::Run(Run { env, ..shell(text) }));
    let scratch = coordinator.scratch().canonicalize().expect("there");
    let wanted = format!("0 0 none b\n{}\n", scratch.display());
    assert_eq!(String::from_utf8_lossy(&reply.stdout.text), wanted);
}

#[test]
fn shipped_programs_are_found_first_and_keep_their_name() {
    let coordinator = Coordinator::new();
    let shipped = coordinator.path("inputs").join("true");
    fs::write(&shipped, "#!/bin/sh\necho shipped\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&shipped, mode).expect("executable");
    let _worker = worker(&coordinator.ticket("".as_ref()));
    let mut welcome = coordinator.welcome();
    welcome.path_dirs = vec![coordinator.path("inputs").into_os_string().into_encoded_bytes()];
    let mut session = coordinator.accept(welcome);
    let bare = |name: &str| Action::Run(Run { argv: vec![name.into()], ..Run::default() });
    assert_eq!(session.ask(bare("true")).stdout.text, b"shipped\n");
    let reply = session.ask(bare("no-such-program"));
    let (kind, text) = failure(&reply);
    assert_eq!(kind, ErrorKind::Spawn);
    assert!(text.contains("no-such-program") && text.contains("files"), "{text}");
}

#[test]
fn standard_streams_can_be_files_of_the_scratch_folder() {
    let (coordinator, mut session, _worker) = join();
    let file = |name: &str| Some(name.as_bytes().to_vec());
    let first = Run { stdout: file("a/b.txt"), ..shell("printf hello") };
    assert_eq!(session.ask(Action::Run(first)).outcome, Outcome::Exited(0));
    let second = Run { stdin: file("a/b.txt"), ..shell("tr a-z A-Z") };
    assert_eq!(session.ask(Action::Run(second)).stdout.text, b"HELLO");
    let third = Run { cwd: file("a"), ..shell("cat b.txt") };
    assert_eq!(session.ask(Action::Run(third)).stdout.text, b"hello");
    assert_eq!(fs::read(coordinator.scratch().join("a/b.txt")).expect("there"), b"hello");
    session.ask(run("mkfifo pipe"));
    for run in [Run { stdin: file("pipe"), ..shell("") }, Run { stdout: file("pipe"), ..shell("") }]
    {
        assert_eq!(failure(&session.ask(Action::Run(run))).0, ErrorKind::Invalid);
    }
}

#[test]
fn of_megabytes_of_output_the_end_is_kept_and_all_is_counted() {
    let (_coordinator, mut session, _worker) = join();
    let reply = session.ask(run("head -c 5000000 /dev/zero | tr '\\0' x; printf end"));
    assert_eq!(reply.outcome, Outcome::Exited(0));
    assert_eq!(reply.stdout.total_bytes, 5_000_003);
    assert_eq!(reply.stdout.text.len(), OUTPUT_TAIL_BYTES_MAX);
    assert!(reply.stdout.text.ends_with(b"xend"));
}

#[test]
fn a_time_limit_kills_the_group_with_its_children() {
    let (coordinator, mut session, _worker) = join();
    let text = "trap '' TERM; (trap '' TERM; sleep 1000) & echo $! > child; wait; sleep 1000";
    let reply = session.ask_within(Action::Run(Run { grace_ms: 50, ..shell(text) }), 300);
    assert_eq!(reply.outcome, Outcome::TimedOut { limit_ms: 300 });
    assert!(reply.usage.is_some());
    let lasted = reply.finished.since(reply.started);
    assert!(lasted >= 350_000_000, "limit and grace: {lasted}");
    let child = number_in(&coordinator.scratch().join("child"));
    eventually("the child is dead", || !is_alive(child));
}

#[test]
fn a_process_that_obeys_term_has_its_grace_and_no_longer() {
    let (coordinator, mut session, _worker) = join();
    let text = "trap 'echo bye > last; exit 0' TERM; sleep 1000 & wait";
    let reply = session.ask_within(Action::Run(Run { grace_ms: 15_000, ..shell(text) }), 300);
    assert_eq!(reply.outcome, Outcome::TimedOut { limit_ms: 300 });
    assert_eq!(fs::read(coordinator.scratch().join("last")).expect("there"), b"bye\n");
    assert!(reply.finished.since(reply.started) < 10_000_000_000);
}

#[test]
fn time_limits_hold_for_commands_that_run_no_process() {
    let (_coordinator, mut session, _worker) = join();
    let reply = session.ask_within(Action::Sleep { duration_ns: 1_000_000_000_000 }, 50);
    assert_eq!(reply.outcome, Outcome::TimedOut { limit_ms: 50 });
    assert_eq!(reply.phases[0].kind, PhaseKind::Sleep);
    let reply = session.ask_within(Action::Sleep { duration_ns: 1_000_000 }, 60_000);
    assert_eq!(reply.outcome, Outcome::Ok);
}

#[test]
fn what_a_run_leaves_in_its_group_dies_with_it() {
    let (coordinator, mut session, _worker) = join();
    let start = Instant::now();
    let reply = session.ask(run("sleep 1000 & echo $! > child"));
    assert_eq!(reply.outcome, Outcome::Exited(0));
    assert!(start.elapsed() < Duration::from_secs(10), "the child's pipes held it up");
    let child = number_in(&coordinator.scratch().join("child"));
    eventually("the child is dead", || !is_alive(child));
}

#[test]
fn a_daemon_with_a_session_of_its_own_dies_with_the_worker() {
    let (coordinator, mut session, mut worker) = join();
    let text = "env -i /usr/bin/setsid /bin/sh -c 'echo $$ > daemon; exec sleep 1000' \
                > /dev/null 2>&1 & while [ ! -s daemon ]; do sleep 0.01; done";
    assert_eq!(session.ask(run(text)).outcome, Outcome::Exited(0));
    let daemon = number_in(&coordinator.scratch().join("daemon"));
    assert!(is_alive(daemon), "it left the group, so it may stay");
    session.ask(Action::Quit);
    assert!(worker.ended().success());
    assert!(!is_alive(daemon));
}

#[test]
fn pipelined_commands_keep_their_order_and_wait_for_one_another() {
    let (_coordinator, mut session, _worker) = join();
    let ids: Vec<_> = (0..20)
        .map(|i| session.send(if i == 0 { run("sleep 0.2") } else { Action::Echo(Vec::new()) }))
        .collect();
    let replies: Vec<_> = ids.iter().map(|_| session.reply()).collect();
    assert_eq!(replies.iter().map(|reply| reply.id).collect::<Vec<_>>(), ids);
    assert!(replies.windows(2).all(|pair| pair[0].finished <= pair[1].started));
    assert!(replies[1].received < replies[0].finished, "it waited in the lane");
}

#[test]
fn a_background_command_lets_its_lane_go_on_and_can_be_cancelled() {
    let (_coordinator, mut session, _worker) = join();
    let slow = session.send_command(run("sleep 1000"), true, None);
    assert_eq!(session.ask(Action::Echo(Vec::new())).outcome, Outcome::Ok);
    let cancel = session.send(Action::Cancel(slow));
    let replies = [session.reply(), session.reply()];
    let of = |id| replies.iter().find(|reply| reply.id == id).expect("answered");
    assert_eq!(of(cancel).outcome, Outcome::Ok);
    assert_eq!(of(slow).outcome, Outcome::Cancelled);
    assert_eq!(session.ask(Action::Cancel(CommandId(0))).outcome, Outcome::Ok, "it is over");
}

#[test]
fn objects_of_any_name_and_size_come_back_as_they_were_put() {
    let (coordinator, mut session, _worker) = join();
    let sizes = [("empty", 0), ("small", 5), ("large", 20_000_001)];
    for (name, size) in sizes {
        let text = format!("head -c {size} /dev/urandom > {name}");
        assert_eq!(session.ask(run(&text)).outcome, Outcome::Exited(0));
    }
    let keys =
        ["plain", "a b/c d.txt", "100%/%20.bin", "ünï/日本.y4m", "q?x=#1&[2]*~\\\"'", "a:b+c"];
    for (name, size) in sizes {
        for key in keys {
            let sent = session.ask(put(name, key));
            assert_eq!(sent.outcome, Outcome::Ok, "{key}");
            assert_eq!(sent.bytes, size);
            let literal = coordinator.path("store").join(key);
            assert!(literal.is_file(), "{key} is {}", literal.display());
            let got = session.ask(get(key, "new/back"));
            assert_eq!(got.outcome, Outcome::Ok, "{key}");
            assert_eq!(got.bytes, size);
            assert_eq!(got.objects[0].etag, sent.objects[0].etag, "{key}");
            assert!(!got.objects[0].etag.is_empty());
            let compared = session.ask(run(&format!("cmp {name} new/back")));
            assert_eq!(compared.outcome, Outcome::Exited(0), "{key}");
        }
    }
    let left = fs::read_dir(coordinator.scratch()).expect("there").flatten();
    assert_eq!(left.count(), sizes.len() + 1, "no partial file is left");
}

#[test]
fn phases_of_transfers_fill_their_time() {
    let (_coordinator, mut session, _worker) = join();
    session.ask(run("head -c 9000000 /dev/zero > big"));
    let replies = [session.ask(put("big", "big")), session.ask(get("big", "again"))];
    for (reply, first) in replies.iter().zip([PhaseKind::FirstByte; 2]) {
        let phases = &reply.phases;
        assert_eq!(phases[0].kind, first);
        assert!(phases.windows(2).all(|pair| pair[0].to == pair[1].from), "{phases:?}");
        for kind in [PhaseKind::Transfer, PhaseKind::Disk] {
            assert!(phases.iter().any(|phase| phase.kind == kind), "{phases:?}");
        }
        let outside = reply.finished.since(reply.started)
            - phases.iter().map(|phase| phase.to.since(phase.from)).sum::<u64>();
        let edges = phases[0].from.since(reply.started)
            + reply.finished.since(phases.last().expect("some").to);
        assert_eq!(outside, edges);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let (_coordinator, mut session, _worker) = join();
    let reply = session.ask(get("no/such", "file"));
    let (kind, text) = failure(&reply);
    assert_eq!(kind, ErrorKind::Missing);
    assert!(text.contains("no/such") && text.contains("/store"), "{text}");
    let reply = session.ask(put("absent", "key"));
    let (kind, text) = failure(&reply);
    assert_eq!(kind, ErrorKind::Missing);
    assert!(text.contains("absent"), "{text}");
}

#[test]
fn no_name_leads_out_of_the_scratch_folder() {
    let (coordinator, mut session, _worker) = join();
    fs::write(coordinator.path("store").join("key"), "x").expect("written");
    fs::write(coordinator.path("outside"), "secret").expect("written");
    let outside = coordinator.path("outside");
    session.ask(run("ln -s .. up; ln -s / root; ln -s nowhere loose; mkdir in; ln -s in alias"));
    for name in ["../outside", "in/../../x", "up/x", "root/tmp/x", "loose", "up/../../outside"] {
        assert_eq!(failure(&session.ask(get("key", name))).0, ErrorKind::Invalid, "{name}");
        assert_eq!(failure(&session.ask(put(name, "stolen"))).0, ErrorKind::Invalid, "{name}");
        let written = Run { stdout: Some(name.into()), ..shell("echo x") };
        assert_eq!(failure(&session.ask(Action::Run(written))).0, ErrorKind::Invalid, "{name}");
    }
    let absolute = outside.to_str().expect("text");
    assert_eq!(failure(&session.ask(put(absolute, "stolen"))).0, ErrorKind::Invalid);
    assert_eq!(session.ask(get("key", "alias/x")).outcome, Outcome::Ok, "a link that stays within");
    assert_eq!(fs::read(&outside).expect("there"), b"secret");
    assert!(!coordinator.path("store").join("stolen").exists());
}

#[test]
fn clean_empties_the_folder_and_follows_no_link() {
    let (coordinator, mut session, _worker) = join();
    fs::write(coordinator.path("kept"), "x").expect("written");
    session.ask(run("ln -s ../../kept f; ln -s ../.. d; mkdir -p a/b; touch a/b/c; chmod 500 a/b"));
    assert_eq!(session.ask(Action::Clean).outcome, Outcome::Ok);
    assert_eq!(fs::read_dir(coordinator.scratch()).expect("there").count(), 0);
    assert!(coordinator.path("kept").exists());
}

#[test]
fn clean_leaves_what_was_there_at_a_mark() {
    let (coordinator, mut session, _worker) = join();
    session.ask(run("mkdir -p model/a; echo 1 > model/a/x; echo 2 > list"));
    assert_eq!(session.ask(Action::Mark).outcome, Outcome::Ok);
    for _ in 0..2 {
        session
            .ask(run("mkdir -p other/b model/new; touch other/b/y model/z model/a/z model/new/n"));
        assert_eq!(session.ask(Action::Clean).outcome, Outcome::Ok);
        let left = session.ask(run("find . -mindepth 1 | sort | tr '\\n' ' '")).stdout.text;
        assert_eq!(left, b"./list ./model ./model/a ./model/a/x ");
    }
    assert_eq!(session.ask(Action::Quit).outcome, Outcome::Ok);
    assert!(session.is_closed() && !coordinator.scratch().exists());
}

#[test]
fn folders_and_globs_keep_their_paths() {
    let (coordinator, mut session, _worker) = join();
    session.ask(run("mkdir -p out/deep/er; for f in a.png b.png c.txt deep/d.png deep/er/e.png; do echo $f > out/$f; done"));
    let several = |file: &str, key: &str, which| {
        Action::Put(Put {
            file: file.into(),
            key: key.into(),
            which,
            concurrency: 2,
            deliver: None,
        })
    };
    let keys = |reply: &Reply| -> Vec<String> {
        assert_eq!(reply.outcome, Outcome::Ok);
        reply.objects.iter().map(|object| object.key.clone()).collect()
    };
    let all = ["k/a.png", "k/b.png", "k/c.txt", "k/deep/d.png", "k/deep/er/e.png"];
    let reply = session.ask(several("out/", "k/", Which::Folder));
    assert_eq!(keys(&reply), all);
    assert_eq!(reply.bytes, 6 + 6 + 6 + 11 + 14);
    let reply = session.ask(several("out/*.png", "", Which::Glob));
    assert_eq!(keys(&reply), ["a.png", "b.png"]);
    let reply = session.ask(several("out/**/*.png", "p/", Which::Glob));
    assert_eq!(keys(&reply), ["p/a.png", "p/b.png", "p/deep/d.png", "p/deep/er/e.png"]);

    let get = |key: &str, file: &str, which| Action::Get(Get { which, ..one(key, file) });
    assert_eq!(keys(&session.ask(get("k/", "back", Which::Folder))), all);
    assert_eq!(session.ask(run("diff -r out back")).outcome, Outcome::Exited(0));
    assert_eq!(keys(&session.ask(get("k/*.png", ".", Which::Glob))), ["k/a.png", "k/b.png"]);
    assert_eq!(
        session.ask(run("cmp out/a.png a.png && cmp out/b.png b.png")).outcome,
        Outcome::Exited(0)
    );
    let reply = session.ask(get("k/*.jpg", ".", Which::Glob));
    assert_eq!(failure(&reply).0, ErrorKind::Missing);
    assert_eq!(failure(&session.ask(get("none/", ".", Which::Folder))).0, ErrorKind::Missing);
    assert_eq!(failure(&session.ask(several("none/", "k/", Which::Folder))).0, ErrorKind::Missing);
    assert_eq!(failure(&session.ask(several("../", "k/", Which::Folder))).0, ErrorKind::Invalid);
    session.ask(run("mkdir links; ln -s / links/root; ln -s ../out/a.png links/a"));
    let reply = session.ask(several("links/", "l/", Which::Folder));
    assert_eq!(failure(&reply).0, ErrorKind::Invalid, "{reply:?}");
    assert!(!coordinator.path("store").join("l/root").exists());
    let left = fs::read_dir(coordinator.scratch()).expect("there").flatten();
    assert!(
        !left.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".musec"))
    );
}

#[test]
fn a_range_brings_those_bytes() {
    let (_coordinator, mut session, _worker) = join();
    session.ask(run("printf 0123456789 > f"));
    assert_eq!(session.ask(put("f", "digits")).outcome, Outcome::Ok);
    for (range, text) in [
        (ByteRange::From { from: 2, to: Some(4) }, "234"),
        (ByteRange::From { from: 7, to: None }, "789"),
        (ByteRange::From { from: 8, to: Some(u64::MAX) }, "89"),
        (ByteRange::Last(3), "789"),
    ] {
        let reply = session.ask(Action::Get(Get { range: Some(range), ..one("digits", "part") }));
        assert_eq!((reply.outcome, reply.bytes), (Outcome::Ok, text.len() as u64), "{range}");
        assert_eq!(session.ask(run("cat part")).stdout.text, text.as_bytes());
    }
    let beyond = Some(ByteRange::From { from: 10, to: None });
    let reply = session.ask(Action::Get(Get { range: beyond, ..one("digits", "part") }));
    assert!(matches!(reply.outcome, Outcome::Failed { .. }), "{reply:?}");
}

#[test]
fn print_brings_the_end_of_a_file() {
    let (_coordinator, mut session, _worker) = join();
    session.ask(run("head -c 100000 /dev/zero > f; printf end >> f"));
    let tail = session.ask(Action::Print { file: b"f".to_vec() }).stdout;
    assert_eq!(tail.total_bytes, 100_003);
    assert_eq!(tail.text.len(), OUTPUT_TAIL_BYTES_MAX);
    assert!(tail.text.ends_with(b"\0end"));
}

#[test]
fn time_until_the_deadline_counts_down_from_the_welcome() {
    let coordinator = Coordinator::new();
    let _worker = worker(&coordinator.ticket("".as_ref()));
    let mut session =
        coordinator.accept(Welcome { timeout_ms: Some(60_000), ..coordinator.welcome() });
    let reply = session.ask(Action::Sleep { duration_ns: 100_000_000 });
    let started = reply.remaining_started_ms.expect("a deadline");
    let finished = reply.remaining_finished_ms.expect("a deadline");
    assert!((30_000..=60_000).contains(&started), "{started}");
    let slept = i64::try_from(reply.finished.since(reply.started) / 1_000_000).expect("short");
    assert!((slept - (started - finished)).abs() <= 1, "{started} {finished} {slept}");
}

#[test]
fn heartbeats_are_answered_and_a_frozen_worker_tells_its_stall_first() {
    let (_coordinator, mut session, worker) = join();
    session.say(&ToWorker::Ping(7));
    match session.hear() {
        FromWorker::Pong(pong) => assert!(pong.seq == 7 && pong.received <= pong.encoded),
        other => panic!("no pong: {other:?}"),
    }
    worker.signal("STOP");
    std::thread::sleep(Duration::from_millis(600));
    session.say(&ToWorker::Ping(8));
    worker.signal("CONT");
    match session.hear() {
        FromWorker::Stall(stall) => assert!(stall.to.since(stall.from) > 300_000_000),
        other => panic!("no stall: {other:?}"),
    }
}

#[test]
fn what_user_code_tells_is_forwarded_before_the_reply_that_follows() {
    let coordinator = Coordinator::new();
    let mut worker = worker(&coordinator.ticket("".as_ref()));
    let welcome = Welcome { hears_notes: true, ..coordinator.welcome() };
    let mut session = coordinator.accept(welcome);
    let program = "import os, socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\nfor n in range(300):\n    s.sendto(b'note %d' % n, os.environ['MUSEC_SPANS'])\ns.sendto(b'x' * 9000, os.environ['MUSEC_SPANS'])\n";
    let id = session.send(run(&format!("python3 -c \"{program}\"; command -v musec")));
    let mut notes = Vec::new();
    let reply = loop {
        match session.hear() {
            FromWorker::Note(note) => notes.push(note),
            FromWorker::Reply(reply) => break reply,
            _ => {}
        }
    };
    assert_eq!((reply.id, &reply.outcome), (id, &Outcome::Exited(0)), "{reply:?}");
    let texts: Vec<_> = notes.iter().map(|note| String::from_utf8_lossy(&note.text)).collect();
    let mut expected: Vec<_> = (0..300).map(|n| format!("note {n}")).collect();
    expected.push(String::new());
    assert_eq!(texts, expected, "in order; one that is too long comes empty");
    assert!(notes.windows(2).all(|pair| pair[0].received <= pair[1].received));
    let musec = String::from_utf8_lossy(&reply.stdout.text).trim().to_owned();
    let folder = std::path::Path::new(&musec).parent().expect("a folder").to_owned();
    assert!(folder.join("notes").exists(), "{musec}");
    assert_eq!(session.ask(Action::Quit).outcome, Outcome::Ok);
    assert!(worker.ended().success());
    assert!(!folder.exists(), "nothing is left");
}
