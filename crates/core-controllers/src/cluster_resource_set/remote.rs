//! Writes objects to a workload cluster.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_cluster_cache::RemoteCluster;
use windlass_controller_runtime::{ApiClient, RequestError};
use windlass_provider_components::object;

use crate::shared::keys::managers;

/// The namespace of objects that name none, as for `kubectl`.
const NAMESPACE: &str = "default";
/// What a server fills in, and refuses in an object that is new.
const OF_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// How long a Cluster may take for what it gets in one reconcile. A slow one must not keep a worker from other Clusters for long; the rest
/// follows with the next reconcile.
const MOST_TIME: Duration = Duration::from_mins(2);
/// Bytes of a server's message that are shown.
const MOST_MESSAGE: usize = 1 << 10;

/// An object that was not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotWritten {
    /// The object is refused, or not of a kind that is served.
    Refused(String),
    /// The server does not answer, so it will not for other objects either.
    Unreachable(String),
}

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Those that are not there are created; others stay as they are.
    Create,
    /// All are applied, and take the fields that they have from other field managers.
    Apply,
}

/// A workload cluster, and the kinds that it serves.
pub(super) struct Remote {
    client: ApiClient,
    /// The resources of a group and version, once they were asked for.
    served: BTreeMap<String, Vec<Value>>,
    /// The time that it may still take.
    left: Duration,
}

impl Remote {
    pub(super) fn of(cluster: &RemoteCluster) -> Self {
        Self {
            client: ApiClient::from(cluster.client()),
            served: BTreeMap::new(),
            left: MOST_TIME,
        }
    }

    /// Writes an object. Messages of the server may show values of the object; they are left out for a secret one.
    pub(super) async fn put(&mut self, one: &Value, mode: Mode, is_secret: bool) -> Result<(), NotWritten> {
        let begun = Instant::now();
        let written = self.try_put(one, mode, is_secret).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        written
    }

    async fn try_put(&mut self, one: &Value, mode: Mode, is_secret: bool) -> Result<(), NotWritten> {
        if self.left.is_zero() {
            let why = format!("it takes more than {} s", MOST_TIME.as_secs());
            return Err(NotWritten::Unreachable(why));
        }
        let mut one = one.clone();
        if let Some(metadata) = object::map_at(&mut one, &["metadata"]) {
            metadata.retain(|name, _| !OF_SERVER.contains(&name.as_str()));
        }
        let url = self.url(&mut one).await?;
        let failed = |doing: &str, error: &RequestError| {
            let what = object::Identity::of(&one);
            if error.code() == 0 {
                return NotWritten::Unreachable(format!("{doing} {what}: {}", cut(&error.to_string())));
            }
            let why = if is_secret {
                format!("refused with code {}", error.code())
            } else {
                cut(&error.to_string())
            };
            NotWritten::Refused(format!("{doing} {what}: {why}"))
        };
        match mode {
            Mode::Create => match self.client.post_value(&url, &one).await {
                Err(error) if error.is_already_exists() => Ok(()),
                Err(error) => Err(failed("creating", &error)),
                Ok(_) => Ok(()),
            },
            Mode::Apply => {
                let url = format!("{url}/{}", object::name(&one));
                let applied = self
                    .client
                    .apply_value(&url, managers::CLUSTER_RESOURCE_SET, &one)
                    .await;
                applied.map(drop).map_err(|error| failed("applying", &error))
            }
        }
    }

    /// The URL of the collection of an object, which gets a namespace if its kind has them.
    async fn url(&mut self, one: &mut Value) -> Result<String, NotWritten> {
        let (version, kind) = (
            object::text(one, &["apiVersion"]).to_owned(),
            object::kind(one).to_owned(),
        );
        let parts = version.split('/').chain([object::namespace(one), object::name(one)]);
        if let Some(odd) = parts.into_iter().find(|part| !is_plain(part)) {
            let what = object::Identity::of(one);
            let why = format!("{what} cannot be written: {odd:?} is not part of a name");
            return Err(NotWritten::Refused(cut(&why)));
        }
        let root = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let is_kind = |of: &&Value| of["kind"] == *kind && of["name"].as_str().is_some_and(|name| !name.contains('/'));
        if !self
            .served
            .get(&root)
            .is_some_and(|served| served.iter().any(|of| is_kind(&of)))
        {
            let served = self.resources(&root).await.map_err(|error| {
                let why = format!("reading the kinds of {version}: {}", cut(&error.to_string()));
                if error.code() == 0 {
                    NotWritten::Unreachable(why)
                } else {
                    NotWritten::Refused(why)
                }
            })?;
            self.served.insert(root.clone(), served);
        }
        let found = self.served.get(&root).and_then(|served| served.iter().find(is_kind));
        let Some(found) = found else {
            let what = object::Identity::of(one);
            let why = format!("{what} cannot be written: the Cluster does not serve {kind} in {version}");
            return Err(NotWritten::Refused(cut(&why)));
        };
        let plural = found["name"].as_str().unwrap_or_default();
        if found["namespaced"] != true {
            if let Some(metadata) = object::map_at(one, &["metadata"]) {
                metadata.remove("namespace");
            }
            return Ok(format!("{root}/{plural}"));
        }
        if object::namespace(one).is_empty()
            && let Some(metadata) = object::map_at(one, &["metadata"])
        {
            metadata.insert("namespace".to_owned(), NAMESPACE.into());
        }
        Ok(format!("{root}/namespaces/{}/{plural}", object::namespace(one)))
    }

    async fn resources(&self, root: &str) -> Result<Vec<Value>, RequestError> {
        let found = self.client.get_value(root).await?;
        // A server may answer anything.
        let resources = found.and_then(|mut found| found.get_mut("resources")?.as_array_mut().map(std::mem::take));
        Ok(resources.unwrap_or_default())
    }
}

/// The beginning of a message.
fn cut(message: &str) -> String {
    match message.char_indices().find(|(at, _)| *at >= MOST_MESSAGE) {
        Some((at, _)) => format!("{} ...", &message[..at]),
        None => message.to_owned(),
    }
}

/// Whether a text can stand in a path as it is. No name of an object has other characters.
fn is_plain(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    text.bytes().all(is_allowed) && !matches!(text, "." | "..")
}
