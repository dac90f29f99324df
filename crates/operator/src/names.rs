//! Names that are the operator's own: of controllers, field managers, labels and annotations of what it keeps.

use windlass_api_operator::{Api, ProviderType};

/// Field manager of everything that is installed.
pub const MANAGER: &str = "capi-operator";
/// Field manager of the status of declarations.
pub const STATUS_MANAGER: &str = "capi-operator-status";

/// Says whether a kept release is `current`, `next` or `failed`.
pub const STATE: &str = "provider.cluster.x-k8s.io/state";
/// Says which release a Deployment is of.
pub const RELEASE: &str = "provider.cluster.x-k8s.io/release";
/// On a part of a kept release: which part.
pub const PART: &str = "provider.cluster.x-k8s.io/part";

/// On a declaration: digests of the releases that the operator keeps of it.
pub const VOUCHED: &str = "provider.cluster.x-k8s.io/kept-releases";

/// What the objects of installed providers have in common: these labels.
pub const SELECTOR: &str = "clusterctl.cluster.x-k8s.io,cluster.x-k8s.io/provider";

/// The name of the controller of a kind, in logs, metrics and `--controllers`.
pub const fn controller(api: Api, type_: ProviderType) -> &'static str {
    match (api, type_) {
        (Api::V1Alpha2, ProviderType::Core) => "operator/coreprovider",
        (Api::V1Alpha2, ProviderType::Bootstrap) => "operator/bootstrapprovider",
        (Api::V1Alpha2, ProviderType::ControlPlane) => "operator/controlplaneprovider",
        (Api::V1Alpha2, ProviderType::Infrastructure) => "operator/infrastructureprovider",
        (Api::V1Alpha2, ProviderType::Ipam) => "operator/ipamprovider",
        (Api::V1Alpha2, ProviderType::RuntimeExtension) => "operator/runtimeextensionprovider",
        (Api::V1Alpha2, ProviderType::Addon) => "operator/addonprovider",
        (Api::V1Alpha1, ProviderType::Core) => "management/coreprovider",
        (Api::V1Alpha1, ProviderType::Bootstrap) => "management/bootstrapprovider",
        (Api::V1Alpha1, ProviderType::ControlPlane) => "management/controlplaneprovider",
        (Api::V1Alpha1, ProviderType::Infrastructure) => "management/infrastructureprovider",
        (Api::V1Alpha1, ProviderType::Ipam) => "management/ipamprovider",
        (Api::V1Alpha1, ProviderType::RuntimeExtension) => "management/runtimeextensionprovider",
        (Api::V1Alpha1, ProviderType::Addon) => "management/addonprovider",
    }
}

/// Reasons of conditions that only this operator has.
pub mod reasons {
    /// All preflight checks have passed.
    pub const PASSED: &str = "PreflightCheckPassed";
    /// The provider is installed.
    pub const INSTALLED: &str = "ProviderInstalled";
    /// The last upgrade or change has succeeded.
    pub const UPGRADED: &str = "ProviderUpgraded";
    /// The contract differs from that of the core provider.
    pub const CONTRACT_MISMATCH: &str = "ContractMismatch";
    /// The core has to be upgraded first.
    pub const WAITING_FOR_CORE_UPGRADE: &str = "WaitingForCoreProviderUpgrade";
    /// The provider is installed in another namespace.
    pub const INSTALLED_ELSEWHERE: &str = "InstalledElsewhere";
    /// A contract changes only while all providers are paused.
    pub const NOT_ALL_PAUSED: &str = "NotAllProvidersPaused";
    /// A provider follows another contract than the core provider.
    pub const UNPAUSE_BLOCKED: &str = "UnpauseBlocked";
    /// The provider is paused.
    pub const PAUSED: &str = "Paused";
    /// The Secret with variables does not exist.
    pub const SECRET_MISSING: &str = "ConfigSecretMissing";
    /// Variables of the components have no value.
    pub const VARIABLES_MISSING: &str = "VariablesMissing";
    /// The ConfigMap with additional objects does not exist or has none.
    pub const MANIFESTS_MISSING: &str = "AdditionalManifestsMissing";
    /// Another provider has installed some of the same objects.
    pub const COMPONENTS_SHARED: &str = "ComponentsShared";
    /// The API server refuses an object.
    pub const APPLY_ERROR: &str = "ComponentsApplyError";
    /// A Secret with rendered objects cannot be read.
    pub const KEPT_UNREADABLE: &str = "InstalledComponentsUnreadable";
    /// A Secret with rendered objects is not as the operator wrote it.
    pub const KEPT_UNTRUSTED: &str = "InstalledComponentsUntrusted";
    /// The provider is built in: nothing has to be installed, and nothing is.
    pub const BUILT_IN: &str = "BuiltIn";
    /// The provider is built in, and not as it is declared.
    pub const BUILT_IN_DIFFERENTLY: &str = "BuiltInDifferently";
    /// The provider is built in now, and what was installed of it before was taken out of the way.
    pub const REPLACED_BY_BUILT_IN: &str = "ReplacedByBuiltIn";
    /// Objects of the provider's kinds still exist.
    pub const IN_USE: &str = "ProviderInUse";
    /// Other providers still exist.
    pub const PROVIDERS_LEFT: &str = "OtherProvidersExist";
    /// The provider is being removed.
    pub const REMOVING: &str = "Removing";
    /// Nothing is installed yet.
    pub const NOT_INSTALLED: &str = "NotInstalled";
    /// No controller in this cluster reconciles Deployments.
    pub const NOTHING_RUNS_DEPLOYMENTS: &str = "WaitingForClusterThatRunsDeployments";
    /// A Deployment of the provider is missing.
    pub const DEPLOYMENT_MISSING: &str = "DeploymentMissing";
    /// The provider has no Deployments.
    pub const NO_DEPLOYMENTS: &str = "NoDeployments";
}
