//! The source of a chart.

use crate::Secret;

/// A chart in a repository: what tells one chart from another, and what it takes to read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChartSource {
    /// `https://host/path` of a repository with an index, or `oci://host/path` of the folder of a registry.
    pub repo_url: String,
    /// The chart's name there. In a registry it is the last part of the path: `oci://host/path/NAME`.
    pub chart: String,
    /// An exact version, or a range as Helm reads it (`^1.2`, `>=1 <2`); without one, the newest that is no pre-release.
    pub version: Option<String>,
    /// Who asks.
    pub credentials: Option<Credentials>,
    /// CA certificates to trust.
    pub tls: Option<Tls>,
    /// Whether the repository may be asked without TLS: an address that begins with `http://`, or a registry that speaks nothing else.
    pub plain_http: bool,
}

/// Credentials for a repository. Both forms work for both kinds of repositories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// The text of a `config.json` as `docker login` or `helm registry login` writes it. Only its `auths` are used: programs that it
    /// names are not run.
    RegistryConfig(Secret),
    /// A name and a password.
    Login {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
        /// Whether other hosts receive them, too, when the repository's index refers to them.
        pass_everywhere: bool,
    },
}

/// CA certificates to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Authorities, as PEM, instead of those of the system.
    pub ca: Option<String>,
    /// Whether any certificate will do.
    pub insecure_skip_verify: bool,
}
