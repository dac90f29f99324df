//! Admission and conversion for API servers over the network: the same functions that an embedded server calls in process.

use std::path::PathBuf;

use crate::registry::admission;
use tokio::net::TcpListener;
use windlass_webhook::{Certificates, Options, Target, Webhooks};

use crate::{FeatureGates, ManagerError};

/// Options of the webhook server.
#[derive(Debug)]
pub struct WebhookOptions {
    /// The listener of the webhook server.
    pub listener: TcpListener,
    /// How the API server reaches the webhook server.
    pub target: Target,
    /// A folder with the user's certificate. Without one, a generated certificate in a Secret is used.
    pub certificate_dir: Option<PathBuf>,
    /// The feature gates.
    pub gates: FeatureGates,
}

/// Serves the admission of all kinds, and the conversion of those with older versions, to the server behind `client`. When this returns, the
/// webhook configurations and the conversions of the definitions are written.
pub async fn start(client: kube::Client, options: WebhookOptions) -> Result<Webhooks, ManagerError> {
    let certificates = match (options.certificate_dir, &options.target) {
        (Some(folder), _) => Certificates::Folder(folder),
        (None, Target::Service { namespace, .. }) => Certificates::Secret {
            namespace: namespace.clone(),
        },
        (None, Target::Url { .. }) => Certificates::Secret {
            namespace: client.default_namespace().to_owned(),
        },
    };
    let options = Options::new(
        options.listener,
        options.target,
        certificates,
        admission::rules(&options.gates),
    );
    Ok(windlass_webhook::start(client, options).await?)
}

/// Warns about rules that a process without webhooks does not enforce. An existing configuration is not changed: other
/// processes may serve it.
pub fn warn_that_none_are_served() {
    let kinds: Vec<&str> = admission::rules(&FeatureGates::default())
        .iter()
        .map(|rule| rule.kind)
        .collect();
    tracing::warn!(
        "this process serves no admission webhooks: unless another one does, nothing validates writes of {} objects, and the \
         annotation cluster.x-k8s.io/managed-by can be removed from InfraClusters, whose infrastructure the provider would then \
         take over; nothing converts objects to older API versions either, so only v1beta2 is served; --webhook-address with --webhook-service or --webhook-url enables the webhooks",
        kinds.join(", ")
    );
}
