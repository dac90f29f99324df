//! The common model of both APIs.

mod problem;
mod read;
mod settings;
mod v1alpha1;
mod v1alpha2;

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use windlass_api::kind::{ApiKind, Conditioned};
use windlass_meta::ObjectKey;

use crate::provider_type::ProviderType;

pub use problem::{Problem, Problems};
pub use settings::{ContainerSettings, DeploymentSettings, ImageOverride, LeaderElection, Settings};
pub(crate) use v1alpha1::from_v1alpha1;
pub(crate) use v1alpha2::from_v1alpha2;

/// The API of a provider object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// `management.cluster.x-k8s.io/v1alpha1`.
    V1Alpha1,
    /// `operator.cluster.x-k8s.io/v1alpha2`.
    V1Alpha2,
}

impl Api {
    /// `GROUP/VERSION`.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => crate::management::CoreProvider::API_VERSION,
            Self::V1Alpha2 => crate::operator::CoreProvider::API_VERSION,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.api_version())
    }
}

/// The settings of a provider object, independent of its API.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The type of the provider.
    pub type_: ProviderType,
    /// The API of the provider object.
    pub api: Api,
    /// Namespace and name of the provider object. The provider is installed into this namespace and has this name.
    pub key: ObjectKey,
    /// UID of the provider object.
    pub uid: String,
    /// Generation of the provider object.
    pub generation: i64,
    /// Desired version. `None` means the latest.
    pub version: Option<String>,
    /// Whether spec.paused is set (v1alpha1 only).
    pub paused: bool,
    /// Settings of the manager.
    pub manager: Settings,
    /// Settings of the Deployment.
    pub deployment: DeploymentSettings,
    /// Settings of additional Deployments, by name.
    pub additional: BTreeMap<String, AdditionalDeployment>,
    /// Secret with the variables of the provider's files.
    pub config_secret: Option<ObjectKey>,
    /// Source of the provider's files.
    pub fetch: Fetch,
    /// ConfigMap with additional objects.
    pub manifests: Option<ObjectKey>,
    /// Patches for the objects.
    pub patches: Patches,
    /// Whether the provider object is being deleted.
    pub deleting: bool,
}

/// Settings of an additional Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdditionalDeployment {
    /// Settings of the Deployment.
    pub deployment: DeploymentSettings,
    /// Settings of its manager.
    pub manager: Settings,
}

/// Source of a provider's files.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fetch {
    /// The known repository of providers with this type and name.
    #[default]
    Default,
    /// Releases of a repository, or a folder.
    Url(String),
    /// An OCI artifact.
    Oci(String),
    /// ConfigMaps.
    Selector(LabelSelector),
}

/// Patches for a provider's objects, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Patches {
    /// No patches.
    #[default]
    None,
    /// JSON merge patches as YAML. Each patch names its target object.
    Merge(Vec<String>),
    /// Patches with an optional target selector.
    Targeted(Vec<TargetedPatch>),
}

/// A patch and its target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetedPatch {
    /// Strategic merge patch or JSON patch operations, as YAML.
    pub patch: String,
    /// Target objects. Defaults to the object that the patch itself names.
    pub target: Option<PatchTarget>,
}

/// Selector of objects to patch. Objects must match all set fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchTarget {
    /// API group of the object.
    pub group: Option<String>,
    /// The API version.
    pub version: Option<String>,
    /// Kind of the object.
    pub kind: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Label selector in kubectl's syntax.
    pub label_selector: Option<String>,
}

/// Status fields of a provider object other than its conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusParts<'a> {
    /// Contract version of the installed provider.
    pub contract: Option<&'a str>,
    /// Installed version. v1alpha1 does not have this field.
    pub installed_version: Option<&'a str>,
    /// Last reconciled generation.
    pub observed_generation: Option<i64>,
}

/// A provider kind.
pub trait ProviderObject: ApiKind + Conditioned {
    /// The type of the provider.
    const TYPE: ProviderType;
    /// The API of the kind.
    const API: Api;

    /// The settings of the object, or all problems in its spec.
    fn declared(&self) -> Result<Declared, Problems>;

    /// The status fields of the object.
    fn status_parts(&self) -> StatusParts<'_>;
}

/// Settings of a provider object without any optional field.
fn empty(type_: ProviderType, api: Api, metadata: &ObjectMeta) -> Declared {
    Declared {
        type_,
        api,
        key: ObjectKey::new(
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap_or_default(),
        ),
        uid: metadata.uid.clone().unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        version: None,
        paused: false,
        manager: Settings::default(),
        deployment: DeploymentSettings::default(),
        additional: BTreeMap::new(),
        config_secret: None,
        fetch: Fetch::Default,
        manifests: None,
        patches: Patches::None,
        deleting: metadata.deletion_timestamp.is_some(),
    }
}
