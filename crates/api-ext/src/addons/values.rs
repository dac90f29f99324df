//! Words that appear as values of fields, and what is meant where a field is left out.

/// `reconcileStrategy`: a release follows its HelmChartProxy for ever.
pub const RECONCILE_CONTINUOUS: &str = "Continuous";
/// `reconcileStrategy`: a release is left alone once it has been installed.
pub const RECONCILE_INSTALL_ONCE: &str = "InstallOnce";

/// The namespace of releases that name none.
pub const DEFAULT_NAMESPACE: &str = "default";
/// How long an operation of Helm may take where nothing is said, as Go writes it.
pub const DEFAULT_TIMEOUT: &str = "10m0s";
/// The key of a Secret with credentials where nothing is said.
pub const DEFAULT_CREDENTIALS_KEY: &str = "config.json";
/// The key of a Secret with authorities.
pub const CA_KEY: &str = "ca.crt";
/// How many revisions of a release are kept where nothing is said.
pub const DEFAULT_MAX_HISTORY: i64 = 10;
