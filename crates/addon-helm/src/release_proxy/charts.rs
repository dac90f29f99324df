//! Which version of a chart is the newest, for those who have not named one: each repository is asked once for all who want the same of it,
//! and again on a timer for as long as somebody does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_helm::{ChartSource, Engine, Freshness, Kind};
use windlass_kit::{Backoff, ObjectKey, Tasks};

use super::observed::Latest;

/// Whom to wake when an answer changes.
pub(super) type Waker = Arc<dyn Fn(ObjectKey) + Send + Sync>;

/// The newest versions of all charts that somebody wants to follow.
pub(super) struct Charts {
    engine: Arc<dyn Engine>,
    every: Duration,
    /// How soon a repository is asked again that could not answer.
    retry: Backoff,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sources: HashMap<ChartSource, Followed>,
    of: HashMap<ObjectKey, ChartSource>,
}

/// A chart that somebody follows.
struct Followed {
    answer: Latest,
    users: HashSet<ObjectKey>,
    tasks: Tasks,
    /// There was nothing to ask with.
    lacks_helm: bool,
    hurry: Arc<Notify>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Charts {
    pub(super) fn new(engine: Arc<dyn Engine>, every: Duration, retry: Backoff) -> Self {
        Self {
            engine,
            every,
            retry,
            state: Mutex::default(),
        }
    }

    /// The newest version that a source has, as far as it is known; from now on the object is woken when that changes.
    pub(super) fn latest(
        self: &Arc<Self>,
        tasks: &Tasks,
        user: &ObjectKey,
        source: &ChartSource,
        waker: &Waker,
    ) -> Latest {
        let mut state = self.state.lock();
        if state.of.get(user).is_some_and(|followed| followed != source) {
            state.leave(user);
        }
        state.of.insert(user.clone(), source.clone());
        if let Some(followed) = state.sources.get_mut(source) {
            followed.users.insert(user.clone());
            // What a repository could not answer is asked again when its time comes, however often somebody wants to know.
            if followed.lacks_helm && self.engine.unusable().is_none() {
                followed.lacks_helm = false;
                followed.hurry.notify_one();
            }
            return followed.answer.clone();
        }
        let followed = Followed {
            answer: Latest::Asking,
            users: HashSet::from([user.clone()]),
            tasks: tasks.child(),
            lacks_helm: false,
            hurry: Arc::default(),
        };
        let follow = self
            .clone()
            .follow(source.clone(), waker.clone(), followed.hurry.clone());
        followed.tasks.spawn("chart versions", follow);
        state.sources.insert(source.clone(), followed);
        Latest::Asking
    }

    /// An object follows nothing any more.
    pub(super) fn forget(&self, user: &ObjectKey) {
        self.state.lock().leave(user);
    }

    async fn follow(self: Arc<Self>, source: ChartSource, waker: Waker, hurry: Arc<Notify>) {
        let mut failures = 0;
        loop {
            let fresh = Freshness::Within(self.every / 2);
            let mut lacks_helm = false;
            let (answer, pause) = match self.engine.chart(&source, fresh).await {
                Ok(chart) => {
                    failures = 0;
                    (Latest::Found(chart.version), self.every)
                }
                Err(error) => {
                    failures += 1;
                    lacks_helm = matches!(error.kind, Kind::NotInstalled | Kind::TooOld);
                    tracing::debug!(repo = source.repo_url, chart = source.chart, %error, "no newest version");
                    (Latest::Failed(error.message), self.retry.jittered(failures))
                }
            };
            let told: Vec<_> = {
                let mut state = self.state.lock();
                let Some(followed) = state.sources.get_mut(&source) else {
                    return;
                };
                followed.lacks_helm = lacks_helm;
                let keeps = matches!((&answer, &followed.answer), (Latest::Failed(_), Latest::Found(_)));
                // What was the newest a while ago is more than nothing.
                if keeps || answer == followed.answer {
                    Vec::new()
                } else {
                    followed.answer = answer;
                    followed.users.iter().cloned().collect()
                }
            };
            for user in told {
                waker(user);
            }
            if failures == 0 {
                tokio::time::sleep(pause).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = hurry.notified() => failures = 0,
                }
            }
        }
    }
}

impl State {
    fn leave(&mut self, user: &ObjectKey) {
        let Some(source) = self.of.remove(user) else { return };
        if let Some(followed) = self.sources.get_mut(&source) {
            followed.users.remove(user);
            if followed.users.is_empty() {
                self.sources.remove(&source);
            }
        }
    }
}
