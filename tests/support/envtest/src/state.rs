//! Restores an earlier state of a control plane, which is much faster than starting one.
//!
//! The contents of etcd are compared with a [`Baseline`] and restored without the API server. Then the API server is polled until
//! its caches and its discovery have followed. Objects are removed without finalizers and without a garbage collector.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use http::header::ACCEPT;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::{ControlPlane, StartError};

/// Keys that a control plane writes continuously.
const ITS_OWN: [&str; 4] = [
    "/registry/masterleases/",
    "/registry/leases/kube-system/",
    "/registry/ranges/",
    "compact_rev_key",
];

/// How long the state must be unchanged before it becomes the baseline.
const SETTLED: Duration = Duration::from_millis(500);
/// The delay after a reset until it is checked: requests of a client that has just ended may still arrive.
const LASTED: Duration = Duration::from_millis(50);
/// Interval of checking whether the API server has followed.
const LOOK: Duration = Duration::from_millis(20);
/// Timeout until a state is stable or restored.
const PATIENCE: Duration = Duration::from_mins(2);
/// The limit of operations in an etcd transaction.
const AT_ONCE: usize = 100;
/// The aggregated discovery document.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A state of a control plane.
#[derive(Debug)]
pub struct Baseline {
    /// By key; both in base64, as in etcd's gateway.
    records: BTreeMap<String, Record>,
    /// The served resources: `group/version/resource`.
    served: BTreeSet<String>,
}

#[derive(Debug)]
struct Record {
    revision: String,
    value: String,
}

impl ControlPlane {
    /// The state as soon as it is stable.
    pub async fn baseline(&self) -> Result<Baseline, StartError> {
        let etcd = self.etcd()?;
        let waiting = async {
            let mut before = revisions(&etcd).await?;
            loop {
                tokio::time::sleep(SETTLED).await;
                let now = revisions(&etcd).await?;
                if now == before {
                    break;
                }
                before = now;
            }
            let records = records(&etcd, false).await?;
            let served = served(&self.client().await?).await?;
            Ok(Baseline { records, served })
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await;
        in_time.unwrap_or_else(|_| Err(StartError::State("it never settles".to_owned())))
    }

    /// Restores an earlier state, and returns when the API server shows it.
    pub async fn reset(&self, baseline: &mut Baseline) -> Result<(), StartError> {
        let etcd = self.etcd()?;
        let mut touched = BTreeSet::new();
        let mut last = Vec::new();
        let waiting = async {
            loop {
                last = revert(&etcd, baseline).await?;
                if last.is_empty() {
                    break Ok::<(), StartError>(());
                }
                touched.extend(last.iter().cloned());
                tokio::time::sleep(LASTED).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(result) => result?,
            Err(_) => return Err(StartError::State(format!("{last:?} change all the time"))),
        }
        if touched.is_empty() {
            return Ok(());
        }
        let client = self.client().await?;
        let waiting = async {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while served(&client).await? != baseline.served {
                looks.tick().await;
            }
            // A list that is up to date shows that the cache of its kind has followed.
            let paths: BTreeSet<String> = touched.iter().filter_map(|key| path(key, &baseline.served)).collect();
            for path in paths {
                ask(
                    &client,
                    get(
                        &path,
                        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                    )?,
                )
                .await?;
            }
            Ok(())
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await;
        in_time.unwrap_or_else(|_| Err(StartError::State("the API server does not follow".to_owned())))
    }

    fn etcd(&self) -> Result<Client, StartError> {
        let failed = |error: &dyn std::error::Error| StartError::Client(error.to_string());
        let url = self.etcd_url().parse().map_err(|error| failed(&error))?;
        Client::try_from(Config::new(url)).map_err(|error| failed(&error))
    }
}

/// Restores changed keys; returns them.
async fn revert(etcd: &Client, baseline: &mut Baseline) -> Result<Vec<String>, StartError> {
    let now = revisions(etcd).await?;
    let mut operations = Vec::new();
    let mut keys = Vec::new();
    for key in now.keys().filter(|key| !baseline.records.contains_key(*key)) {
        operations.push(json!({"requestDeleteRange": {"key": key}}));
        keys.push(key.clone());
    }
    for (key, record) in &baseline.records {
        if now.get(key) != Some(&record.revision) {
            operations.push(json!({"requestPut": {"key": key, "value": record.value}}));
            keys.push(key.clone());
        }
    }
    for (operations, keys) in operations.chunks(AT_ONCE).zip(keys.chunks(AT_ONCE)) {
        let answer = post(etcd, "/v3/kv/txn", &json!({"success": operations})).await?;
        let revision = answer["header"]["revision"].as_str().unwrap_or_default();
        for key in keys {
            if let Some(record) = baseline.records.get_mut(key) {
                revision.clone_into(&mut record.revision);
            }
        }
    }
    Ok(keys.iter().map(|key| decoded(key)).collect())
}

/// The last revision of every key except those that a control plane writes continuously.
async fn revisions(etcd: &Client) -> Result<BTreeMap<String, String>, StartError> {
    let records = records(etcd, true).await?;
    Ok(records
        .into_iter()
        .map(|(key, record)| (key, record.revision))
        .collect())
}

async fn records(etcd: &Client, keys_only: bool) -> Result<BTreeMap<String, Record>, StartError> {
    let everything = json!({"key": "AA==", "range_end": "AA==", "keys_only": keys_only});
    let mut answer = post(etcd, "/v3/kv/range", &everything).await?;
    let Value::Array(found) = answer["kvs"].take() else {
        return Err(StartError::State("etcd keeps nothing".to_owned()));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let record = |found: Value| {
        let record = Record {
            revision: text(&found["mod_revision"]),
            value: text(&found["value"]),
        };
        (text(&found["key"]), record)
    };
    let is_kept = |(key, _): &(String, Record)| {
        let key = decoded(key);
        !ITS_OWN.iter().any(|prefix| key.starts_with(prefix))
    };
    Ok(found.into_iter().map(record).filter(is_kept).collect())
}

fn decoded(key: &str) -> String {
    let bytes = BASE64_STANDARD.decode(key).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All served resources, as `group/version/resource`.
async fn served(client: &Client) -> Result<BTreeSet<String>, StartError> {
    let mut found = BTreeSet::new();
    for path in ["/api", "/apis"] {
        let document = ask(client, get(path, DISCOVERY)?).await?;
        for group in document["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().into_iter().flatten() {
                let of = version["version"].as_str().unwrap_or_default();
                let resources = version["resources"].as_array().into_iter().flatten();
                let names = resources.filter_map(|resource| resource["resource"].as_str());
                found.extend(names.map(|resource| format!("{name}/{of}/{resource}")));
            }
        }
    }
    Ok(found)
}

/// The path of the list that shows a key of etcd, if its resource is served.
fn path(key: &str, served: &BTreeSet<String>) -> Option<String> {
    let mut parts = key.strip_prefix("/registry/")?.split('/');
    let first = parts.next()?;
    let (group, resource) = if first.contains('.') {
        (Some(first), parts.next()?)
    } else {
        let resource = match (first, parts.next()) {
            ("minions", _) => "nodes",
            ("ingress", _) => "ingresses",
            ("services", Some("endpoints")) => "endpoints",
            _ => first,
        };
        (None, resource)
    };
    let mut all = served.iter().map(|name| name.split('/').collect::<Vec<_>>());
    let found = all.find(|name| name[2] == resource && group.is_none_or(|group| group == name[0]))?;
    Some(match found[0] {
        "" => format!("/api/{}/{resource}", found[1]),
        group => format!("/apis/{group}/{}/{resource}", found[1]),
    })
}

fn get(path: &str, accept: &str) -> Result<Request<Vec<u8>>, StartError> {
    let request = Request::get(path).header(ACCEPT, accept).body(Vec::new());
    request.map_err(|error| StartError::State(error.to_string()))
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<Value, StartError> {
    let request = Request::post(path).body(body.to_string().into_bytes());
    ask(client, request.map_err(|error| StartError::State(error.to_string()))?).await
}

async fn ask(client: &Client, request: Request<Vec<u8>>) -> Result<Value, StartError> {
    let answer = client.request(request).await;
    answer.map_err(|error| StartError::State(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_what_is_served() {
        let served = [
            "/v1/secrets",
            "/v1/nodes",
            "/v1/services",
            "apps/v1/deployments",
            "a.b/v1/things",
        ];
        let served: BTreeSet<String> = served.map(str::to_owned).into();
        let path = |key: &str| path(key, &served);
        assert_eq!(path("/registry/secrets/default/x").unwrap(), "/api/v1/secrets");
        assert_eq!(path("/registry/minions/x").unwrap(), "/api/v1/nodes");
        assert_eq!(path("/registry/services/specs/default/x").unwrap(), "/api/v1/services");
        assert_eq!(path("/registry/deployments/n/x").unwrap(), "/apis/apps/v1/deployments");
        assert_eq!(path("/registry/a.b/things/n/x").unwrap(), "/apis/a.b/v1/things");
        assert_eq!(path("/registry/a.b/gone/n/x"), None);
    }
}
