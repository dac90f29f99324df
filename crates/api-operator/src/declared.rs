//! The one model over both APIs.

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

/// The API that a provider is declared through.
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

/// A declaration, whichever API it was made through.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// What sort of provider.
    pub type_: ProviderType,
    /// Through which API.
    pub api: Api,
    /// The declaration's namespace and name; the provider is installed into that namespace and has that name.
    pub key: ObjectKey,
    /// The declaration's uid.
    pub uid: String,
    /// The declaration's generation.
    pub generation: i64,
    /// The version that is wished for; the latest where nothing is said.
    pub version: Option<String>,
    /// Whether the provider is held still by its specification (v1alpha1 only).
    pub paused: bool,
    /// Settings of the manager.
    pub manager: Settings,
    /// Settings of the Deployment.
    pub deployment: DeploymentSettings,
    /// Settings of further Deployments, by name.
    pub additional: BTreeMap<String, AdditionalDeployment>,
    /// The Secret with variables.
    pub config_secret: Option<ObjectKey>,
    /// Where the files come from.
    pub fetch: Fetch,
    /// The ConfigMap with further objects.
    pub manifests: Option<ObjectKey>,
    /// Patches for the objects.
    pub patches: Patches,
    /// Whether the declaration is being deleted.
    pub deleting: bool,
}

/// Settings of a further Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdditionalDeployment {
    /// Settings of the Deployment.
    pub deployment: DeploymentSettings,
    /// Settings of its manager.
    pub manager: Settings,
}

/// Where a provider's files come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fetch {
    /// From where providers of this type and name are known to be.
    #[default]
    Default,
    /// From the releases of a repository, or a folder.
    Url(String),
    /// From an OCI artifact.
    Oci(String),
    /// From ConfigMaps.
    Selector(LabelSelector),
}

/// Patches for a provider's objects, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Patches {
    /// None.
    #[default]
    None,
    /// JSON merge patches as YAML, that name the objects they are for.
    Merge(Vec<String>),
    /// Patches that may say which objects they are for.
    Targeted(Vec<TargetedPatch>),
}

/// A patch and what it is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetedPatch {
    /// A strategic merge patch or JSON patch operations, as YAML.
    pub patch: String,
    /// The objects; where nothing is said, the one that the patch itself names.
    pub target: Option<PatchTarget>,
}

/// Which objects are patched: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchTarget {
    /// The API group.
    pub group: Option<String>,
    /// The API version.
    pub version: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// Labels, as kubectl writes selectors.
    pub label_selector: Option<String>,
}

/// What the status of a declaration says, beside its conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusParts<'a> {
    /// The contract of what is installed.
    pub contract: Option<&'a str>,
    /// The version that is installed; v1alpha1 does not say it.
    pub installed_version: Option<&'a str>,
    /// The generation that was acted on last.
    pub observed_generation: Option<i64>,
}

/// A kind that declares a provider.
pub trait ProviderObject: ApiKind + Conditioned {
    /// What sort of provider it declares.
    const TYPE: ProviderType;
    /// The API that it belongs to.
    const API: Api;

    /// The declaration, or everything that is wrong with it.
    fn declared(&self) -> Result<Declared, Problems>;

    /// What its status says.
    fn status_parts(&self) -> StatusParts<'_>;
}

/// A declaration that says nothing.
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
