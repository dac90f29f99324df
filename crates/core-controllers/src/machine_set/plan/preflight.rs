//! The checks before Machines are made or replaced, from what was observed.

use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::Seen;

use crate::machine_set::observed::Observed;
use crate::shared::keys::{annotations, labels};
use crate::shared::preflight::{Facts, run as run_checks};

/// What speaks against making Machines now; `Err` when that cannot be told.
pub(super) fn run(seen: &Observed) -> Result<Vec<String>, String> {
    let Seen::Found(cluster) = &seen.cluster else {
        return Ok(Vec::new());
    };
    let control_plane = match &seen.control_plane {
        None => return Ok(Vec::new()),
        Some(Seen::Found(facts)) => facts,
        Some(Seen::NotFound) => return Err("the control plane of the Cluster does not exist".to_owned()),
        Some(Seen::Failed(why)) => return Err(why.clone()),
    };
    let set = &seen.set;
    let config = set.spec.template.spec.bootstrap.config_ref.as_ref();
    let kubeadm = config.is_some_and(|reference| {
        reference.api_group == "bootstrap.cluster.x-k8s.io" && reference.kind == "KubeadmConfigTemplate"
    });
    let bootstrap = seen.bootstrap_template.as_ref().and_then(Seen::found);
    let skip = set
        .metadata
        .annotation(annotations::SKIP_PREFLIGHT_CHECKS)
        .or_else(|| bootstrap.and_then(|template| template.annotation(annotations::SKIP_PREFLIGHT_CHECKS)));
    let topology = cluster.spec.topology.as_ref();
    run_checks(&Facts {
        control_plane: Some(control_plane),
        topology_version: topology.map(|topology| topology.version.as_str()),
        upgrade_step: cluster.metadata.annotation(annotations::TOPOLOGY_UPGRADE_STEP),
        topology_owned: set.metadata.label(labels::TOPOLOGY_OWNED).is_some(),
        version: set.spec.template.spec.version.as_deref(),
        kubeadm,
        checks: seen.checks.clone(),
        skip: skip.unwrap_or_default(),
    })
}
