//! Reads objects in the version that a class names.
//!
//! Patches of a class are written for that version, and intents are applied in it. Caches hold every kind in one version only, so an object
//! in another one is read from the API server, once for each of its resourceVersions.

use std::sync::Arc;

use serde_json::Value;
use windlass_contract::ContractVersion;
use windlass_controller_runtime::{Cx, GroupKind, Gvk, ObjectKey, RuntimeError, Seen};
use windlass_topology::blueprint::Contract;
use windlass_topology::model::{TemplateRef, text};

use super::super::memory::Memory;

/// Where objects are read, and what is known already.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cx: &'a Cx,
    pub(crate) memory: &'a Memory,
}

impl Reader<'_> {
    /// The object in a version. A version that the definition does not serve, or none, gives the object as it is cached.
    pub(crate) async fn get(self, kind: &GroupKind, version: Option<&str>, key: &ObjectKey) -> Seen<Arc<Value>> {
        let cache = match self.cx.dynamic(kind).await {
            Ok(cache) => cache,
            Err(error) => return Seen::Failed(error.to_string()),
        };
        let Some(cached) = cache.get(key) else {
            return Seen::NotFound;
        };
        let as_cached = || Seen::Found(cached.shared());
        let Some(version) = version.filter(|version| *version != cache.gvk().version) else {
            return as_cached();
        };
        let gvk = kind.with_version(version);
        match self.cx.serves(&gvk).await {
            Ok(true) => {}
            Ok(false) => return as_cached(),
            Err(error) => return Seen::Failed(error.to_string()),
        }
        if let Some(known) = self.memory.in_version(cached.value(), version) {
            return Seen::Found(known);
        }
        let read = self.cx.read_value(&gvk, key).await;
        read.map(|mut object| {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            let object = Arc::new(object);
            self.memory.read_in_version(&object, version);
            object
        })
    }

    /// Why a template is not read in the version that the class names, if it is not.
    pub(super) async fn unserved(self, template: &TemplateRef, found: &Value) -> Option<String> {
        let gvk = gvk(template, &template.kind);
        let used = text(found, "/apiVersion");
        if used == template.api_version || !matches!(self.cx.serves(&gvk).await, Ok(false)) {
            return None;
        }
        Some(format!(
            "{} {} is used in version {used}: its definition does not serve {}, which the ClusterClass names",
            template.kind, template.name, template.api_version
        ))
    }

    /// The contract of the control planes that a template makes.
    pub(super) async fn contract(self, template: &TemplateRef) -> Result<Contract, String> {
        let gvk = gvk(template, object_kind(template));
        let of_version = async {
            let kind = gvk.group_kind();
            let newest = self.cx.dynamic(&kind).await?;
            if gvk.version == newest.gvk().version || !self.cx.serves(&gvk).await? {
                return Ok(newest.contract());
            }
            Ok(self.cx.contract_of(&gvk).await?.unwrap_or_else(|| newest.contract()))
        };
        match of_version.await {
            Ok(ContractVersion::V1Beta1) => Ok(Contract::V1Beta1),
            Ok(ContractVersion::V1Beta2) => Ok(Contract::V1Beta2),
            // Without a definition or a contract the kind cannot be written either. The write reports it.
            Err(RuntimeError::UnknownKind { .. } | RuntimeError::NoContract { .. }) => Ok(Contract::default()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The kind of what is made from a template.
pub(super) fn object_kind(template: &TemplateRef) -> &str {
    template.kind.strip_suffix("Template").unwrap_or(&template.kind)
}

/// The version that a class names for a kind: that of its template, or of what is made from it.
pub(crate) fn version_for<'a>(template: Option<&'a TemplateRef>, kind: &GroupKind) -> Option<&'a str> {
    let template = template?;
    let named = template.kind == kind.kind || object_kind(template) == kind.kind;
    let (group, version) = template.api_version.split_once('/')?;
    (named && group == kind.group).then_some(version)
}

fn gvk(template: &TemplateRef, kind: &str) -> Gvk {
    let version = template.api_version.rsplit('/').next().unwrap_or_default();
    GroupKind::new(template.group(), kind).with_version(version)
}
