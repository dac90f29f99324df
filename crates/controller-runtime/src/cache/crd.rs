//! CustomResourceDefinitions with the fields that the driver reads: names, scope, served versions and contract labels.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::{Deserialize, Serialize};
use windlass_contract::ContractVersion;

use crate::error::RuntimeError;
use crate::object::{GroupKind, Gvk};

/// A CustomResourceDefinition without its schemas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Crd {
    /// Name (`plural.group`) and labels.
    pub metadata: ObjectMeta,
    /// Definition of the kind.
    pub spec: CrdSpec,
}

/// The spec of a CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrdSpec {
    /// API group.
    pub group: String,
    /// Kind and resource name.
    pub names: CrdNames,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The versions.
    #[serde(default)]
    pub versions: Vec<CrdVersion>,
}

/// The names of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrdNames {
    /// The kind.
    pub kind: String,
    /// The resource, as in URLs.
    pub plural: String,
}

/// One version of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrdVersion {
    /// The version's name.
    pub name: String,
    /// Whether the server serves it.
    #[serde(default)]
    pub served: bool,
}

windlass_api::codec!(Crd);

impl windlass_api::kind::Conditioned for Crd {
    // The API server writes its conditions.
    const HAS_CONDITIONS: bool = false;

    fn conditions(&self) -> &[Condition] {
        &[]
    }
}

impl kube::Resource for Crd {
    type DynamicType = ();
    type Scope = k8s_openapi::ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "CustomResourceDefinition".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "apiextensions.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "customresourcedefinitions".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Index of definitions by group and kind.
pub(crate) const BY_KIND: &str = "group/kind";

pub(crate) fn kind_index(crd: &Crd) -> Vec<String> {
    vec![index_value(&crd.spec.group, &crd.spec.names.kind)]
}

pub(crate) fn index_value(group: &str, kind: &str) -> String {
    format!("{group}/{kind}")
}

/// Version, scope and resource name of a dynamic kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) gvk: Gvk,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) contract: ContractVersion,
}

/// The version of a kind that its contract labels choose among those that the server serves.
pub(crate) fn resolve(crd: &Crd, kind: &GroupKind) -> Result<Resolved, RuntimeError> {
    let labels = crd.metadata.labels.clone().unwrap_or_default();
    let chosen = windlass_contract::choose_version(&labels, |name| serves(crd, name));
    let (contract, version) = chosen.ok_or_else(|| RuntimeError::NoContract {
        crd: crd.metadata.name.clone().unwrap_or_default(),
    })?;
    Ok(Resolved {
        gvk: kind.with_version(version),
        plural: crd.spec.names.plural.clone(),
        namespaced: crd.spec.scope == "Namespaced",
        contract,
    })
}

/// Whether the server serves a version of a kind.
pub(crate) fn serves(crd: &Crd, version: &str) -> bool {
    crd.spec.versions.iter().any(|one| one.name == version && one.served)
}

/// The newest contract whose label lists a version of a kind.
pub(crate) fn contract_of(crd: &Crd, version: &str) -> Option<ContractVersion> {
    let labels = crd.metadata.labels.as_ref()?;
    ContractVersion::ALL.into_iter().find(|contract| {
        let listed = labels.get(contract.label());
        listed.is_some_and(|listed| listed.split('_').any(|one| one == version))
    })
}
