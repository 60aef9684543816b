//! Lanes: the foreground commands of each run one after another, in the order they came.
//!
//! In: jobs with the path of their lane. A lane exists while it has work; nothing is kept of it
//! afterwards.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Work of a lane; nothing of it happens before its turn.
pub(crate) type Job = Pin<Box<dyn Future<Output = ()>>>;

/// The queues of the lanes that have work.
#[derive(Default)]
pub(crate) struct Lanes {
    waiting: RefCell<BTreeMap<Vec<u32>, VecDeque<Job>>>,
}

impl Lanes {
    /// Does `job` when all that was given to its lane before is done.
    pub(crate) fn push(self: &Rc<Self>, lane: Vec<u32>, job: Job) {
        if let Some(queue) = self.waiting.borrow_mut().get_mut(&lane) {
            queue.push_back(job);
            return;
        }
        self.waiting.borrow_mut().insert(lane.clone(), VecDeque::new());
        let lanes = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let mut next = Some(job);
            while let Some(job) = next {
                job.await;
                next = lanes.next(&lane);
            }
        });
    }

    /// The lane's next job; without one the lane is gone.
    fn next(&self, lane: &[u32]) -> Option<Job> {
        let mut waiting = self.waiting.borrow_mut();
        let next = waiting.get_mut(lane).and_then(VecDeque::pop_front);
        if next.is_none() {
            waiting.remove(lane);
        }
        next
    }
}
