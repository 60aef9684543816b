//! Infos: what user code tells, who waits for it, and what happens when nobody tells.

use musec_core::limits::SILENT_INFO_MAX;
use musec_core::{Advance, Progress};
use musec_protocol::Outcome;
use musec_trace::{CTime, WaitReason};
use serde_json::json;

use crate::{Walk, facts, job, steps, wrong};

impl Walk<'_> {
    fn told(&mut self, key: &str, value: &[u8]) -> Progress {
        self.input(CTime::ZERO, Advance::Told(key, value))
    }
}

const SERVER: &str = r#"
[[step]]
name = "server"
state = "serve"
run = "serve"
background = true
[[step]]
state = "wait"
wait_info = "port"
[[step]]
echo = "ask {{ info.port }}"
"#;

#[test]
fn a_step_waits_until_its_key_is_told() {
    let program = steps(SERVER);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.sent.len(), 1, "the server");
    assert_eq!(walk.told("other", b"1"), Progress::Waits);
    walk.told("port", b"8080");
    assert_eq!(walk.log.last().unwrap(), "main#0 echo ask 8080");
    assert_eq!(walk.told("port", b"9090"), Progress::Waits, "at any time");
    walk.ok_to("ask 8080");
    assert_eq!(walk.answer_to("serve", Outcome::Cancelled), Progress::Done);
    assert_eq!(walk.told("port", b"1"), Progress::Waits, "also after its end");
}

#[test]
fn what_was_told_before_is_not_waited_for_and_counts_once() {
    let program = steps(
        "[[step]]\nrun = \"tell\"\n[[step]]\nwait_info = \"x\"\n[[step]]\necho = \"{{ info.x }}\"\n[[step]]\nwait_info = \"x\"\n[[step]]\necho = \"again {{ info.x }}\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.told("x", b"1");
    walk.told("x", b"two\nlines \xff");
    walk.ok_to("tell");
    walk.ok_to("two\nlines \u{fffd}");
    assert_eq!(walk.machine.wait_reason(), Some(WaitReason::Info));
    walk.told("x", b"3");
    assert_eq!(walk.out(), ["again 3"]);
    assert_eq!(walk.machine.wait_reason(), None);
}

#[test]
fn every_lane_that_waits_for_a_key_hears_it() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ wait_info = \"x\" }, { echo = \"a\" }], b = [{ wait_info = \"x\" }, { echo = \"b\" }], c = [{ run = \"c\" }, { wait_info = \"x\" }] }\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    walk.told("x", b"1");
    assert_eq!(walk.sent.len(), 3, "{:?}", walk.log);
    walk.ok_to("c");
    assert_eq!(walk.machine.wait_reason(), Some(WaitReason::Info), "c was not waiting then");
}

#[test]
fn a_wait_that_nobody_ends_fails_in_words() {
    let program = steps("[[step]]\nname = \"w\"\nwait_info = \"port\"\n");
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    let due = CTime::ZERO.after(SILENT_INFO_MAX);
    assert_eq!(walk.machine.deadline(), Some(due));
    let Progress::Failed(failure) = walk.input(due, Advance::Time) else { panic!() };
    assert_eq!(
        failure.error,
        "nothing told `port` within 1m, and no command is running that could"
    );
    let program = steps(SERVER);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.machine.deadline(), None, "as long as a command runs it may tell");
    walk.answer_to("serve", Outcome::Exited(0));
    assert_eq!(walk.machine.deadline(), Some(due));
}

#[test]
fn the_time_of_a_wait_is_bounded_and_a_handler_may_help() {
    let bounded = SERVER.replace(
        "wait_info = \"port\"",
        "wait_info = \"port\"\ntimeout = \"1s\"\non_error = [{ echo = \"late\" }]",
    );
    let program = steps(&bounded.replace("{{ info.port }}", ""));
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    let at = CTime::from_ns(1_000_000_000);
    assert_eq!(walk.machine.deadline(), Some(at));
    walk.input(at, Advance::Time);
    assert_eq!(walk.log.last().unwrap(), "wait#0 echo late");
}

#[test]
fn a_lane_that_waits_can_be_cancelled() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ wait_info = \"x\" }], b = [{ run = \"b\" }] }\nfirst = true\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.ok_to("b"), Progress::Done);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.told("x", b""), Progress::Waits);
    assert_eq!(walk.answer_to("b", Outcome::Cancelled), Progress::Done);
}

#[test]
fn what_setup_was_told_is_there_for_every_item_and_the_rest_is_not() {
    let program = job(r#"
        [job]
        workers = 1
        items = { range = 2 }
        [[setup]]
        wait_info = "port"
        [[step]]
        wait_info = "done"
        [[step]]
        echo = "{{ item }} {{ info.port }} {{ info.done }}"
        "#);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.told("port", b"80"), Progress::Done);
    for item in 0..2 {
        walk.machine.take_item(&program, &json!(item));
        walk.begin();
        assert_eq!(walk.machine.wait_reason(), Some(WaitReason::Info));
        walk.told("done", b"yes");
        let text = format!("{item} 80 yes");
        assert_eq!(walk.out(), [text.as_str()]);
        assert_eq!(walk.ok_to(&text), Progress::Done);
    }
}

#[test]
fn infos_that_nobody_waits_for_cannot_be_read() {
    let of = |step: &str| wrong(&format!("[job]\nworkers = 1\n[[step]]\n{step}\n"));
    assert!(of("echo = \"{{ info.x }}\"").contains("`info` is not bound"));
    let misspelt = of("wait_info = \"port\"\n[[step]]\necho = \"{{ info.prot }}\"");
    assert!(misspelt.contains("no step waits for `info.prot`"), "{misspelt}");
    assert!(misspelt.contains("did you mean `info.port`?"), "{misspelt}");
    assert!(of("wait_info = \"a b\"").contains("could not be written"));
    assert!(
        of("pipelined = true\ndo = [{ wait_info = \"x\" }]").contains("within a pipelined list")
    );
}
