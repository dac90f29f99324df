//! Reads everything the MachineHealthCheck controller decides from.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::k8s::Node;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, Workload};
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, Dynamic, GroupKind, ObjectKey, Seen};

use crate::machine_health_check::observed::{Observed, Target};
use crate::shared::keys::annotations;

pub(super) async fn observe(cx: &Cx, clusters: &Clusters, check: Arc<MachineHealthCheck>) -> Observed {
    let space = check.metadata.namespace();
    let cluster_key = ObjectKey::new(space, check.spec.cluster_name.as_str());
    let cluster: Seen<Arc<Cluster>> = cx.cache::<Cluster>().get(&cluster_key).into();
    let reference = check
        .spec
        .remediation
        .as_ref()
        .and_then(|remediation| remediation.template_ref.as_ref());
    let template_kind = reference.map(|reference| {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        GroupKind::new(group, reference.kind.as_str())
    });
    let mut request_template = None;
    if let (Some(kind), Some(reference)) = (&template_kind, reference) {
        request_template = Some(
            cx.dynamic_get(kind, &ObjectKey::new(space, reference.name.as_str()))
                .await,
        );
    }
    let mut machines = cx.cache::<Machine>().by_cluster(space, &check.spec.cluster_name);
    machines.retain(|machine| is_target(&check, machine));
    let mut targets = Vec::with_capacity(machines.len());
    for machine in machines {
        let mut request = None;
        if let Some(kind) = &template_kind {
            let kind = GroupKind::new(kind.group.as_str(), kind.kind.trim_end_matches("Template"));
            let key = ObjectKey::new(space, machine.metadata.name());
            let read: Seen<Arc<Dynamic>> = cx.dynamic_get(&kind, &key).await;
            request = Some(read);
        }
        targets.push(Target { machine, request });
    }
    Observed {
        nodes: nodes(clusters, &cluster_key, &targets),
        check,
        cluster,
        targets,
        request_template,
    }
}

/// Whether a Machine is checked: it is selected, and no annotation excludes it. Who would replace it does not count.
pub(super) fn is_target(check: &MachineHealthCheck, machine: &Machine) -> bool {
    let meta = &machine.metadata;
    selector::owns(&check.spec.selector, meta.labels.as_ref())
        && !meta.has_annotation(annotations::SKIP_REMEDIATION)
        && !meta.has_annotation(annotations::PAUSED)
}

/// The Nodes of the targets.
fn nodes(clusters: &Clusters, cluster: &ObjectKey, targets: &[Target]) -> Workload<BTreeMap<String, Arc<Node>>> {
    let names: Vec<&str> = targets.iter().filter_map(Target::node_name).collect();
    clusters.with_nodes(cluster).map(|remote| {
        let found = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), remote.node(name)?)));
        found.collect()
    })
}
