//! What follows the Kubernetes version inside the workload cluster, once the Machines are at rest.

use super::{Action, Plan};
use crate::facts::Facts;
use crate::names::{CERTIFICATES_EXPIRY, SKIP_KUBE_PROXY};

pub(super) fn plan(facts: &Facts, plan: &mut Plan) {
    if !facts.initialized() {
        return;
    }
    let Some(reached) = facts.workload.reached() else {
        return;
    };
    let control_plane = &facts.control_plane;
    let skip = control_plane.annotations.contains_key(SKIP_KUBE_PROXY);
    let image = reached.addons.as_ref().and_then(|a| a.kube_proxy_image.as_ref());
    if let Some(image) = image.filter(|_| !skip) {
        let wanted = retagged(image, &control_plane.version, repository(facts));
        if wanted != *image {
            plan.push(Action::SetKubeProxyImage { image: wanted });
        }
    }
}

/// When the certificates of new Machines expire, as soon as their API servers can be asked: it is then told together with
/// what else becomes known of them.
pub(super) fn expiry(facts: &Facts, plan: &mut Plan) {
    if facts.workload.reached().is_none() {
        return;
    }
    for machine in facts.machines.iter().filter(|m| !m.deleting()) {
        let (Some(node), Some(config)) = (&machine.node, machine.config.found()) else {
            continue;
        };
        if config["metadata"]["annotations"][CERTIFICATES_EXPIRY].is_null() {
            plan.push(Action::RecordExpiry {
                config: machine.name.clone(),
                node: node.clone(),
            });
        }
    }
}

fn repository(facts: &Facts) -> Option<&str> {
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
    use super::retagged;

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
