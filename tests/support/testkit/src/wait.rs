//! Waits by watch.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::Api;
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Interval, MissedTickBehavior};

/// Timeout of all waits: far more than they take, so that tests do not fail on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(3);

/// The least time between two polls.
const LOOK: Duration = Duration::from_millis(20);

/// An interval for polling without a watch. Polls never come in a burst, even after a delay: between any two, all other tasks of
/// the process can run.
pub fn looks() -> Interval {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// A namespaced type that can be waited for.
pub trait Watched:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + Serialize
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// Watches all objects, or one by name, until they satisfy a condition together; `None` if they never do.
pub async fn until<K>(
    api: Api<K>,
    kind: K::DynamicType,
    name: Option<&str>,
    is_right: impl Fn(&[K]) -> bool,
) -> Option<Vec<K>>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let config = match name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let writer = reflector::store::Writer::new(kind);
    let objects = writer.as_reader();
    let mut events = std::pin::pin!(watcher::watcher(api, config).default_backoff().reflect(writer));
    let found = tokio::time::timeout(TIMEOUT, async {
        loop {
            match events.try_next().await {
                // Between the beginning and the end of a list, the store still has the objects from before.
                Ok(Some(watcher::Event::Init | watcher::Event::InitApply(_))) | Err(_) => {}
                Ok(Some(_)) => {
                    let all: Vec<K> = objects.state().iter().map(|object| K::clone(object)).collect();
                    if is_right(&all) {
                        return Some(all);
                    }
                }
                Ok(None) => return None,
            }
        }
    });
    found.await.ok().flatten()
}
