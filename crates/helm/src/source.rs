//! The source of a chart.

use crate::Secret;

/// A chart in a repository: its identity, and the settings to read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChartSource {
    /// `https://host/path` of a repository with an index, or `oci://host/path` of a folder in a registry.
    pub repo_url: String,
    /// The chart's name. In a registry it is the last part of the path: `oci://host/path/NAME`.
    pub chart: String,
    /// An exact version, or a range in Helm's syntax (`^1.2`, `>=1 <2`). Defaults to the newest version that is not a
    /// pre-release.
    pub version: Option<String>,
    /// The credentials.
    pub credentials: Option<Credentials>,
    /// CA certificates to trust.
    pub tls: Option<Tls>,
    /// Whether the repository may be accessed without TLS: an address with `http://`, or a registry without TLS.
    pub plain_http: bool,
}

/// Credentials for a repository. Both forms work for both kinds of repositories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// The text of a `config.json` in the format of `docker login` or `helm registry login`. Only its `auths` are used, and no
    /// credential helper is run.
    RegistryConfig(Secret),
    /// A name and a password.
    Login {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
        /// Whether they are also sent to other hosts that the repository's index refers to.
        pass_everywhere: bool,
    },
}

/// CA certificates to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Authorities, as PEM, instead of those of the system.
    pub ca: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure_skip_verify: bool,
}
