//! Waits by watch.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind, NamespaceResourceScope};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
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
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug
{
}

impl<K> Watched for K where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug
{
}

/// Watches all objects, or one by name, until they satisfy a condition together; `None` if they never do.
pub async fn until<K>(api: Api<K>, name: Option<&str>, mut is_right: impl FnMut(&[K]) -> bool) -> Option<Vec<K>>
where
    K: kube::Resource + DeserializeOwned,
{
    let url = api.resource_url().to_owned();
    let mut states = states(api.into_client(), &url, name);
    let found = tokio::time::timeout(TIMEOUT, async {
        while let Some(state) = states.next().await {
            let all: Vec<K> = state.iter().map(|object| typed(object)).collect();
            if is_right(&all) {
                return Some(all);
            }
        }
        None
    });
    found.await.ok().flatten()
}

/// The objects of a watch after each of its events. Watches are compiled once, not for each type that a test waits for.
fn states(client: kube::Client, url: &str, name: Option<&str>) -> BoxStream<'static, Vec<Arc<DynamicObject>>> {
    let (namespace, resource) = collection(url);
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let config = match name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let writer = reflector::store::Writer::new(resource);
    let objects = writer.as_reader();
    let events = watcher::watcher(api, config).default_backoff().reflect(writer);
    let whole = events.filter_map(move |event| {
        // Between the beginning and the end of a list, the store still has the objects from before.
        let part = matches!(event, Ok(watcher::Event::Init | watcher::Event::InitApply(_)) | Err(_));
        std::future::ready((!part).then(|| objects.state()))
    });
    whole.boxed()
}

/// The namespace and the resource of a path, such as `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL`.
fn collection(url: &str) -> (Option<&str>, ApiResource) {
    let mut parts = url.trim_start_matches('/').split('/');
    let group = if parts.next() == Some("apis") {
        parts.next()
    } else {
        None
    };
    let version = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let (namespace, plural) = match rest.as_slice() {
        ["namespaces", namespace, plural] => (Some(*namespace), *plural),
        [plural] => (None, *plural),
        _ => panic!("{url} is no collection"),
    };
    // A watch does not need the kind.
    let kind = GroupVersionKind::gvk(group.unwrap_or_default(), version, "");
    (namespace, ApiResource::from_gvk_with_plural(&kind, plural))
}

fn typed<K: DeserializeOwned>(object: &DynamicObject) -> K {
    let json = serde_json::to_vec(object).and_then(|json| serde_json::from_slice(&json));
    json.unwrap_or_else(|error| panic!("{:?} cannot be read: {error}", object.metadata.name))
}
