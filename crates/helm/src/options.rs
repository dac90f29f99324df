//! Options of an operation.

use std::time::Duration;

/// The `options` of a HelmChartProxy with a Helm flag (docs/helm-addons.md has the table).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Hooks of the chart do not run.
    pub disable_hooks: bool,
    /// Wait until installed resources are ready or, after uninstalling, deleted.
    pub wait: bool,
    /// With `wait`: also wait until Jobs have completed.
    pub wait_for_jobs: bool,
    /// The timeout of each wait, such as for a hook.
    pub timeout: Duration,
    /// CRDs of the chart are not installed.
    pub skip_crds: bool,
    /// Notes of subcharts are included.
    pub sub_notes: bool,
    /// Skips the validation against the cluster's schemas.
    pub disable_openapi_validation: bool,
    /// A failed operation is rolled back; implies `wait`.
    pub atomic: bool,
    /// Existing resources are adopted, including those of other releases.
    pub take_ownership: bool,
    /// For install only.
    pub install: Install,
    /// For upgrade only.
    pub upgrade: Upgrade,
    /// For uninstall only.
    pub uninstall: Uninstall,
}

/// Options of install only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The release's namespace is created if it is missing. It is never removed.
    pub create_namespace: bool,
    /// The name may belong to an uninstalled release with history. Not a field of the API: the controller sets it when it finds
    /// [`Status::Uninstalled`](crate::Status::Uninstalled).
    pub replace: bool,
}

/// Options of upgrade only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Resources that cannot be patched are replaced.
    pub force: bool,
    /// The values of the release are dropped.
    pub reset_values: bool,
    /// The values of the release are kept, and overridden by the given ones.
    pub reuse_values: bool,
    /// [`Self::reuse_values`] on top of the new chart's defaults.
    pub reset_then_reuse_values: bool,
    /// The number of revisions to keep; 0 for all.
    pub max_history: u32,
    /// Resources that a failed upgrade has created are removed.
    pub cleanup_on_fail: bool,
}

/// Options of uninstall only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uninstall {
    /// The history is kept, so that the name stays taken.
    pub keep_history: bool,
    /// A description to keep with it.
    pub description: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            disable_hooks: false,
            wait: false,
            wait_for_jobs: false,
            timeout: Duration::from_mins(10),
            skip_crds: false,
            sub_notes: false,
            disable_openapi_validation: false,
            atomic: false,
            take_ownership: false,
            install: Install::default(),
            upgrade: Upgrade::default(),
            uninstall: Uninstall::default(),
        }
    }
}

impl Default for Install {
    fn default() -> Self {
        Self {
            create_namespace: true,
            replace: false,
        }
    }
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            force: false,
            reset_values: false,
            reuse_values: false,
            reset_then_reuse_values: false,
            max_history: 10,
            cleanup_on_fail: false,
        }
    }
}
