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

/// Reasons of conditions that no other implementation has.
pub mod reasons {
    /// Everything is well.
    pub const PASSED: &str = "PreflightCheckPassed";
    /// Installed.
    pub const INSTALLED: &str = "ProviderInstalled";
    /// Upgraded, or changed.
    pub const UPGRADED: &str = "ProviderUpgraded";
    /// The contract is not the core's.
    pub const CONTRACT_MISMATCH: &str = "ContractMismatch";
    /// The core has to be upgraded first.
    pub const WAITING_FOR_CORE_UPGRADE: &str = "WaitingForCoreProviderUpgrade";
    /// Somebody has installed it in another namespace.
    pub const INSTALLED_ELSEWHERE: &str = "InstalledElsewhere";
    /// A contract changes only while all providers are paused.
    pub const NOT_ALL_PAUSED: &str = "NotAllProvidersPaused";
    /// Some provider follows another contract than the core.
    pub const UNPAUSE_BLOCKED: &str = "UnpauseBlocked";
    /// The provider is paused.
    pub const PAUSED: &str = "Paused";
    /// The Secret with variables is not there.
    pub const SECRET_MISSING: &str = "ConfigSecretMissing";
    /// Variables without a value.
    pub const VARIABLES_MISSING: &str = "VariablesMissing";
    /// The ConfigMap with additional objects is not there, or has none.
    pub const MANIFESTS_MISSING: &str = "AdditionalManifestsMissing";
    /// Another provider has some of the same objects.
    pub const COMPONENTS_SHARED: &str = "ComponentsShared";
    /// The server refuses an object.
    pub const APPLY_ERROR: &str = "ComponentsApplyError";
    /// What was kept cannot be read.
    pub const KEPT_UNREADABLE: &str = "InstalledComponentsUnreadable";
    /// Objects of the provider's kinds are left.
    pub const IN_USE: &str = "ProviderInUse";
    /// Other providers are left.
    pub const PROVIDERS_LEFT: &str = "OtherProvidersExist";
    /// It is being removed.
    pub const REMOVING: &str = "Removing";
    /// Nothing is installed yet.
    pub const NOT_INSTALLED: &str = "NotInstalled";
    /// No controller has ever looked at the Deployments.
    pub const NOTHING_RUNS_DEPLOYMENTS: &str = "WaitingForClusterThatRunsDeployments";
    /// There are Deployments that are not there.
    pub const DEPLOYMENT_MISSING: &str = "DeploymentMissing";
    /// There is nothing to run.
    pub const NO_DEPLOYMENTS: &str = "NoDeployments";
}
