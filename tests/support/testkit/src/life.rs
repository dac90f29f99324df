//! Records all versions of an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::objects::Objects;
use crate::wait;

/// One version of an object.
#[derive(Clone, Debug)]
pub struct Version {
    /// Whether it is the last one, because the object was deleted.
    pub gone: bool,
    /// The object.
    pub object: DynamicObject,
}

impl Version {
    /// Its `resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.object.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Its `generation`.
    pub fn generation(&self) -> Option<i64> {
        self.object.metadata.generation
    }

    /// All field managers of the object.
    pub fn managers(&self) -> BTreeSet<String> {
        let fields = self.object.metadata.managed_fields.iter().flatten();
        fields.filter_map(|entry| entry.manager.clone()).collect()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<String> {
        self.object.metadata.finalizers.clone().unwrap_or_default()
    }

    /// Its annotation of that key.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.object.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    /// Its spec.
    pub fn spec(&self) -> &Value {
        &self.object.data["spec"]
    }

    /// Its status; null when it has none.
    pub fn status(&self) -> &Value {
        &self.object.data["status"]
    }
}

/// Records an object from now on, or from its creation, until it is deleted. No version is missing.
#[derive(Debug)]
pub struct Life {
    objects: Objects,
    what: String,
    versions: Arc<Mutex<Vec<Version>>>,
    changes: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Objects {
    /// Starts recording an object of one of our kinds.
    pub async fn record(&self, kind: &str, name: &str) -> Life {
        let api = self.dynamic(kind);
        let list = ListParams::default().fields(&format!("metadata.name={name}"));
        let list = api.list(&list).await;
        let list = list.unwrap_or_else(|error| panic!("cannot list {kind}: {error}"));
        let since = list.metadata.resource_version.clone().unwrap_or_default();
        let first: Vec<Version> = list
            .items
            .into_iter()
            .map(|object| Version { gone: false, object })
            .collect();
        let (change, changes) = watch::channel(first.len());
        let versions = Arc::new(Mutex::new(first));
        let task = tokio::spawn(follow(api, name.to_owned(), since, versions.clone(), change));
        Life {
            objects: self.clone(),
            what: format!("{kind} {name}"),
            versions,
            changes,
            task,
        }
    }
}

async fn follow(
    api: Api<DynamicObject>,
    name: String,
    mut since: String,
    versions: Arc<Mutex<Vec<Version>>>,
    change: watch::Sender<usize>,
) {
    let how = WatchParams::default().fields(&format!("metadata.name={name}"));
    // Ends with the server, or when the watch cannot continue: then waiting fails with a timeout.
    while let Ok(events) = api.watch(&how, &since).await {
        let mut events = events.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            let (gone, object) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
                WatchEvent::Deleted(object) => (true, object),
                WatchEvent::Bookmark(mark) => {
                    since = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(_) => return,
            };
            since = object.metadata.resource_version.clone().unwrap_or_default();
            let mut versions = versions.lock();
            versions.push(Version { gone, object });
            change.send_replace(versions.len());
        }
    }
}

impl Life {
    /// All versions so far.
    pub fn versions(&self) -> Vec<Version> {
        self.versions.lock().clone()
    }

    /// Waits until the newest version satisfies `is_right`, and returns it.
    pub async fn until(&self, what: &str, is_right: impl Fn(&Version) -> bool) -> Version {
        let mut changes = self.changes.clone();
        let found = tokio::time::timeout(wait::TIMEOUT, async {
            loop {
                changes.borrow_and_update();
                let last = self.versions.lock().last().cloned();
                if let Some(last) = last.filter(&is_right) {
                    return last;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        });
        match found.await {
            Ok(version) => version,
            Err(_) => self.objects.give_up(&format!("{}: {what}", self.what)).await,
        }
    }

    /// Waits until the object is deleted.
    pub async fn until_gone(&self) -> Version {
        self.until("to be gone", |version| version.gone).await
    }

    /// Waits until the recording is up to date, and returns the newest version.
    pub async fn now(&self) -> Version {
        let (kind, name) = self.what.split_once(' ').unwrap_or_default();
        let stored = self.objects.dynamic(kind).get(name).await;
        let stored = stored.unwrap_or_else(|error| panic!("cannot read {}: {error}", self.what));
        let newest = stored.metadata.resource_version.unwrap_or_default();
        let number = |version: &str| version.parse::<u64>().unwrap_or_default();
        self.until("to be recorded", |version| {
            number(version.resource_version()) >= number(&newest)
        })
        .await
    }

    /// All field managers that the object ever had.
    pub fn managers(&self) -> BTreeSet<String> {
        self.versions.lock().iter().flat_map(Version::managers).collect()
    }
}
