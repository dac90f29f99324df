//! Credentials of repositories, from the variables of a provider.

use windlass_http_client::Secret;

/// Tokens and passwords from a provider's variables.
///
/// They are sent to the host of the source, over TLS, and never along a redirect to another host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// For GitHub.
    pub github: Option<Secret>,
    /// For GitLab.
    pub gitlab: Option<Secret>,
    /// For a registry.
    pub oci: OciCredentials,
}

/// Credentials of a registry: a name and a password, or one of two kinds of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OciCredentials {
    /// User name.
    pub username: Option<Secret>,
    /// Password.
    pub password: Option<Secret>,
    /// A token that is sent unchanged.
    pub access_token: Option<Secret>,
    /// A token that is exchanged for an access token.
    pub refresh_token: Option<Secret>,
}

impl OciCredentials {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Credentials {
    /// Reads the variables of credentials: `github-token` or `GITHUB_TOKEN`, `gitlab-access-token` or `GITLAB_ACCESS_TOKEN`,
    /// `OCI_USERNAME`, `OCI_PASSWORD`, `OCI_ACCESS_TOKEN`, `OCI_REFRESH_TOKEN`.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let find = |names: &[&str]| {
            let mut found = names
                .iter()
                .filter_map(|name| lookup(name))
                .map(|text| Secret::new(&text));
            found.find(|secret| !secret.is_empty())
        };
        Self {
            github: find(&["github-token", "GITHUB_TOKEN"]),
            gitlab: find(&["gitlab-access-token", "GITLAB_ACCESS_TOKEN"]),
            oci: OciCredentials {
                username: find(&["OCI_USERNAME"]),
                password: find(&["OCI_PASSWORD"]),
                access_token: find(&["OCI_ACCESS_TOKEN"]),
                refresh_token: find(&["OCI_REFRESH_TOKEN"]),
            },
        }
    }
}
