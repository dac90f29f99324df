//! Options of an operation.

use std::time::Duration;

/// The `options` of a HelmChartProxy that have a Helm flag (docs/helm-addons.md has the table).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Hooks of the chart do not run.
    pub disable_hooks: bool,
    /// The operation ends when what was installed is ready, or, uninstalled, gone.
    pub wait: bool,
    /// And when its Jobs are done; with `wait`.
    pub wait_for_jobs: bool,
    /// How long Helm waits for any one thing, such as a hook.
    pub timeout: Duration,
    /// CRDs of the chart are not installed.
    pub skip_crds: bool,
    /// Notes of subcharts are shown, too.
    pub sub_notes: bool,
    /// Skips the validation against the cluster's schemas.
    pub disable_openapi_validation: bool,
    /// An operation that fails is undone; this waits, too.
    pub atomic: bool,
    /// Existing resources are adopted, also those of other releases.
    pub take_ownership: bool,
    /// Of installing alone.
    pub install: Install,
    /// Of upgrading alone.
    pub upgrade: Upgrade,
    /// Of uninstalling alone.
    pub uninstall: Uninstall,
}

/// Of installing alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The release's namespace is made if it is missing. Nothing ever removes it.
    pub create_namespace: bool,
    /// The name may be one whose uninstalled release is still in the history; not a field of the API, but what the one who finds
    /// [`Status::Uninstalled`](crate::Status::Uninstalled) there has to say.
    pub replace: bool,
}

/// Of upgrading alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Resources that cannot be patched are replaced.
    pub force: bool,
    /// The values of the release are forgotten.
    pub reset_values: bool,
    /// The values of the release are kept, and those given now are laid over them.
    pub reuse_values: bool,
    /// The same over the new chart's defaults.
    pub reset_then_reuse_values: bool,
    /// How many revisions are kept; 0 for all.
    pub max_history: u32,
    /// Resources that a failed upgrade has created are removed.
    pub cleanup_on_fail: bool,
}

/// Of uninstalling alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uninstall {
    /// The history stays, and with it the name is taken.
    pub keep_history: bool,
    /// Words to keep with it.
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
