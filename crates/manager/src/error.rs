//! Errors of the start.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::registry::install::InstallError;

/// Errors of the start.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Another process listens.
    #[error("port {} on {} is in use", address.port(), address.ip())]
    PortInUse {
        /// The address.
        address: SocketAddr,
        /// The option that sets it.
        option: &'static str,
    },
    /// Listening on this address is not permitted.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] windlass_store::OpenError),
    /// A snapshot could not be saved or restored.
    #[error(transparent)]
    Snapshot(#[from] windlass_store::SnapshotError),
    /// A file cannot be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// The operation that failed.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A folder is a file.
    #[error("{option} {} is a file, not a directory", path.display())]
    NotAFolder {
        /// The option that names it, or a file in it.
        option: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The folder of the kubeconfig to write does not exist.
    #[error("the directory {} of --kubeconfig does not exist", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Certificates of the embedded server are damaged.
    #[error("the certificates in {} cannot be used", folder.display())]
    Identity {
        /// The folder with certificates and keys.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: windlass_pki::PkiError,
    },
    /// A file of bearer tokens cannot be used.
    #[error("the tokens in {} cannot be used: {why}", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The cause; never contains a token.
        why: String,
    },
    /// A variable of --provider-variables is not set.
    #[error("there is no variable {name} in the environment")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The settings for fetching providers are invalid.
    #[error("providers cannot be fetched")]
    Fetching(#[source] windlass_provider_repository::Error),
    /// The embedded server did not start.
    #[error("the embedded API server cannot start: {0}")]
    Server(String),
    /// There is no such kubeconfig.
    #[error("kubeconfig {} does not exist", path.display())]
    NoKubeconfig {
        /// The file.
        path: PathBuf,
    },
    /// A kubeconfig has no such context.
    #[error("kubeconfig {place} has no {}{}", context(name.as_deref()), listed(known))]
    NoContext {
        /// The file, or where kubectl would look for it.
        place: String,
        /// The requested context, or the current one of the file; `None` if it has no current context.
        name: Option<String>,
        /// Its contexts.
        known: Vec<String>,
    },
    /// A kubeconfig cannot be used.
    #[error("kubeconfig {} cannot be used", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// No kubeconfig was named, and the one that kubectl would use cannot be used.
    #[error("kubeconfig {place} cannot be used")]
    DefaultKubeconfig {
        /// Where kubectl would look for it.
        place: &'static str,
        /// The cause.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// The file to write exists and has other content.
    #[error("{} is not one of our kubeconfigs and stays as it is: {holds}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Its content.
        holds: String,
    },
    /// A client cannot be created, or the server does not answer.
    #[error("the API server {url} cannot be used")]
    Connect {
        /// Its address.
        url: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server lacks what controllers need.
    #[error("the API server {url} is Kubernetes {version}, and v1.22 is the oldest that can be a management cluster")]
    TooOld {
        /// Its address.
        url: String,
        /// Its version.
        version: String,
    },
    /// The CRDs could not be installed.
    #[error("cannot install the CustomResourceDefinitions")]
    Install(#[source] InstallError),
    /// The server lacks CRDs.
    #[error("{} CustomResourceDefinitions are missing in the API server: {}", missing.len(), missing.join(", "))]
    NoDefinitions {
        /// Names of the CRDs.
        missing: Vec<String>,
    },
    /// It is not known whether other programs run providers of the selected controllers.
    #[error("cannot tell whether another program runs the same providers: {what} cannot be read: {why}")]
    OthersUnknown {
        /// What cannot be read.
        what: String,
        /// What the server said.
        why: String,
    },
    /// Other programs run the providers of all selected controllers.
    #[error("no controller is left to start: {found}")]
    RunByOthers {
        /// What was found.
        found: String,
    },
    /// Admission cannot be served.
    #[error(transparent)]
    Webhook(#[from] windlass_webhook::WebhookError),
    /// There is no such controller.
    #[error("there is no controller {name:?}")]
    UnknownController {
        /// The requested name.
        name: String,
        /// The existing ones.
        known: Vec<&'static str>,
    },
    /// A controller that cannot be limited to a namespace.
    #[error("the controller {name:?} works in all namespaces, not in one (option --namespace)")]
    Confined {
        /// Its name.
        name: &'static str,
    },
}

/// What is missing.
fn context(name: Option<&str>) -> String {
    name.map_or_else(|| "current context".to_owned(), |name| format!("context {name:?}"))
}

/// The contexts that there are, as the end of a sentence.
fn listed(contexts: &[String]) -> String {
    if contexts.is_empty() {
        "; it has none".to_owned()
    } else {
        format!("; it has: {}", contexts.join(", "))
    }
}

impl ManagerError {
    /// The remedy for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::PortInUse { address, option } => format!(
                "stop what listens there, or choose another port with {option} (now {})",
                address.port()
            ),
            Self::Identity { folder, .. } => format!(
                "move {} away: new certificates are made at the next start, and kubeconfigs handed out before become invalid",
                folder.display()
            ),
            Self::NotOurs { .. } => {
                "name another file with --kubeconfig; several files together: KUBECONFIG=ONE:OTHER kubectl config view"
                    .to_owned()
            }
            Self::DefaultKubeconfig { .. } => {
                "name a kubeconfig with --kubeconfig; `kubectl config view` shows the one in use".to_owned()
            }
            Self::Kubeconfig { path, .. } => {
                format!(
                    "check the file with `kubectl --kubeconfig {} config view`",
                    path.display()
                )
            }
            Self::Connect { .. } => {
                "check that the server runs and that the kubeconfig's address, CA and credentials are right".to_owned()
            }
            Self::TooOld { .. } => "name a newer management cluster, or upgrade this one".to_owned(),
            Self::NoDefinitions { .. } => {
                "add --install-crds, or run `windlass crds | kubectl apply --server-side -f -`".to_owned()
            }
            Self::OthersUnknown { .. } => {
                "apply the newest config/manager-role.yaml; or start with --take-over if no other program runs them".to_owned()
            }
            Self::RunByOthers { .. } => {
                "scale the Deployments of the other program to 0 and delete its webhook configurations; or start with --take-over if \
                 nothing of it runs; or name other controllers with --controllers"
                    .to_owned()
            }
            Self::Webhook(error) => return error.hint(),
            Self::NoVariable { name } => {
                format!("set {name}, or leave it out of --provider-variables")
            }
            Self::Fetching(_) => {
                "check --provider-ca-file, and the proxies in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY".to_owned()
            }
            Self::Tokens { .. } => "give each token a line: token,user,uid,\"group1,group2\"".to_owned(),
            Self::UnknownController { known, .. } => format!("known are: {}", known.join(", ")),
            Self::Confined { .. } => {
                "run it in a manager of its own without --namespace, or name other controllers with --controllers"
                    .to_owned()
            }
            Self::NoFolder { .. } => "create it, or name another file with --kubeconfig".to_owned(),
            Self::NoContext { .. } => "name one of them with --context, or another file with --kubeconfig".to_owned(),
            Self::Listen { .. }
            | Self::NotAFolder { .. }
            | Self::NoKubeconfig { .. }
            | Self::Store(_)
            | Self::Snapshot(_)
            | Self::File { .. }
            | Self::Server(_)
            | Self::Install(_) => return None,
        };
        Some(hint)
    }
}
