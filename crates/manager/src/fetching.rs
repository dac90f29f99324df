//! Settings for fetching provider files: CA certificates, cache and variables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use windlass_provider_repository::{Client, Proxies, Settings};

use crate::ManagerError;

/// The user's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetching {
    /// Files with additional CA certificates to trust.
    pub authorities: Vec<PathBuf>,
    /// The folder of the download cache.
    pub cache: Option<PathBuf>,
    /// The names of the environment's variables that providers may use.
    pub variables: Vec<String>,
}

/// The HTTP client of the provider operator. The default trusts the CA certificates of the system and uses no proxy.
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Fetcher {
    pub(crate) client: Client,
    pub(crate) variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values are never shown.
        f.debug_struct("Fetcher")
            .field("variables", &self.variables.keys())
            .finish_non_exhaustive()
    }
}

impl Fetching {
    /// Reads the named files and variables. `lookup` reads environment variables; those of proxies are always used.
    pub fn fetcher(self, lookup: impl Fn(&str) -> Option<String>) -> Result<Fetcher, ManagerError> {
        let mut authorities = Vec::new();
        for path in self.authorities {
            let text = std::fs::read_to_string(&path);
            authorities.push(text.map_err(|source| ManagerError::File {
                verb: "read",
                path,
                source,
            })?);
        }
        let mut variables = BTreeMap::new();
        for name in self.variables {
            let value = lookup(&name).ok_or_else(|| ManagerError::NoVariable { name: name.clone() })?;
            variables.insert(name, value);
        }
        let settings = Settings {
            proxies: Proxies::from_env(lookup).map_err(|error| ManagerError::Fetching(error.into()))?,
            authorities,
            kept_in: self.cache,
            ..Settings::default()
        };
        Ok(Fetcher {
            client: Client::new(settings).map_err(ManagerError::Fetching)?,
            variables,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // OP-225
    #[test]
    fn what_is_named_must_be_there_and_no_value_is_shown() {
        let lookup = |name: &str| (name == "GITHUB_TOKEN").then(|| "t0p".to_owned());
        let with = |variable: &str| Fetching {
            variables: vec![variable.to_owned()],
            ..Fetching::default()
        };
        let shown = format!("{:?}", with("GITHUB_TOKEN").fetcher(lookup).unwrap());
        assert!(shown.contains("GITHUB_TOKEN") && !shown.contains("t0p"), "{shown}");
        let error = with("OTHER").fetcher(lookup).unwrap_err();
        assert!(error.to_string().contains("OTHER"), "{error}");
        let missing = Fetching {
            authorities: vec!["/nowhere/ca.pem".into()],
            ..Fetching::default()
        };
        let error = missing.fetcher(lookup).unwrap_err();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
