//! Errors of webhooks.

use std::path::PathBuf;

use windlass_controller_runtime::RequestError;

/// Why webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The API server refused, or did not answer.
    #[error("cannot {verb} {what}")]
    Request {
        /// The operation that failed.
        verb: &'static str,
        /// The object.
        what: String,
        /// The remedy if it is forbidden.
        needs: String,
        /// The server's error.
        #[source]
        source: Box<RequestError>,
    },
    /// The Secret for our certificate has other contents.
    #[error("Secret {namespace}/{name} is not one of ours and stays as it is: it lacks the label {label}")]
    NotOurs {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The label of our Secrets.
        label: String,
    },
    /// Other processes keep changing the Secret.
    #[error("Secret {0} is changed by others each time it is to be written")]
    Contended(String),
    /// Files of the user cannot be used.
    #[error("the webhook certificate in {} cannot be used: {why}", folder.display())]
    Files {
        /// Their folder.
        folder: PathBuf,
        /// The cause.
        why: String,
    },
    /// A certificate cannot be made or read.
    #[error("the webhook certificate cannot be made")]
    Pki(#[from] windlass_pki::PkiError),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl WebhookError {
    /// The remedy for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Request { source, needs, what, .. } => match &**source {
                error if error.code() == 403 => Some(format!("allow it: {needs}")),
                error if error.is_not_found() && what.starts_with("Secret") => {
                    let namespace = what.trim_start_matches("Secret ").split('/').next().unwrap_or_default();
                    Some(format!("make the namespace first: kubectl create namespace {namespace}"))
                }
                _ => None,
            },
            Self::NotOurs { namespace, name, .. } => Some(format!(
                "delete it (kubectl delete secret {name} -n {namespace}) and a new one is made, or bring your own certificate \
                 with --webhook-certificate-dir"
            )),
            Self::Files { .. } => Some(
                "the folder must hold tls.crt and tls.key, and ca.crt when the API server does not trust the issuer anyway"
                    .to_owned(),
            ),
            Self::Contended(_) | Self::Pki(_) | Self::Tls(_) => None,
        }
    }
}
