//! Admission and conversion for API servers over the network: the same functions that an embedded server calls in process.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::registry::admission;
use tokio::net::TcpListener;
use windlass_webhook::{Certificates, Options, Target, Webhooks};

use crate::{BuiltIns, FeatureGates, ManagerError, Selection};

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
    /// The providers that are built in where the controllers run.
    pub built_ins: BuiltIns,
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
        admission::rules_of(&options.gates, &options.built_ins),
    );
    Ok(windlass_webhook::start(client, options).await?)
}

/// Removes the webhook configurations of a manager before: for a process that answers no webhooks, and whose controllers do not run.
pub async fn withdraw(client: &kube::Client) -> Result<(), ManagerError> {
    let withdrawn = windlass_webhook::withdraw(client).await;
    if withdrawn.map_err(|error| ManagerError::Server(error.to_string()))? {
        tracing::info!("removed the webhook configuration of an earlier manager, which nothing answers now");
    }
    Ok(())
}

/// Warns about rules of the kinds of these controllers that a process without webhooks does not enforce. An existing configuration is not
/// changed: other processes may serve it.
pub fn warn_that_none_are_served(selection: &Selection) {
    if let Some(warning) = none_are_served(selection) {
        tracing::warn!("{warning}");
    }
}

/// The warning, if any of these kinds has a rule.
fn none_are_served(selection: &Selection) -> Option<String> {
    let kinds = selection.kinds();
    let rules = admission::rules_of(&FeatureGates::default(), &selection.built_ins());
    let judged = rules.iter().filter(|rule| {
        kinds
            .iter()
            .any(|entry| (entry.group, entry.kind) == (rule.group, rule.kind))
    });
    // Both APIs have kinds of these names.
    let judged: BTreeSet<&str> = judged.map(|rule| rule.kind).collect();
    let has_infra_clusters = judged.contains("DevCluster");
    let judged: Vec<&str> = judged.into_iter().collect();
    let annotation = if has_infra_clusters {
        ", and the annotation cluster.x-k8s.io/managed-by can be removed from InfraClusters, whose infrastructure the provider would then \
         take over"
    } else {
        ""
    };
    (!judged.is_empty()).then(|| {
        format!(
            "this process serves no admission webhooks: unless another one does, nothing validates writes of {} objects{annotation}; nothing \
             converts objects to older API versions either, so only v1beta2 is served; --webhook-address with --webhook-service or --webhook-url enables the webhooks",
            judged.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warning_names_kinds_of_the_own_controllers() {
        let warning = |names: &[&str]| none_are_served(&Selection::of(names).unwrap());
        let text = warning(&["devippool"]).unwrap();
        assert!(
            text.contains("writes of Cluster, DevIPPool, IPAddress, IPAddressClaim objects;"),
            "{text}"
        );
        let text = warning(&["devcluster"]).unwrap();
        assert!(text.contains("cluster.x-k8s.io/managed-by"), "{text}");
        assert_eq!(warning(&["operator/coreprovider"]), None);
        let all = none_are_served(&Selection::all()).unwrap();
        assert!(all.contains("CoreProvider") && all.contains("MachinePool"), "{all}");
    }
}
