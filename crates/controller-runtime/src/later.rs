//! Delayed wake-ups: changes that come often and that only readers of a status see are gathered for a moment.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cx::Cx;
use crate::object::ObjectKey;
use crate::tasks::Tasks;
use crate::watch::Wake;

/// Wakes objects after a delay. Several requests for an object within the delay cause one wake-up. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Later {
    wake: Wake,
    delay: Duration,
    pending: Arc<Mutex<HashSet<ObjectKey>>>,
    tasks: Tasks,
}

impl Later {
    /// Wake-ups through `wake`, `delay` after the first request.
    pub fn new(cx: &Cx, wake: Wake, delay: Duration) -> Self {
        Self {
            wake,
            delay,
            pending: Arc::default(),
            tasks: cx.tasks().clone(),
        }
    }

    /// Schedules a reconcile of an object within the delay.
    pub fn add(&self, key: ObjectKey) {
        if !self.pending.lock().insert(key.clone()) {
            return;
        }
        let later = self.clone();
        self.tasks.spawn("later", async move {
            tokio::time::sleep(later.delay).await;
            // Before the wake-up, so that changes from now on are not lost.
            later.pending.lock().remove(&key);
            later.wake.add(key);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::Backoff;
    use crate::object::GroupKind;
    use crate::queue::Queue;

    #[tokio::test(start_paused = true)]
    async fn many_requests_become_one_wake_up() {
        let queue = Arc::new(Queue::new(Backoff::new(
            Duration::from_millis(1),
            Duration::from_secs(1),
        )));
        let later = Later {
            wake: Wake::new(Arc::clone(&queue), GroupKind::new("g", "K"), None),
            delay: Duration::from_secs(1),
            pending: Arc::default(),
            tasks: Tasks::new(),
        };
        let key = ObjectKey::new("n", "a");
        later.add(key.clone());
        later.add(key.clone());
        assert_eq!(queue.depth(), 0);
        tokio::time::advance(Duration::from_millis(1001)).await;
        assert_eq!(queue.next().await.as_ref(), Some(&key));
        queue.done(&key);
        assert!(queue.is_idle());
        later.add(key.clone());
        assert_eq!(queue.next().await, Some(key));
    }
}
