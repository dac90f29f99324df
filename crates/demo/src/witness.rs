//! The field managers of infrastructure objects, as the API server records them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass_controller_runtime::watch_events;

use crate::error::DemoError;

/// The prefix of the dev provider's field managers.
const PROVIDER: &str = "capd-manager";
/// The timeout until the last events arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Follows the objects from now on.
pub(crate) struct Witness {
    api: Api<DynamicObject>,
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    objects: BTreeMap<String, Record>,
    /// The number of writes by the provider.
    pub(crate) provider_writes: u64,
    /// All field managers of the objects.
    pub(crate) managers: BTreeSet<String>,
    failure: Option<String>,
}

/// An object.
#[derive(Clone, Debug, Default)]
struct Record {
    /// Its last version; nothing once it is gone.
    version: Option<String>,
    /// The provider's entries in managedFields.
    provider: Vec<Value>,
}

impl Seen {
    /// How many objects there were.
    pub(crate) fn objects(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Records an object after a write.
    fn take(&mut self, object: &Value, is_gone: bool) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let record = self.objects.entry(text("uid")).or_default();
        record.version = (!is_gone).then(|| text("resourceVersion"));
        let mut provider = Vec::new();
        for entry in metadata["managedFields"].as_array().into_iter().flatten() {
            let manager = entry["manager"].as_str().unwrap_or_default();
            self.managers.insert(manager.to_owned());
            if manager.starts_with(PROVIDER) {
                provider.push(entry.clone());
            }
        }
        // A write that gives up fields counts as well.
        if record.provider != provider {
            record.provider = provider;
            self.provider_writes += 1;
        }
    }

    /// Whether all versions of these objects, and the deletion of all others, have been seen.
    fn is_up_to(&self, there: &BTreeMap<String, String>) -> bool {
        let are_there = there.iter().all(|(uid, version)| {
            self.objects
                .get(uid)
                .is_some_and(|record| record.version.as_ref() == Some(version))
        });
        let are_gone = |(uid, record): (&String, &Record)| there.contains_key(uid) || record.version.is_none();
        are_there && self.objects.iter().all(are_gone)
    }
}

impl Witness {
    /// Starts to follow.
    pub(crate) fn of(api: Api<DynamicObject>) -> Self {
        let (sender, seen) = watch::channel(Seen::default());
        let task = tokio::spawn(follow(api.clone(), sender));
        Self { api, seen, task }
    }

    /// The writes so far.
    pub(crate) async fn tell(&mut self) -> Result<Seen, DemoError> {
        let failed = |why: String| DemoError::plain(format!("cannot tell who wrote the infrastructure objects: {why}"));
        let list = self.api.list(&ListParams::default()).await;
        let there: BTreeMap<String, String> = list
            .map_err(|error| failed(error.to_string()))?
            .into_iter()
            .map(|object| {
                let metadata = object.metadata;
                (
                    metadata.uid.unwrap_or_default(),
                    metadata.resource_version.unwrap_or_default(),
                )
            })
            .collect();
        let done = |seen: &Seen| seen.failure.is_some() || seen.is_up_to(&there);
        let seen = match tokio::time::timeout(PATIENCE, self.seen.wait_for(done)).await {
            Ok(Ok(seen)) => seen.clone(),
            Ok(Err(_)) | Err(_) => return Err(failed("their events did not come".to_owned())),
        };
        seen.failure.clone().map_or(Ok(seen), |why| Err(failed(why)))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Receives all events until the receiver is gone.
async fn follow(api: Api<DynamicObject>, sender: watch::Sender<Seen>) {
    let mut version = "0".to_owned();
    let fail = |why: String| sender.send_modify(|seen| seen.failure = Some(why));
    // The server ends watches after a while; the next one continues where the last ended.
    while !sender.is_closed() {
        let mut events = match watch_events(&api, &WatchParams::default(), &version).await {
            Ok(events) => events,
            Err(error) => return fail(error.to_string()),
        };
        while let Some(event) = events.next().await {
            let (object, is_gone) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
                Ok(WatchEvent::Deleted(object)) => (object, true),
                Ok(WatchEvent::Bookmark(mark)) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) => return fail(status.message),
                // Ended by the server or by its timeout.
                Err(_) => break,
            };
            if let Some(newer) = &object.metadata.resource_version {
                version.clone_from(newer);
            }
            let value = serde_json::to_value(&object).unwrap_or_default();
            sender.send_modify(|seen| seen.take(&value, is_gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str, managers: &[(&str, &str)]) -> Value {
        let fields: Vec<Value> = managers
            .iter()
            .map(|(manager, field)| json!({"manager": manager, "fieldsV1": {(*field): {}}}))
            .collect();
        json!({"metadata": {"uid": "u", "resourceVersion": version, "managedFields": fields}})
    }

    #[test]
    fn every_write_of_the_provider_counts_also_one_that_gives_fields_up() {
        let mut seen = Seen::default();
        let mut check = |managers: &[(&str, &str)], expect: u64| {
            seen.take(&object("1", managers), false);
            assert_eq!(seen.provider_writes, expect, "{managers:?}");
        };
        check(&[("terraform", "f:spec")], 0);
        check(&[("terraform", "f:spec"), ("capi-manager", "f:labels")], 0);
        check(&[("terraform", "f:spec"), ("capd-manager", "f:finalizers")], 1);
        check(&[("terraform", "f:status"), ("capd-manager", "f:finalizers")], 1);
        check(
            &[("capd-manager", "f:finalizers"), ("capd-manager-status", "f:status")],
            2,
        );
        check(&[], 3);
        assert_eq!(
            seen.managers.iter().map(String::as_str).collect::<Vec<_>>(),
            ["capd-manager", "capd-manager-status", "capi-manager", "terraform"]
        );
        assert_eq!(seen.objects(), 1);
    }

    #[test]
    fn nothing_is_reported_before_the_last_event() {
        let mut seen = Seen::default();
        let there = BTreeMap::from([("u".to_owned(), "2".to_owned())]);
        assert!(seen.is_up_to(&BTreeMap::new()) && !seen.is_up_to(&there));
        seen.take(&object("1", &[]), false);
        assert!(!seen.is_up_to(&there) && !seen.is_up_to(&BTreeMap::new()));
        seen.take(&object("2", &[]), false);
        assert!(seen.is_up_to(&there));
        seen.take(&object("3", &[]), true);
        assert!(seen.is_up_to(&BTreeMap::new()) && !seen.is_up_to(&there));
    }
}
