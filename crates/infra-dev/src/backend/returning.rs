//! The machines that a cluster had before this process started.
//!
//! A real cluster runs on while its management cluster is away. A simulated one is made again, machine by machine. Clients wait for an answer
//! until it is whole: to a client that saw half of it, the other Nodes would be deleted, and their Machines would be replaced.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// How long clients wait while no machine comes back.
const LIMIT: Duration = Duration::from_secs(20);

/// The machines that are still to come back.
#[derive(Debug)]
pub(super) struct Returning {
    awaited: Mutex<BTreeSet<String>>,
    all: CancellationToken,
}

impl Returning {
    /// Waits for the machines with these names; for none in a new cluster.
    pub(super) fn new(awaited: BTreeSet<String>) -> Self {
        let all = CancellationToken::new();
        if awaited.is_empty() {
            all.cancel();
        }
        let awaited = Mutex::new(awaited);
        Self { awaited, all }
    }

    /// A machine has registered its Node, or is gone.
    pub(super) fn settled(&self, name: &str) {
        let mut awaited = self.awaited.lock();
        awaited.remove(name);
        if awaited.is_empty() {
            self.all.cancel();
        }
    }

    /// Returns when all are back, or when none has come for a while.
    pub(super) async fn complete(&self) {
        let mut left = self.left();
        while tokio::time::timeout(LIMIT, self.all.cancelled()).await.is_err() {
            let before = std::mem::replace(&mut left, self.left());
            if left == before {
                self.give_up();
            }
        }
    }

    fn left(&self) -> usize {
        self.awaited.lock().len()
    }

    /// Waits no longer.
    pub(super) fn give_up(&self) {
        self.all.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_does_not_come_back_is_waited_for_once_and_not_for_ever() {
        let returning = Returning::new(names(&["a", "b"]));
        returning.settled("a");
        returning.settled("another");
        let begin = tokio::time::Instant::now();
        returning.complete().await;
        assert_eq!(begin.elapsed().as_secs(), LIMIT.as_secs());
        returning.complete().await;
        assert_eq!(begin.elapsed().as_secs(), LIMIT.as_secs());

        // While machines come back, the others are waited for.
        let returning = Returning::new(names(&["a", "b"]));
        let begin = tokio::time::Instant::now();
        let coming = async {
            tokio::time::sleep(LIMIT / 2).await;
            returning.settled("a");
        };
        tokio::join!(coming, returning.complete());
        assert_eq!(begin.elapsed().as_secs(), 2 * LIMIT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_cluster_waits_for_no_machine() {
        let begin = tokio::time::Instant::now();
        Returning::new(BTreeSet::new()).complete().await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
