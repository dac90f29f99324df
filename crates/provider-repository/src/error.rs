//! Errors of fetching files. Each variant has its own remedy.

use std::time::Duration;

use jiff::Timestamp;
use windlass_http_client as http;
use windlass_meta::beginning;

/// Why files could not be fetched; the message has the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address has an unknown form.
    #[error("{url:?} is not an address to fetch a provider from: {why}")]
    InvalidUrl {
        /// The address, without passwords.
        url: String,
        /// The problem.
        why: String,
    },
    /// There is no answer, or it is too long or broken off.
    #[error(transparent)]
    Http(http::Error),
    /// Local files are for command lines.
    #[error(
        "{url:?} is a folder of this machine, which only the command line reads: serve it over HTTPS, or put the files into \
         ConfigMaps and set fetchConfig.selector"
    )]
    LocalFolder {
        /// The address.
        url: String,
    },
    /// The repository does not have this version.
    #[error("{place} has no version {version:?}; {}", known(available))]
    VersionNotFound {
        /// The repository.
        place: String,
        /// The requested version.
        version: String,
        /// The existing ones; empty if unknown.
        available: Vec<String>,
    },
    /// The version exists, but the file does not.
    #[error("version {version} in {place} has no file {file:?}; {}", files(available))]
    FileNotFound {
        /// The repository.
        place: String,
        /// The version.
        version: String,
        /// The file.
        file: String,
        /// The existing files; empty if unknown.
        available: Vec<String>,
    },
    /// The version exists and declares no contract.
    #[error(
        "version {version} in {place} has no metadata.yaml, which says the contract that it speaks: publish the file with the \
         release, or choose another version"
    )]
    NoMetadata {
        /// The repository.
        place: String,
        /// The version.
        version: String,
    },
    /// The repository does not exist, or it is private.
    #[error("{place} does not exist, or is private: check its address{}", match token { Some(name) => format!(", and set {name} if it is private"), None => ", and whether the token may read it".to_owned() })]
    RepositoryNotFound {
        /// The repository.
        place: String,
        /// The variable to set, if no token was sent.
        token: Option<&'static str>,
    },
    /// There are no releases.
    #[error("{place} has no release whose tag is a semantic version such as v1.2.3")]
    NoVersions {
        /// The repository.
        place: String,
    },
    /// The source has no list of versions.
    #[error("{place} does not say which versions it has: set spec.version")]
    NoList {
        /// The repository.
        place: String,
    },
    /// Too many requests.
    #[error("{host} takes no more requests from here for now{}{}", until.map(|until| format!(", until {until}")).unwrap_or_default(), match token { Some(name) => format!("; with a token in {name} it would take more"), None => String::new() })]
    RateLimited {
        /// The host.
        host: String,
        /// When it ends.
        until: Option<Timestamp>,
        /// The time until then, from the response on.
        wait: Duration,
        /// The variable to set, if no token was sent.
        token: Option<&'static str>,
    },
    /// The credentials are wrong or missing.
    #[error("{host} wants {}", credentials(*sent, variables))]
    Unauthorized {
        /// The host.
        host: String,
        /// Whether credentials were sent.
        sent: bool,
        /// The variables of credentials; empty if none are ever sent.
        variables: &'static str,
    },
    /// The credentials are valid but lack the permission.
    #[error("{host} does not allow to read {url}{}: {}", said(message), if *sent { "ask for the right to read it" } else { "set credentials in the provider's variables" })]
    Forbidden {
        /// The host.
        host: String,
        /// The requested URL.
        url: String,
        /// The host's message.
        message: String,
        /// Whether credentials were sent.
        sent: bool,
    },
    /// The server has a problem.
    #[error(
        "{url} answers {status}{}: the server has a problem, nothing is wrong with the address",
        said(message)
    )]
    Server {
        /// The requested URL.
        url: String,
        /// The status, from 500 on.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// An unexpected status.
    #[error("{url} answers {status}{}, which is not a file", said(message))]
    Status {
        /// The requested URL.
        url: String,
        /// The status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The content does not match its declared digest or size.
    #[error(
        "{what} is not what its checksum says: expected {expected}, got {found}; it was changed on the way or on the server"
    )]
    Checksum {
        /// The file.
        what: String,
        /// The expected value.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// A web page instead of a file.
    #[error(
        "{url} is a web page, not YAML: a sign-in page or a proxy's, or the address of a page that only links to the file"
    )]
    Html {
        /// The requested URL.
        url: String,
    },
    /// The file is empty.
    #[error("{what} is empty")]
    Empty {
        /// The file.
        what: String,
    },
    /// The file is not text.
    #[error("{what} is not text in UTF-8{}", if *gzip { ": it is compressed with gzip; publish it as it is" } else { "" })]
    NotText {
        /// The file.
        what: String,
        /// It has the gzip header.
        gzip: bool,
    },
    /// The response of an API does not match its documentation.
    #[error("{url} answers with something else than {expected}: {why}")]
    NotUnderstood {
        /// The requested URL.
        url: String,
        /// What was expected.
        expected: &'static str,
        /// The problem.
        why: String,
    },
    /// A local file cannot be read.
    #[error("{path} cannot be read: {why}")]
    Unreadable {
        /// The file or folder.
        path: String,
        /// The system's error.
        why: String,
    },
    /// No ConfigMap has the labels.
    #[error(
        "no ConfigMap in namespace {namespace:?} has the labels {selector:?}: create one for each version, with the keys metadata and components"
    )]
    NoConfigMaps {
        /// The provider's namespace.
        namespace: String,
        /// The labels.
        selector: String,
    },
    /// A ConfigMap lacks one of the two files.
    #[error("ConfigMap {config_map} has no key {key:?}{}", found(keys))]
    MissingKey {
        /// Namespace and name.
        config_map: String,
        /// The missing key.
        key: &'static str,
        /// The existing keys.
        keys: Vec<String>,
    },
    /// A ConfigMap has an invalid version.
    #[error("ConfigMap {config_map} is for no version: {version:?} ({from}) is not one such as v1.2.3")]
    ConfigMapVersion {
        /// Namespace and name.
        config_map: String,
        /// The version.
        version: String,
        /// The field with the version.
        from: String,
    },
    /// Two ConfigMaps have the same version.
    #[error("version {version} is in several ConfigMaps of namespace {namespace:?}: {}; delete all but one, or make the selector say which", config_maps.join(", "))]
    Ambiguous {
        /// The version.
        version: String,
        /// The namespace.
        namespace: String,
        /// Their names.
        config_maps: Vec<String>,
    },
    /// Pieces of a split file are missing or inconsistent.
    #[error("version {version} is split over ConfigMaps of namespace {namespace:?}, and {why}")]
    Parts {
        /// The version.
        version: String,
        /// The namespace.
        namespace: String,
        /// The problem.
        why: String,
    },
    /// The content is declared as compressed, but it is not.
    #[error(
        "ConfigMap {config_map} says that its components are compressed, and they are not as gzip writes them: {why}"
    )]
    NotCompressed {
        /// Namespace and name.
        config_map: String,
        /// The problem.
        why: String,
    },
    /// A version that is not valid in Kubernetes names and labels.
    #[error("version {version:?} cannot be the value of a label, so no ConfigMap can be for it")]
    NoLabel {
        /// The version.
        version: String,
    },
}

/// The limit of list items: longer lists do not fit into a condition and are not read.
const MOST: usize = 12;
/// The most bytes of a text that a server has chosen.
pub(crate) const LONGEST: usize = 200;

/// The first names of many.
fn names<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let first: Vec<_> = all.take(MOST).map(|name| beginning(name, LONGEST)).collect();
    first.join(", ")
}

fn known(available: &[String]) -> String {
    let newest = names(available.iter().rev());
    match available.len() {
        0 => "check the version".to_owned(),
        count if count > MOST => format!("there are {newest} and {} older ones", count - MOST),
        _ => format!("there are {newest}"),
    }
}

fn credentials(sent: bool, variables: &str) -> String {
    match (sent, variables) {
        (_, "") => {
            "credentials, and folders in the web are read without any: use a host that wants none, or ConfigMaps"
                .to_owned()
        }
        (true, _) => format!("other credentials: those in {variables} were not accepted"),
        (false, _) => format!("credentials: set {variables} in the provider's variables"),
    }
}

fn files(available: &[String]) -> String {
    match available {
        [] => "check the address".to_owned(),
        many if many.len() > MOST => format!("it has {} and {} others", names(many.iter()), many.len() - MOST),
        few => format!("it has {}", names(few.iter())),
    }
}

fn found(keys: &[String]) -> String {
    match keys {
        [] => "; it is empty".to_owned(),
        _ => format!("; it has {}", keys.join(", ")),
    }
}

fn said(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(" ({message})")
    }
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Self {
        match error {
            http::Error::InvalidUrl { url, why } => Self::InvalidUrl { url, why },
            other => Self::Http(other),
        }
    }
}

impl Error {
    pub(crate) fn invalid_url(url: &str, why: &str) -> Self {
        Self::InvalidUrl {
            url: http::without_credentials(url),
            why: why.to_owned(),
        }
    }

    /// The reason for a condition or an event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } | Self::LocalFolder { .. } => "InvalidFetchURL",
            Self::VersionNotFound { .. } | Self::NoVersions { .. } | Self::NoList { .. } => "VersionNotFound",
            Self::FileNotFound { .. } => "FileNotFound",
            Self::NoMetadata { .. } => "MetadataNotFound",
            Self::RepositoryNotFound { .. } => "RepositoryNotFound",
            Self::RateLimited { .. } => "RateLimited",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::Forbidden { .. } => "Forbidden",
            Self::Http(error) => match error {
                http::Error::InvalidUrl { .. } => "InvalidFetchURL",
                http::Error::Untrusted { .. } | http::Error::Authorities { .. } => "CertificateNotTrusted",
                http::Error::Unreachable { .. } => "Unreachable",
                http::Error::Proxy { .. } => "ProxyError",
                http::Error::TimedOut { .. } => "TimedOut",
                http::Error::Redirect { .. } => "UnexpectedAnswer",
                http::Error::TooLarge { .. } => "TooLarge",
                http::Error::Truncated { .. } => "Truncated",
            },
            Self::Server { .. } | Self::Status { .. } | Self::NotUnderstood { .. } => "UnexpectedAnswer",
            Self::Checksum { .. } => "ChecksumMismatch",
            Self::Html { .. } => "WebPage",
            Self::Empty { .. } | Self::NotText { .. } => "NotYAML",
            Self::Unreadable { .. } => "Unreadable",
            Self::NoConfigMaps { .. } => "ConfigMapNotFound",
            Self::MissingKey { .. } => "ConfigMapKeyMissing",
            Self::ConfigMapVersion { .. } | Self::NoLabel { .. } => "ConfigMapVersionInvalid",
            Self::Ambiguous { .. } => "ConfigMapAmbiguous",
            Self::Parts { .. } | Self::NotCompressed { .. } => "ConfigMapDamaged",
        }
    }

    /// When a retry is useful, if the server stated a time.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } => Some(*wait),
            _ => None,
        }
    }

    /// Whether a retry may succeed without any action.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Server { .. } => true,
            Self::Http(error) => error.is_passing(),
            _ => false,
        }
    }

    /// Whether the requested item does not exist, as opposed to being unreachable.
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::VersionNotFound { .. }
                | Self::FileNotFound { .. }
                | Self::NoMetadata { .. }
                | Self::RepositoryNotFound { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A condition takes 32 KiB.
    #[test]
    fn lists_of_a_server_are_shortened() {
        let available: Vec<String> = (0..1000).map(|n| format!("{n}{}", "\u{fc}".repeat(5000))).collect();
        let (place, version) = ("p".to_owned(), "v1.0.0".to_owned());
        let missing = Error::FileNotFound {
            place: place.clone(),
            version: version.clone(),
            file: "f".to_owned(),
            available: available.clone(),
        };
        let error = missing.to_string();
        assert!(error.len() < 4000 && error.ends_with("... and 988 others"), "{error}");
        let unknown = Error::VersionNotFound {
            place,
            version,
            available,
        };
        let error = unknown.to_string();
        assert!(
            error.len() < 4000 && error.ends_with("... and 988 older ones"),
            "{error}"
        );
    }
}
