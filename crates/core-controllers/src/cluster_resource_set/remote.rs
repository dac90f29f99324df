//! Writes objects to a workload cluster.

use std::collections::BTreeMap;

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
}

impl Remote {
    pub(super) fn of(cluster: &RemoteCluster) -> Self {
        Self {
            client: ApiClient::from(cluster.client()),
            served: BTreeMap::new(),
        }
    }

    /// Writes an object. The error says what could not be done.
    pub(super) async fn put(&mut self, one: &Value, mode: Mode) -> Result<(), String> {
        let mut one = one.clone();
        if let Some(metadata) = object::map_at(&mut one, &["metadata"]) {
            metadata.retain(|name, _| !OF_SERVER.contains(&name.as_str()));
        }
        let url = self.url(&mut one).await?;
        let what = || object::Identity::of(&one);
        match mode {
            Mode::Create => match self.client.post_value(&url, &one).await {
                Err(error) if error.is_already_exists() => Ok(()),
                Err(error) => Err(format!("creating {}: {error}", what())),
                Ok(_) => Ok(()),
            },
            Mode::Apply => {
                let url = format!("{url}/{}", object::name(&one));
                let applied = self
                    .client
                    .apply_value(&url, managers::CLUSTER_RESOURCE_SET, &one)
                    .await;
                applied
                    .map(drop)
                    .map_err(|error| format!("applying {}: {error}", what()))
            }
        }
    }

    /// The URL of the collection of an object, which gets a namespace if its kind has them.
    async fn url(&mut self, one: &mut Value) -> Result<String, String> {
        let (version, kind) = (
            object::text(one, &["apiVersion"]).to_owned(),
            object::kind(one).to_owned(),
        );
        let parts = version.split('/').chain([object::namespace(one), object::name(one)]);
        if let Some(odd) = parts.into_iter().find(|part| !is_plain(part)) {
            let what = object::Identity::of(one);
            return Err(format!("{what} cannot be written: {odd:?} is not part of a name"));
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
            let served = self.resources(&root).await;
            let served = served.map_err(|error| format!("{} cannot be written: {error}", object::Identity::of(one)))?;
            self.served.insert(root.clone(), served);
        }
        let found = self.served.get(&root).and_then(|served| served.iter().find(is_kind));
        let Some(found) = found else {
            let what = object::Identity::of(one);
            return Err(format!(
                "{what} cannot be written: the Cluster does not serve {kind} in {version}"
            ));
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
        let resources = found.and_then(|mut found| found["resources"].as_array_mut().map(std::mem::take));
        Ok(resources.unwrap_or_default())
    }
}

/// Whether a text can stand in a path as it is. No name of an object has other characters.
fn is_plain(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    text.bytes().all(is_allowed) && !matches!(text, "." | "..")
}
