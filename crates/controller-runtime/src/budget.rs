//! Time that the requests of one action have together, so that one object does not keep a worker from all others.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// A limit of time for several requests.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    end: Instant,
}

impl Budget {
    /// A budget that ends after this time.
    pub fn of(time: Duration) -> Self {
        Self {
            end: Instant::now() + time,
        }
    }

    /// The answer of a request; `None` when the budget ends before.
    pub async fn within<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, request).await.ok()
    }

    /// Waits before a request is sent again; false, at once, when the budget ends before.
    pub async fn pause(&self, pause: Duration) -> bool {
        let is_left = Instant::now() + pause < self.end;
        if is_left {
            sleep(pause).await;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_end_with_their_budget() {
        let budget = Budget::of(Duration::from_secs(10));
        let request = |seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        };
        assert_eq!(budget.within(request(6)).await, Some(6));
        assert_eq!(budget.within(request(6)).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_end_with_their_budget() {
        let budget = Budget::of(Duration::from_secs(10));
        let mut pauses = 0;
        while budget.pause(Duration::from_secs(2)).await {
            pauses += 1;
        }
        assert_eq!(pauses, 4);
    }
}
