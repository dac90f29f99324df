//! Supervised tasks. All background work of a process starts here, ends at shutdown, and logs its panics.

use std::sync::Arc;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts tasks and ends them together. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stop: CancellationToken,
    running: TaskTracker,
}

impl Tasks {
    /// No task yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tasks that end with these, or earlier.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Inner {
            stop: self.0.stop.child_token(),
            running: self.0.running.clone(),
        }))
    }

    /// Starts a task. It is dropped at shutdown, at its next `await`.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.0.stop.clone();
        self.start(name, async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Starts a task that ends by itself when [`Self::stopping`] says so; shutdown waits for it.
    pub fn spawn_graceful(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.start(name, task);
    }

    fn start(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let task = std::panic::AssertUnwindSafe(task).catch_unwind();
        self.0.running.spawn(async move {
            if task.await.is_err() {
                tracing::error!(task = name, "a task panicked");
            }
        });
    }

    /// Resolves at shutdown.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.stop.clone().cancelled_owned()
    }

    /// Tells all tasks to end, without waiting.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Tells all tasks to end, and waits until they have.
    pub async fn shutdown(&self) {
        self.stop();
        self.0.running.close();
        self.0.running.wait().await;
    }
}
