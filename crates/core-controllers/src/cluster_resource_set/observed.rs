//! Everything that the ClusterResourceSet controller looks at before it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass_api::addons::{ClusterResourceSet, ClusterResourceSetBinding, ResourceRef};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Codec, Seen, Stored};

use super::contents::Contents;

/// What was read for a ClusterResourceSet.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub set: Arc<ClusterResourceSet>,
    /// The Clusters that its selector selects, but for those that are being deleted, by name; or why the selector cannot be read.
    pub chosen: Result<BTreeMap<String, Workload<()>>, String>,
    /// The records of these Clusters and all records that name the set, by Cluster.
    pub bindings: BTreeMap<String, Arc<ClusterResourceSetBinding>>,
    /// Why the record of a Cluster cannot be read. What the Cluster has is unknown.
    pub unreadable: BTreeMap<String, String>,
    /// Its resources, in the order of the set.
    pub resources: Vec<Resource>,
}

/// A resource of the set.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its kind and name.
    pub reference: ResourceRef,
    /// Its metadata. A Secret of another type counts as not found.
    pub found: Option<Arc<Trace>>,
    /// What was read when the plan asked for it.
    pub read: Option<Read>,
}

/// A resource, read from the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// Its contents, or what the read gave instead.
    Contents(Seen<Contents>),
    /// It is a Secret of this type, which has no resources.
    WrongType(String),
}

/// The metadata of a ConfigMap or Secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trace {
    metadata: ObjectMeta,
}

impl Trace {
    /// Metadata without what the controller does not look at.
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            metadata: ObjectMeta {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
                resource_version: metadata.resource_version.clone(),
                owner_references: metadata.owner_references.clone(),
                ..ObjectMeta::default()
            },
        }
    }
}

impl Stored for Trace {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

impl Codec for Trace {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        let whole: Self = serde_json::from_slice(json)?;
        Ok(Self::of(&whole.metadata))
    }
}
