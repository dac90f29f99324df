//! Supervised tasks. All background work of a process starts here and ends at shutdown. A task that panics is not started again: what it
//! kept up to date would be wrong from then on. The panic is reported, so that the process ends and another one lists everything again.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts tasks and ends them together. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stop: CancellationToken,
    running: TaskTracker,
    panicked: watch::Sender<Option<Panicked>>,
}

/// The first task of a process that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    task: &'static str,
    message: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {:?} panicked: {}", self.task, self.message)
    }
}

impl std::error::Error for Panicked {}

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
            panicked: self.0.panicked.clone(),
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
        let panicked = self.0.panicked.clone();
        self.0.running.spawn(async move {
            if let Err(panic) = task.await {
                let panic = Panicked {
                    task: name,
                    message: panic_text(&*panic),
                };
                tracing::error!("{panic}");
                panicked.send_if_modified(|first| first.is_none().then(|| *first = Some(panic)).is_some());
            }
        });
    }

    /// The task that panicked, if one has.
    pub fn panicked(&self) -> Option<Panicked> {
        self.0.panicked.borrow().clone()
    }

    /// Resolves when a task panics.
    pub async fn panic(&self) -> Panicked {
        let mut panicked = self.0.panicked.subscribe();
        match panicked
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|first| first.clone())
        {
            Some(panicked) => panicked,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
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

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
