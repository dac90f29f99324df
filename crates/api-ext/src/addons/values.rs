//! Values of enumerated fields, and defaults.

/// `reconcileStrategy`: a release always follows its HelmChartProxy.
pub const RECONCILE_CONTINUOUS: &str = "Continuous";
/// `reconcileStrategy`: a release is not changed after its installation.
pub const RECONCILE_INSTALL_ONCE: &str = "InstallOnce";

/// Default namespace of releases.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Default timeout of a Helm operation, as a Go duration.
pub const DEFAULT_TIMEOUT: &str = "10m0s";
/// Default key of a credentials Secret.
pub const DEFAULT_CREDENTIALS_KEY: &str = "config.json";
/// Key of a Secret with CA certificates.
pub const CA_KEY: &str = "ca.crt";
/// Default number of revisions to keep.
pub const DEFAULT_MAX_HISTORY: i64 = 10;
