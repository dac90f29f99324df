//! Validates a chart source and converts it for helm's command line. Pure.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::words::Mask;
use crate::{ChartSource, Credentials, HelmError, Kind, Secret, Tls};

#[cfg(test)]
#[path = "address/tests.rs"]
mod tests;

/// The name of a repository with an index in helm's files.
pub(crate) const NAME: &str = "r";

/// A valid chart source.
#[derive(Clone, Debug)]
pub(crate) struct Address<'a> {
    pub(crate) source: &'a ChartSource,
    pub(crate) sort: Sort,
    /// `host` or `host:port`.
    pub(crate) host: &'a str,
}

/// A type of repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A repository with an index.
    Index,
    /// An OCI registry.
    Registry,
}

/// A name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Login {
    username: String,
    password: Secret,
    pass_everywhere: bool,
}

impl<'a> Address<'a> {
    /// Validates a source.
    pub(crate) fn new(source: &'a ChartSource) -> Result<Self, HelmError> {
        let invalid = |what: &str, why: &str| Err(HelmError::new(Kind::Invalid, format!("{what}: {why}")));
        let url = &source.repo_url;
        let (sort, rest) = if let Some(rest) = url.strip_prefix("oci://") {
            (Sort::Registry, rest)
        } else if let Some(rest) = url.strip_prefix("https://") {
            (Sort::Index, rest)
        } else if let Some(rest) = url.strip_prefix("http://") {
            if !source.plain_http {
                return invalid("repoURL", "http:// is not allowed here, use https://");
            }
            (Sort::Index, rest)
        } else {
            return invalid("repoURL", "must begin with https:// or oci://");
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') {
            return invalid("repoURL", "credentials belong into a Secret, not into the address");
        }
        let is_plain = |c: char| c.is_ascii_graphic() && !"\"'\\<>`{}".contains(c);
        if host.is_empty() || !rest.chars().all(is_plain) {
            return invalid("repoURL", "must be a URL with a host");
        }
        if sort == Sort::Registry && rest.contains(['?', '#']) {
            return invalid("repoURL", "the address of a registry is a host and a path");
        }
        let is_part = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(plain)
        };
        if !source.chart.split('/').all(is_part) {
            return invalid(
                "chartName",
                "must be the name of a chart: letters, digits, \"-\", \"_\" and \".\"",
            );
        }
        if let Some(version) = source.version()
            && version.chars().any(char::is_control)
        {
            return invalid("version", "must be a version such as 1.2.3 or a range such as ^1.2");
        }
        Ok(Self { source, sort, host })
    }

    /// The full reference of a chart in a registry.
    pub(crate) fn reference(&self) -> String {
        format!("{}/{}", self.source.repo_url.trim_end_matches('/'), self.source.chart)
    }

    /// The shared key of requests for the same list of versions.
    pub(crate) fn repository_key(&self) -> String {
        let source = self.source;
        digest(format!(
            "{:?}",
            (
                &source.repo_url,
                seen_by(source.credentials.as_ref()),
                &source.tls,
                source.plain_http
            )
        ))
    }

    /// The shared key of requests for the same chart.
    pub(crate) fn chart_key(&self) -> String {
        digest(format!(
            "{:?}",
            (self.repository_key(), &self.source.chart, self.source.version())
        ))
    }

    /// helm's `repositories.yaml`, with this single repository.
    pub(crate) fn repositories(&self, ca: Option<&str>) -> Result<Vec<u8>, HelmError> {
        let mut entry = json!({
            "name": NAME,
            "url": self.source.repo_url,
            "insecure_skip_tls_verify": self.insecure(),
        });
        if let Some(ca) = ca {
            entry["caFile"] = ca.into();
        }
        if let Some(login) = self.login()? {
            entry["username"] = login.username.into();
            entry["password"] = login.password.reveal().into();
            entry["pass_credentials_all"] = login.pass_everywhere.into();
        }
        let file = json!({"apiVersion": "v1", "generated": "2020-01-01T00:00:00Z", "repositories": [entry]});
        Ok(file.to_string().into_bytes())
    }

    /// helm's `config.json` of registries, with credentials only.
    pub(crate) fn registries(&self) -> Result<Vec<u8>, HelmError> {
        let auths = match &self.source.credentials {
            None => json!({}),
            Some(Credentials::RegistryConfig(config)) => auths(config)?,
            Some(Credentials::Login { username, password, .. }) => {
                let auth = BASE64_STANDARD.encode(format!("{username}:{}", password.reveal()));
                json!({self.host: {"auth": auth}})
            }
        };
        Ok(json!({"auths": auths}).to_string().into_bytes())
    }

    /// Whether certificates are not verified.
    pub(crate) fn insecure(&self) -> bool {
        self.source.tls.as_ref().is_some_and(|tls| tls.insecure_skip_verify)
    }

    /// The authorities, as PEM.
    pub(crate) fn ca(&self) -> Option<&'a str> {
        let Tls { ca, .. } = self.source.tls.as_ref()?;
        ca.as_deref().filter(|ca| !ca.trim().is_empty())
    }

    /// Adds the secrets to a mask.
    pub(crate) fn hide(&self, mask: &mut Mask) {
        match &self.source.credentials {
            None => {}
            Some(Credentials::Login { password, .. }) => mask.hide(password.reveal()),
            Some(Credentials::RegistryConfig(config)) => {
                let auths = auths(config).unwrap_or_default();
                for entry in auths.as_object().into_iter().flat_map(|auths| auths.values()) {
                    for field in ["auth", "password", "identitytoken", "registrytoken"] {
                        mask.hide(entry[field].as_str().unwrap_or_default());
                    }
                    if let Some(login) = login_of(entry) {
                        mask.hide(login.password.reveal());
                    }
                }
            }
        }
    }

    /// Credentials for a repository with an index.
    fn login(&self) -> Result<Option<Login>, HelmError> {
        Ok(match &self.source.credentials {
            None => None,
            Some(Credentials::Login {
                username,
                password,
                pass_everywhere,
            }) => Some(Login {
                username: username.clone(),
                password: password.clone(),
                pass_everywhere: *pass_everywhere,
            }),
            Some(Credentials::RegistryConfig(config)) => {
                let auths = auths(config)?;
                let mut entries = auths.as_object().into_iter().flatten();
                let entry = entries.find(|(name, _)| host_of(name) == self.host);
                entry.and_then(|(_, entry)| login_of(entry))
            }
        })
    }
}

impl ChartSource {
    /// The requested version; `None` for the newest.
    pub(crate) fn version(&self) -> Option<&str> {
        let version = self.version.as_deref().map(str::trim);
        version.filter(|version| !version.is_empty())
    }

    /// Whether only a single, immutable version matches.
    pub(crate) fn is_exact(&self) -> bool {
        let version = self
            .version()
            .map(|version| version.strip_prefix('v').unwrap_or(version));
        version.is_some_and(|version| semver::Version::parse(version).is_ok())
    }
}

/// A hash of the credentials, which separates callers in keys without keeping the credentials.
fn seen_by(credentials: Option<&Credentials>) -> Option<String> {
    let text = match credentials? {
        Credentials::RegistryConfig(config) => format!("config {}", config.reveal()),
        Credentials::Login {
            username,
            password,
            pass_everywhere,
        } => format!("login {:?}", (username, password.reveal(), pass_everywhere)),
    };
    Some(digest(&text))
}

fn auths(config: &Secret) -> Result<Value, HelmError> {
    let invalid = || {
        let message = "credentials: must be the JSON of a config.json of registries, with \"auths\"";
        HelmError::new(Kind::Invalid, message)
    };
    let mut config: Value = serde_json::from_str(config.reveal()).map_err(|_| invalid())?;
    match config.get_mut("auths") {
        Some(auths @ Value::Object(_)) => Ok(auths.take()),
        _ => Err(invalid()),
    }
}

/// The host of a `config.json` entry, which may have a scheme and a path.
fn host_of(name: &str) -> &str {
    let name = name
        .strip_prefix("https://")
        .or_else(|| name.strip_prefix("http://"))
        .unwrap_or(name);
    name.split('/').next().unwrap_or_default()
}

fn login_of(entry: &Value) -> Option<Login> {
    let plain = || {
        Some((
            entry["username"].as_str()?.to_owned(),
            entry["password"].as_str()?.to_owned(),
        ))
    };
    let packed = || {
        let bytes = BASE64_STANDARD.decode(entry["auth"].as_str()?.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        text.split_once(':')
            .map(|(name, password)| (name.to_owned(), password.to_owned()))
    };
    let (username, password) = packed().or_else(plain)?;
    Some(Login {
        username,
        password: Secret::new(password),
        pass_everywhere: false,
    })
}

/// SHA-256 in hex.
pub(crate) fn digest(content: impl AsRef<[u8]>) -> String {
    let half = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let hash = Sha256::digest(content.as_ref());
    hash.iter()
        .flat_map(|byte| [half(byte >> 4), half(byte & 15)])
        .collect()
}
