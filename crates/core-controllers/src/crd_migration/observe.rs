//! What is read for a definition. The only file of this controller that reads.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use windlass_api::annotations::CRD_MIGRATION_OBSERVED_GENERATION;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Crd, Cx, Gvk, ObjectKey, Seen, gvk_from};

use super::{Phase, Phases};

/// What one pass over a definition knows.
#[derive(Clone, Debug)]
pub(crate) enum Observed {
    /// It is none of those that are migrated, or everything is done for this generation.
    Done,
    /// What is stored may have to change.
    Due {
        /// The definition as it is stored.
        definition: Box<Seen<Value>>,
        /// The metadata of its objects, if a phase needs them.
        objects: Seen<Vec<ObjectMeta>>,
    },
}

/// A definition, as far as its migration needs it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// The kind in the storage version.
    pub(crate) gvk: Gvk,
    /// The apiVersions that are served.
    pub(crate) served: Vec<String>,
    /// Whether objects have a status of its own in the storage version.
    pub(crate) has_status: bool,
    /// The versions in which objects may be stored.
    pub(crate) stored: Vec<String>,
}

impl Definition {
    /// Reads it; none if it has no storage version, which no server accepts.
    pub(crate) fn of(crd: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, spec) = (&crd["metadata"], &crd["spec"]);
        let group = text(&spec["group"]);
        let versions = spec["versions"].as_array()?;
        let storage = versions.iter().find(|version| version["storage"] == true)?;
        let served = versions.iter().filter(|version| version["served"] == true);
        let stored = crd["status"]["storedVersions"].as_array().into_iter().flatten();
        Some(Self {
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            served: served
                .map(|version| format!("{group}/{}", version["name"].as_str().unwrap_or_default()))
                .collect(),
            has_status: storage["subresources"]["status"].is_object(),
            stored: stored.map(text).collect(),
            gvk: Gvk {
                version: text(&storage["name"]),
                kind: text(&spec["names"]["kind"]),
                group,
            },
        })
    }

    /// Whether objects may be stored in another version than the storage version.
    pub(crate) fn is_mixed(&self) -> bool {
        self.stored != [self.gvk.version.as_str()]
    }
}

/// Reads the definition, and its objects if they may have to be written.
pub(crate) async fn observe(cx: &Cx, crd: &Crd, phases: &Phases) -> Observed {
    let noted = crd.metadata.annotation(CRD_MIGRATION_OBSERVED_GENERATION);
    let is_noted = crd
        .metadata
        .generation
        .is_some_and(|generation| noted == Some(generation.to_string().as_str()));
    if is_noted || crd.metadata.is_deleting() {
        return Observed::Done;
    }
    let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let key = ObjectKey::cluster_scoped(crd.metadata.name.as_deref().unwrap_or_default());
    let definition = cx.read_value(&gvk, &key).await;
    let known = definition.found().and_then(Definition::of);
    let objects = match known.filter(|known| known.is_mixed() || phases.has(Phase::CleanupManagedFields)) {
        Some(known) => cx.metadata_of(&known.gvk, "", u32::MAX).await,
        None => Seen::Found(Vec::new()),
    };
    Observed::Due {
        definition: Box::new(definition),
        objects,
    }
}
