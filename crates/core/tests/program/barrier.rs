//! Barriers as one machine sees them; who waits for whom is the fleet's.

use musec_core::{Advance, Facts, Progress};
use musec_protocol::Outcome;
use musec_trace::{CTime, WaitReason};

use crate::{Walk, echoed, facts, job, steps, wrong};

impl Walk<'_> {
    fn release(&mut self) -> Progress {
        self.input(CTime::ZERO, Advance::Released(0))
    }
}

#[test]
fn a_lane_waits_at_a_barrier_until_it_is_released() {
    let program = steps(
        "[[step]]\necho = \"a\"\n[[step]]\nstate = \"meet\"\nbarrier = \"b\"\n[[step]]\necho = \"c\"\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.release(), Progress::Waits, "too early");
    assert_eq!(walk.machine.wait_reason(), None);
    walk.ok_to("a");
    assert_eq!(walk.log.last().unwrap(), "arrives at 0");
    assert_eq!(walk.machine.wait_reason(), Some(WaitReason::Barrier));
    assert_eq!(walk.machine.deadline(), None, "others may take as long as they like");
    walk.release();
    assert_eq!(walk.out(), ["c"]);
    assert_eq!(walk.release(), Progress::Waits, "twice");
    assert_eq!(walk.ok_to("c"), Progress::Done);
    assert_eq!(walk.release(), Progress::Waits, "after the end");
}

#[test]
fn the_time_at_a_barrier_is_bounded_and_who_gives_up_has_left() {
    let program = steps(
        "[[step]]\nname = \"meet\"\nbarrier = \"b\"\ntimeout = \"1s\"\non_error = [{ echo = \"alone\" }]\n",
    );
    let at = CTime::from_ns(1_000_000_000);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.machine.deadline(), Some(at));
    walk.input(at, Advance::Time);
    assert!(walk.log.contains(&"leaves 0".to_owned()), "{:?}", walk.log);
    assert_eq!(walk.out(), ["alone"]);
    assert_eq!(walk.release(), Progress::Waits);
}

#[test]
fn a_lane_at_a_barrier_can_be_cancelled() {
    let program = steps(
        "[[step]]\nparallel = { a = [{ barrier = \"b\" }], c = [{ run = \"c\" }] }\nfirst = true\n",
    );
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.ok_to("c"), Progress::Done);
    assert!(walk.log.contains(&"leaves 0".to_owned()), "{:?}", walk.log);
    let mut walk = Walk::new(&program, facts());
    walk.begin();
    assert_eq!(walk.release(), Progress::Waits);
    assert_eq!(walk.answer_to("c", Outcome::Cancelled), Progress::Done);
}

#[test]
fn barriers_that_meet_without_end_are_stopped() {
    let program = steps(
        "[[step]]\nset = { x = 0 }\n[[step]]\nwhile = \"vars.x == 0\"\ndo = [{ barrier = \"b\" }, { set = { x = \"vars.x\" } }]\n",
    );
    let mut walk = Walk::new(&program, facts());
    let mut progress = walk.begin();
    for _ in 0..20_000 {
        if progress != Progress::Waits {
            break;
        }
        progress = walk.release();
    }
    let Progress::Failed(failure) = progress else { panic!("{progress:?}") };
    assert!(failure.error.contains("barriers without a command"), "{}", failure.error);
}

#[test]
fn barriers_that_cannot_be_reached_together_are_refused() {
    let of = |head: &str, steps: &str| wrong(&format!("[job]\n{head}\n{steps}\n"));
    let one = "[[step]]\nbarrier = \"b\"";
    let few = of("workers = 300\nat_once = 20", one);
    assert!(few.contains("needs all 300 workers alive together, and `at_once` is 20"), "{few}");
    assert!(few.contains("raise `at_once` to 300"), "{few}");
    let twice = "[[step]]\nparallel = { a = [{ barrier = \"b\" }], c = [{ barrier = \"b\" }] }";
    assert!(of("workers = 3", twice).contains("in two lanes of one worker"));
    let listed = "[[step]]\npipelined = true\ndo = [{ barrier = \"b\" }]";
    assert!(of("workers = 3", listed).contains("within a pipelined list"));
    let grouped = |head: &str| {
        of(head, "[[step]]\nbarrier = \"b\"\nscope = \"group\"\n[[step]]\nbarrier = \"b\"")
    };
    assert!(grouped("workers = 3").contains("a barrier of a group in a wave without groups"));
    let two = grouped("workers = 3\ngroup_size = 2");
    assert!(two.contains("is of the wave in one place, of a group in another"), "{two}");
    let odd = of("workers = 3\ngroup_size = 2", "[[step]]\nbarrier = \"b\"\nscope = \"row\"");
    assert!(odd.contains("`scope` is \"wave\" or \"group\""), "{odd}");
    assert!(of("workers = 3", "[[step]]\necho = \"{{ group }}\"").contains("has `group_size`"));
}

#[test]
fn all_groups_first_places_are_filled_first() {
    let program =
        job("[job]\nworkers = 7\ngroup_size = 3\n[[step]]\necho = \"{{ group }}.{{ place }}\"\n");
    let names = (0..7).map(|index| echoed(&program, Facts { index, workers: 7, ..facts() }));
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["0.0", "1.0", "2.0", "0.1", "1.1", "2.1", "0.2"]);
}
