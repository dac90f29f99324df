//! The other objects that rules look at: from caches, or from the API server.
//!
//! A rule is called with a view of what is known. What the caches do not have is noted, read from the API server, and the rule is called
//! again. Caches that are not synced yet have nothing, so at first everything is read. A review that needs no other object costs nothing
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::ObjectMeta;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use windlass_admission::view::class_of;
use windlass_admission::{Found, Read, Rule, Unread, View};
use windlass_api::core::{Cluster, ClusterClass};
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{ApiClient, Cache, Codec, ObjectKey, Stored, Tasks, gvk_from};

use crate::queues::Arrived;
use crate::server::BUSY;

/// How long reads for a review may take: shorter than API servers wait for a webhook.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many reads a review may need, one after the other.
const ROUNDS: usize = 8;
/// The index of Clusters by their class.
const BY_CLASS: &str = "class";

const GROUP: &str = Cluster::GROUP;
const CLUSTER: &str = Cluster::KIND;
const CLUSTER_CLASS: &str = ClusterClass::KIND;

/// Answers the reads of rules.
pub(crate) struct Reads {
    client: Option<ApiClient>,
    /// Version and resource of the kinds that have rules.
    known: BTreeMap<(String, String), (String, String)>,
    caches: Option<Caches>,
}

/// What rules ask for at most writes.
struct Caches {
    classes: Cache<Whole>,
    clusters: Cache<Topology>,
}

/// An object as rules see it.
#[derive(Clone, Debug)]
struct Whole {
    metadata: ObjectMeta,
    value: Arc<Value>,
}

/// A Cluster with its topology, but for the rest of it.
#[derive(Clone, Debug)]
struct Topology(Whole);

impl Stored for Whole {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&*self.value)
    }
}

impl Codec for Whole {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        let mut value: Value = serde_json::from_slice(json)?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Ok(Self::of(value))
    }
}

impl Whole {
    fn of(value: Value) -> Self {
        let text = |name: &str| value["metadata"][name].as_str().map(str::to_owned);
        let metadata = ObjectMeta {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            value: Arc::new(value),
        }
    }
}

impl Stored for Topology {
    fn metadata(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        self.0.encode()
    }
}

impl Codec for Topology {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        let mut value: Value = serde_json::from_slice(json)?;
        let mut metadata = Map::new();
        for name in ["namespace", "name", "uid", "resourceVersion"] {
            metadata.insert(name.to_owned(), value["metadata"][name].take());
        }
        let topology = value["spec"]["topology"].take();
        let kept = json!({"kind": CLUSTER, "metadata": metadata, "spec": {"topology": topology}});
        Ok(Self(Whole::of(kept)))
    }
}

impl Reads {
    /// Reads for these rules, of the API server behind a client. Caches run until the tasks end.
    pub(crate) fn new(rules: &[Rule], client: Option<&kube::Client>, tasks: &Tasks) -> Self {
        let kind = |rule: &Rule| (rule.group.to_owned(), rule.kind.to_owned());
        let resource = |rule: &Rule| (rule.version.to_owned(), rule.resource.to_owned());
        let known: BTreeMap<_, _> = rules.iter().map(|rule| (kind(rule), resource(rule))).collect();
        let caches = client.and_then(|client| Caches::new(&known, client, tasks));
        Self {
            client: client.map(ApiClient::from),
            known,
            caches,
        }
    }

    /// Calls a rule, with what it asks for. What cannot be read is an error. A cache may be behind, so what it has is not enough to refuse a
    /// write: then the rule is called again with what the API server says.
    ///
    /// Reads and calls of the rule wait for the turn of the review.
    pub(crate) async fn judge<T>(
        &self,
        review: &Arrived<'_>,
        rule: impl Fn(&dyn View) -> Result<T, Unread>,
        refuses: impl Fn(&T) -> bool,
    ) -> Result<T, Unread> {
        let used = AtomicBool::new(false);
        let judged = self.judge_with(self.caches.as_ref(), &used, review, &rule).await?;
        if refuses(&judged) && used.load(Ordering::Relaxed) {
            return self.judge_with(None, &used, review, &rule).await;
        }
        Ok(judged)
    }

    /// Calls a rule with these caches, and notes whether they have answered.
    async fn judge_with<T>(
        &self,
        caches: Option<&Caches>,
        used: &AtomicBool,
        review: &Arrived<'_>,
        rule: impl Fn(&dyn View) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        let mut view = Known {
            caches,
            used,
            read: BTreeMap::new(),
            asked: Mutex::new(None),
        };
        match review.work(|| rule(&view)).await {
            Err(_) if view.asked.lock().is_some() => {}
            done => return done,
        }
        let unread = |why: &str| Unread { why: why.to_owned() };
        let queued = review.reading().ok_or_else(|| unread(BUSY))?;
        let reading = async {
            let _turn = queued.turn().await;
            for _ in 0..ROUNDS {
                let asked = view.asked.lock().take();
                if let Some(read) = asked {
                    let found = self.read(&read).await;
                    view.read.insert(read, found);
                }
                match review.work(|| rule(&view)).await {
                    Err(_) if view.asked.lock().is_some() => {}
                    done => return done,
                }
            }
            Err(unread("the write depends on more objects than can be read in time"))
        };
        let done = timeout(PATIENCE, reading).await;
        done.unwrap_or_else(|_| {
            Err(unread(
                "the API server did not answer in time what the write depends on; try again",
            ))
        })
    }

    /// Reads from the API server.
    async fn read(&self, read: &Read) -> Result<Found, Unread> {
        let failed = |why: String| Unread {
            why: format!("{read} cannot be read, and the write depends on it: {why}; try again"),
        };
        let client = self
            .client
            .as_ref()
            .ok_or_else(|| failed("there is no API server to ask".to_owned()))?;
        let (group, kind) = match read {
            Read::Object { group, kind, .. } | Read::Labelled { group, kind, .. } => (group.as_str(), kind.as_str()),
            Read::ClustersOf { .. } => (GROUP, CLUSTER),
        };
        if !is_harmless(read) {
            return Ok(Vec::new());
        }
        let Some((version, resource)) = self.resource(client, group, kind).await.map_err(failed)? else {
            return Ok(Vec::new());
        };
        let root = format!("/apis/{group}/{version}");
        let url = match read {
            Read::Object { namespace, name, .. } => format!("{root}/namespaces/{namespace}/{resource}/{name}"),
            Read::Labelled { namespace, labels, .. } => {
                let labels: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{}%3D{value}", key.replace('/', "%2F")))
                    .collect();
                let labels = labels.join("%2C");
                format!("{root}/namespaces/{namespace}/{resource}?labelSelector={labels}")
            }
            Read::ClustersOf { .. } => format!("{root}/{resource}"),
        };
        let found = client
            .get_value(&url)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let Some(mut found) = found else { return Ok(Vec::new()) };
        if matches!(read, Read::Object { .. }) {
            let found = Some(Arc::new(found)).filter(|found| read.includes(found));
            return Ok(Vec::from_iter(found));
        }
        let items = found["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let items = items.into_iter().map(|mut item| {
            item["apiVersion"] = format!("{group}/{version}").into();
            item["kind"] = kind.into();
            Arc::new(item)
        });
        Ok(items.filter(|item| read.includes(item)).collect())
    }

    /// Version and resource of a kind; none if it is not served.
    async fn resource(&self, client: &ApiClient, group: &str, kind: &str) -> Result<Option<(String, String)>, String> {
        if let Some(known) = self.known.get(&(group.to_owned(), kind.to_owned())) {
            return Ok(Some(known.clone()));
        }
        let get = async |url: String| client.get_value(&url).await.map_err(|error| error.to_string());
        let Some(found) = get(format!("/apis/{group}")).await? else {
            return Ok(None);
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let preferred = text(&found["preferredVersion"]["version"]);
        let served = found["versions"].as_array().into_iter().flatten();
        let others = served
            .map(|version| text(&version["version"]))
            .filter(|version| *version != preferred);
        // A kind need not be served in the version that its group prefers.
        for version in std::iter::once(preferred.clone()).chain(others) {
            let resources = get(format!("/apis/{group}/{version}")).await?.unwrap_or_default();
            let mut all = resources["resources"].as_array().into_iter().flatten();
            let is_whole =
                |of: &&Value| of["kind"] == kind && of["name"].as_str().is_some_and(|name| !name.contains('/'));
            if let Some(of) = all.find(is_whole) {
                return Ok(Some((version, text(&of["name"]))));
            }
        }
        Ok(None)
    }
}

/// Whether a text can stand in a URL as it is.
fn is_plain(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    text.bytes().all(is_allowed) && !matches!(text, "." | "..")
}

/// Whether the texts of a read can stand in a URL as they are. A mutating webhook sees objects before their schema is checked, so a name may be
/// anything. No object has another name, group or label.
fn is_harmless(read: &Read) -> bool {
    let are_parts = |texts: &[&str]| texts.iter().all(|text| !text.is_empty() && is_plain(text));
    match read {
        Read::Object {
            group,
            kind,
            namespace,
            name,
        } => are_parts(&[group, kind, namespace, name]),
        Read::ClustersOf { .. } => true,
        Read::Labelled {
            group,
            kind,
            namespace,
            labels,
        } => {
            let is_label =
                |(key, value): (&String, &String)| are_parts(&key.split('/').collect::<Vec<_>>()) && is_plain(value);
            are_parts(&[group, kind, namespace]) && labels.iter().all(is_label)
        }
    }
}

impl Caches {
    /// The caches, if their kinds have rules.
    fn new(known: &BTreeMap<(String, String), (String, String)>, client: &kube::Client, tasks: &Tasks) -> Option<Self> {
        let source = |kind: &str| {
            let (version, resource) = known.get(&(GROUP.to_owned(), kind.to_owned()))?;
            let gvk = gvk_from(&format!("{GROUP}/{version}"), kind);
            Some((format!("/apis/{GROUP}/{version}/{resource}"), gvk))
        };
        let ((classes, class), (clusters, cluster)) = (source(CLUSTER_CLASS)?, source(CLUSTER)?);
        let caches = Self {
            classes: Cache::stand_alone(client.clone(), classes, class, tasks),
            clusters: Cache::stand_alone(client.clone(), clusters, cluster, tasks),
        };
        caches.clusters.add_index(BY_CLASS, |cluster: &Topology| {
            let class = class_of(&cluster.0.value).map(|(namespace, name)| format!("{namespace}/{name}"));
            class.into_iter().collect()
        });
        Some(caches)
    }

    /// What the caches have; none if they do not know.
    fn find(&self, read: &Read) -> Option<Found> {
        match read {
            Read::Object {
                group,
                kind,
                namespace,
                name,
            } if (group.as_str(), kind.as_str()) == (GROUP, CLUSTER_CLASS) => {
                // A class that is not here may have come a moment ago.
                let class = self.classes.get(&ObjectKey::new(namespace.as_str(), name.as_str()))?;
                Some(vec![Arc::clone(&class.value)])
            }
            Read::ClustersOf {
                namespace,
                name,
                exact: false,
            } if self.clusters.is_synced() => {
                let clusters = self.clusters.by_index(BY_CLASS, &format!("{namespace}/{name}"));
                Some(clusters.iter().map(|cluster| Arc::clone(&cluster.0.value)).collect())
            }
            _ => None,
        }
    }
}

/// What is known for one review.
struct Known<'a> {
    caches: Option<&'a Caches>,
    /// Whether the caches have answered.
    used: &'a AtomicBool,
    read: BTreeMap<Read, Result<Found, Unread>>,
    /// The first read that has no answer yet.
    asked: Mutex<Option<Read>>,
}

impl View for Known<'_> {
    fn read(&self, read: &Read) -> Result<Found, Unread> {
        if let Some(read) = self.read.get(read) {
            return read.clone();
        }
        if let Some(found) = self.caches.and_then(|caches| caches.find(read)) {
            self.used.store(true, Ordering::Relaxed);
            return Ok(found);
        }
        self.asked.lock().get_or_insert_with(|| read.clone());
        Err(Unread {
            why: format!("{read} was not read yet"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_makes_no_request() {
        let object = |name: &str| Read::Object {
            group: GROUP.to_owned(),
            kind: CLUSTER_CLASS.to_owned(),
            namespace: "a".to_owned(),
            name: name.to_owned(),
        };
        assert!(is_harmless(&object("class-1.x")));
        for name in [
            "",
            "..",
            "a/b",
            "../../secrets/x",
            "a?watch=true",
            "a#b",
            "a%2Fb",
            "a b",
            "\u{e4}",
        ] {
            assert!(!is_harmless(&object(name)), "{name}");
        }
        let labelled = |key: &str, value: &str| Read::Labelled {
            group: GROUP.to_owned(),
            kind: CLUSTER.to_owned(),
            namespace: "a".to_owned(),
            labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        };
        assert!(is_harmless(&labelled("cluster.x-k8s.io/cluster-name", "")));
        assert!(!is_harmless(&labelled("a&b", "c")) && !is_harmless(&labelled("a", "b&c")));
    }
}
