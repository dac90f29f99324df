//! The newest versions of charts, for objects whose version is not pinned. Each chart is polled once for all objects that follow it, as long as
//! there are any.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_controller_runtime::{Backoff, ObjectKey, Tasks};
use windlass_helm::{ChartSource, Engine, Freshness, Kind};

use super::observed::{Following, Latest};

/// Wakes an object when an answer changes.
pub(super) type Waker = Arc<dyn Fn(ObjectKey) + Send + Sync>;

/// The newest versions of all charts that objects follow.
pub(super) struct Charts {
    engine: Arc<dyn Engine>,
    every: Duration,
    /// Delays after polls that failed.
    retry: Backoff,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sources: HashMap<ChartSource, Followed>,
    of: HashMap<ObjectKey, ChartSource>,
}

/// A chart that objects follow.
struct Followed {
    answer: Latest,
    users: HashSet<ObjectKey>,
    tasks: Tasks,
    /// Whether the last poll failed because there was no Helm.
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

    /// The newest version of a chart as far as it is known, and the chart that the object follows. Starts nothing.
    pub(super) fn look(&self, user: &ObjectKey, source: Option<&ChartSource>) -> (Latest, Following) {
        let state = self.state.lock();
        let followed = source.and_then(|source| state.sources.get(source));
        let answer = followed.map_or(Latest::Asking, |followed| followed.answer.clone());
        let following = match (state.of.get(user), source) {
            (None, _) => Following::Nothing,
            (Some(current), Some(source)) if current == source => {
                if followed.is_some_and(|followed| followed.lacks_helm) {
                    Following::WithoutHelm
                } else {
                    Following::Current
                }
            }
            (Some(_), _) => Following::Other,
        };
        (answer, following)
    }

    /// The object follows a chart from now on, and no other one. It is woken when the newest version is another than the `known` one.
    pub(super) fn follow(
        self: &Arc<Self>,
        tasks: &Tasks,
        user: &ObjectKey,
        source: &ChartSource,
        known: &Latest,
        waker: &Waker,
    ) {
        if self.join(tasks, user, source, waker) != *known {
            waker(user.clone());
        }
    }

    /// Adds an object to those that follow a chart. The answer is the newest version, as far as it is known.
    fn join(self: &Arc<Self>, tasks: &Tasks, user: &ObjectKey, source: &ChartSource, waker: &Waker) -> Latest {
        let mut state = self.state.lock();
        if state.of.get(user).is_some_and(|followed| followed != source) {
            state.leave(user);
        }
        state.of.insert(user.clone(), source.clone());
        if let Some(followed) = state.sources.get_mut(source) {
            followed.users.insert(user.clone());
            // Any other failure is polled again after its delay, however many objects join.
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
        let poll = self.clone().poll(source.clone(), waker.clone(), followed.hurry.clone());
        followed.tasks.spawn("chart versions", poll);
        state.sources.insert(source.clone(), followed);
        Latest::Asking
    }

    /// The object follows no chart any more.
    pub(super) fn forget(&self, user: &ObjectKey) {
        self.state.lock().leave(user);
    }

    async fn poll(self: Arc<Self>, source: ChartSource, waker: Waker, hurry: Arc<Notify>) {
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
            let users: Vec<_> = {
                let mut state = self.state.lock();
                let Some(followed) = state.sources.get_mut(&source) else {
                    return;
                };
                followed.lacks_helm = lacks_helm;
                let keeps = matches!((&answer, &followed.answer), (Latest::Failed(_), Latest::Found(_)));
                // A version that was the newest a while ago is kept while the repository cannot be read.
                if keeps || answer == followed.answer {
                    Vec::new()
                } else {
                    followed.answer = answer;
                    followed.users.iter().cloned().collect()
                }
            };
            for user in users {
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use windlass_helm::{BoxFuture, Chart, HelmError, Options, Summary, Target};

    use super::*;

    /// Knows no chart.
    struct Empty;

    fn none<T: Send>() -> BoxFuture<'static, Result<T, HelmError>> {
        Box::pin(async { Err(HelmError::new(Kind::Invalid, "no such chart")) })
    }

    impl Engine for Empty {
        fn unusable(&self) -> Option<String> {
            None
        }

        fn chart<'a>(&'a self, _: &'a ChartSource, _: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>> {
            none()
        }

        fn install<'a>(
            &'a self,
            _: &'a Target,
            _: &'a Chart,
            _: &'a str,
            _: &'a Options,
        ) -> BoxFuture<'a, Result<Summary, HelmError>> {
            none()
        }

        fn upgrade<'a>(
            &'a self,
            _: &'a Target,
            _: &'a Chart,
            _: &'a str,
            _: &'a Options,
        ) -> BoxFuture<'a, Result<Summary, HelmError>> {
            none()
        }

        fn rollback<'a>(&'a self, _: &'a Target, _: u32, _: &'a Options) -> BoxFuture<'a, Result<(), HelmError>> {
            none()
        }

        fn uninstall<'a>(&'a self, _: &'a Target, _: &'a Options) -> BoxFuture<'a, Result<(), HelmError>> {
            none()
        }
    }

    fn source(chart: &str) -> ChartSource {
        ChartSource {
            chart: chart.to_owned(),
            ..ChartSource::default()
        }
    }

    /// Charts, and the objects that they have woken.
    fn charts() -> (Arc<Charts>, Waker, Arc<Mutex<Vec<String>>>) {
        let hour = Duration::from_hours(1);
        let woken: Arc<Mutex<Vec<String>>> = Arc::default();
        let to = woken.clone();
        let waker: Waker = Arc::new(move |key| to.lock().push(key.name));
        (
            Arc::new(Charts::new(Arc::new(Empty), hour, Backoff::new(hour, hour))),
            waker,
            woken,
        )
    }

    // AD-103: reconciles of two objects run side by side, and the answer may come between the observation of one and its joining.
    #[tokio::test]
    async fn an_object_that_joins_after_the_answer_is_woken() {
        let (charts, waker, woken) = charts();
        let (tasks, web) = (Tasks::new(), source("web"));
        let [one, other] = ["one", "other"].map(|name| ObjectKey::new("fleet", name));
        assert_eq!(charts.look(&one, Some(&web)), (Latest::Asking, Following::Nothing));
        charts.follow(&tasks, &one, &web, &Latest::Asking, &waker);
        while woken.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        let answer = Latest::Failed("no such chart".to_owned());
        assert_eq!(charts.look(&one, Some(&web)), (answer.clone(), Following::Current));
        charts.follow(&tasks, &other, &web, &Latest::Asking, &waker);
        assert_eq!(*woken.lock(), ["one", "other"]);
        charts.follow(&tasks, &other, &web, &answer, &waker);
        assert_eq!(*woken.lock(), ["one", "other"], "it knows the answer already");
    }

    #[tokio::test]
    async fn an_object_follows_one_chart_at_a_time() {
        let (charts, waker, _) = charts();
        let (tasks, key) = (Tasks::new(), ObjectKey::new("fleet", "one"));
        let (web, db) = (source("web"), source("db"));
        charts.follow(&tasks, &key, &web, &Latest::Asking, &waker);
        assert_eq!(charts.look(&key, Some(&db)).1, Following::Other);
        assert_eq!(charts.look(&key, None).1, Following::Other);
        charts.follow(&tasks, &key, &db, &Latest::Asking, &waker);
        assert_eq!(charts.look(&key, Some(&db)).1, Following::Current);
        assert_eq!(charts.state.lock().sources.len(), 1);
        charts.forget(&key);
        assert_eq!(charts.look(&key, Some(&db)), (Latest::Asking, Following::Nothing));
        assert!(charts.state.lock().sources.is_empty());
    }
}
