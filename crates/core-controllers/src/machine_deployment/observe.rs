//! Reads everything the MachineDeployment controller decides from.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, ObjectKey, Seen};
use windlass_meta::SUFFIX_LENGTH;

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::settings;
use crate::shared::machines::{controlled_by, controller};
use crate::shared::read;

pub(super) async fn observe(cx: &Cx, deployment: Arc<MachineDeployment>) -> Observed {
    let space = deployment.metadata.namespace();
    let cluster_key = ObjectKey::new(space, deployment.spec.cluster_name.as_str());
    let cluster: Seen<Arc<Cluster>> = cx.cache::<Cluster>().get(&cluster_key).into();
    let deployment_uid = deployment.metadata.uid();
    let mut sets = cx.cache::<MachineSet>().by_owner(deployment_uid);
    sets.retain(|set| controlled_by(&set.metadata, deployment_uid));
    let machine_cache = cx.cache::<Machine>();
    let mut machines = BTreeMap::new();
    for set in &sets {
        let set_uid = set.metadata.uid();
        let mut of_set = machine_cache.by_owner(set_uid);
        of_set.retain(|machine| controlled_by(&machine.metadata, set_uid));
        machines.insert(set_uid.to_owned(), of_set);
    }
    let spec = &deployment.spec.template.spec;
    let bootstrap_template = match &spec.bootstrap.config_ref {
        Some(reference) => Some(read::object(cx, space, reference).await),
        None => None,
    };
    Observed {
        orphans: if deployment.metadata.is_deleting() {
            Vec::new()
        } else {
            orphans(cx, &deployment)
        },
        infrastructure_template: read::object(cx, space, &spec.infrastructure_ref).await,
        suffix: cx.names().suffix(SUFFIX_LENGTH),
        deployment,
        cluster,
        sets,
        machines,
        bootstrap_template,
        in_place: None,
    }
}

fn orphans(cx: &Cx, deployment: &MachineDeployment) -> Vec<Arc<MachineSet>> {
    let space = deployment.metadata.namespace();
    let wanted = settings::selector(deployment);
    let mut found = cx
        .cache::<MachineSet>()
        .by_cluster(space, &deployment.spec.cluster_name);
    found.retain(|set| {
        let meta = &set.metadata;
        controller(meta).is_none() && !meta.is_deleting() && selector::owns(&wanted, meta.labels.as_ref())
    });
    found
}
