//! What follows the Kubernetes version inside the workload cluster, once the Machines are at rest.

use std::time::Duration;

use serde_json::Value;
use windlass_controller_runtime::Seen;

use super::{Action, Plan, WorkloadChange};
use crate::facts::Facts;
use crate::names::{CERTIFICATES_EXPIRY, SKIP_KUBE_PROXY};
use crate::question::Question;

/// The default port of API servers.
const API_SERVER_PORT: u16 = 6443;
/// When to look again at what cannot be read in the workload cluster. The reason may last, such as a missing permission.
pub(super) const UNREADABLE: Duration = Duration::from_mins(10);

/// Brings kube-proxy to the version. Asks for its image once all Machines are what the control plane specifies.
pub(super) fn plan(facts: &Facts, plan: &mut Plan, question: &mut Question) {
    let control_plane = &facts.control_plane;
    let skip = control_plane.annotations.contains_key(SKIP_KUBE_PROXY);
    if skip || !facts.initialized() || facts.reached().is_none() || !at_rest(facts) {
        return;
    }
    match &facts.answers.kube_proxy {
        None => question.kube_proxy = true,
        Some(Seen::Found(image)) => {
            let wanted = retagged(image, &control_plane.version, repository(facts));
            if wanted != *image {
                plan.note(format!(
                    "kube-proxy runs {image}; version {} needs {wanted}",
                    control_plane.version
                ));
                plan.push(Action::Workload(WorkloadChange::KubeProxyImage { image: wanted }));
            }
        }
        // The cluster has no kube-proxy.
        Some(Seen::NotFound) => {}
        Some(Seen::Failed(_)) => {
            plan.note(format!(
                "whether kube-proxy follows version {} is not known: its DaemonSet cannot be read",
                control_plane.version
            ));
            plan.again_within(UNREADABLE);
        }
    }
}

pub(super) fn at_rest(facts: &Facts) -> bool {
    let control_plane = &facts.control_plane;
    usize::try_from(control_plane.replicas) == Ok(facts.machines.len())
        && facts
            .machines
            .iter()
            .all(|m| m.version == control_plane.version && m.node.is_some() && !m.deleting())
}

/// When the certificates of new Machines expire, as soon as their API servers can be asked. A plan with a disruptive action does not
/// wait for the answers: a later one asks.
pub(super) fn expiry(facts: &Facts, plan: &mut Plan, question: &mut Question) {
    if facts.reached().is_none() || plan.actions.iter().any(Action::disruptive) {
        return;
    }
    for machine in facts.machines.iter().filter(|m| !m.deleting()) {
        let (Some(node), Some(config)) = (&machine.node, machine.config.found()) else {
            continue;
        };
        if !config["metadata"]["annotations"][CERTIFICATES_EXPIRY].is_null() {
            continue;
        }
        match facts.answers.certificates.get(node) {
            None => question.certificates.push((node.clone(), api_server_port(config))),
            Some(Ok(expiry)) => plan.push(Action::RecordExpiry {
                config: machine.config_ref["name"].as_str().unwrap_or(&machine.name).to_owned(),
                expiry: *expiry,
            }),
            // `rollout.before` depends on it, and no event shows that the certificate can be read.
            Some(Err(why)) => {
                plan.note(format!(
                    "the certificate of the API server on Node {node} cannot be read: {why}"
                ));
                plan.again_within(UNREADABLE);
            }
        }
    }
}

/// The port on which the API server of a Machine listens. A Machine that joined may have kept the settings of the first one.
fn api_server_port(config: &Value) -> u16 {
    let spec = &config["spec"];
    let endpoints = [
        &spec["initConfiguration"]["localAPIEndpoint"],
        &spec["joinConfiguration"]["controlPlane"]["localAPIEndpoint"],
    ];
    let mut ports = endpoints
        .into_iter()
        .filter_map(|endpoint| endpoint["bindPort"].as_u64());
    let port = ports.find_map(|port| u16::try_from(port).ok().filter(|port| *port > 0));
    port.unwrap_or(API_SERVER_PORT)
}

pub(super) fn repository(facts: &Facts) -> Option<&str> {
    facts.control_plane.kubeadm["clusterConfiguration"]["imageRepository"]
        .as_str()
        .filter(|r| !r.is_empty())
}

/// The image with the tag of a version, from another repository when one is asked for.
fn retagged(image: &str, version: &str, repository: Option<&str>) -> String {
    let slash = image.rfind('/').map_or(0, |at| at + 1);
    let (path, name) = image.split_at(slash);
    let name = name.split(['@', ':']).next().unwrap_or(name);
    // Build metadata is written with an underscore in image tags.
    let tag = version.replace('+', "_");
    match repository {
        Some(repository) => format!("{}/{name}:{tag}", repository.trim_end_matches('/')),
        None => format!("{path}{name}:{tag}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{api_server_port, retagged};

    #[test]
    fn the_port_is_that_of_the_first_machine_or_of_the_join() {
        let init = json!({"localAPIEndpoint": {"bindPort": 1}});
        let join = json!({"controlPlane": {"localAPIEndpoint": {"bindPort": 2}}});
        for (spec, port) in [
            (json!({"initConfiguration": init, "joinConfiguration": join}), 1),
            (
                json!({"initConfiguration": {"localAPIEndpoint": {"bindPort": 0}}, "joinConfiguration": join}),
                2,
            ),
            (json!({"joinConfiguration": join}), 2),
            (json!({"joinConfiguration": {"controlPlane": {}}}), 6443),
            (json!(null), 6443),
        ] {
            assert_eq!(api_server_port(&json!({"spec": spec})), port, "{spec}");
        }
    }

    #[test]
    fn kube_proxy_follows_the_version_and_the_repository() {
        let image = "registry.k8s.io/kube-proxy:v1.35.0";
        assert_eq!(retagged(image, "v1.36.0", None), "registry.k8s.io/kube-proxy:v1.36.0");
        assert_eq!(
            retagged(image, "v1.36.0+x", Some("localhost:5000/k8s")),
            "localhost:5000/k8s/kube-proxy:v1.36.0_x"
        );
        assert_eq!(
            retagged("r:5000/kube-proxy@sha256:00", "v1.36.0", None),
            "r:5000/kube-proxy:v1.36.0"
        );
    }
}
