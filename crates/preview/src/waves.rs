//! The waves of a change, for classes that are rolled out in waves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api_ext::rollouts::{ClusterClassRollout, annotations};
use windlass_controller_runtime::{ObjectKey, key_of};
use windlass_core_topology::preview;

use crate::concerned::class_of;
use crate::error::PreviewError;
use crate::model::{ClassWaves, ClusterPlan, Wave};
use crate::shadow::Shadow;

const GROUP: &str = "windlass.dev";

/// The rollouts of these classes. What their Clusters do is planned as if their wave had begun: on the copy, they follow the class.
pub(crate) async fn rollouts(
    shadow: &Shadow,
    changed: &BTreeSet<ObjectKey>,
) -> Result<Vec<Arc<ClusterClassRollout>>, PreviewError> {
    shadow.caught_up().await?;
    let cx = shadow.cx();
    let all = cx.cache::<ClusterClassRollout>().all();
    // Without their controller, new Clusters would wait for a revision.
    for rollout in &all {
        let key = key_of(&rollout.metadata);
        let object = shadow
            .named(GROUP, "ClusterClassRollout", &key.namespace, &key.name)
            .await;
        if let Some(object) = object {
            shadow.remove(&object).await?;
        }
    }
    for cluster in cx.cache::<windlass_api::core::Cluster>().all() {
        if class_of(&cluster).is_none_or(|class| !changed.contains(&class)) {
            continue;
        }
        let Some(mut object) = shadow.own("Cluster", &key_of(&cluster.metadata)).await else {
            continue;
        };
        let marks = object["metadata"]["annotations"].as_object_mut();
        if marks.is_some_and(|marks| marks.remove(annotations::CLASS_REVISION).is_some()) {
            shadow.put(object).await?;
        }
    }
    shadow.caught_up().await?;
    let mut all = all;
    all.retain(|rollout| changed.contains(&key_of(&rollout.metadata)));
    Ok(all)
}

/// The waves of classes of which at least one Cluster changes.
pub(crate) fn of(
    rollouts: &[Arc<ClusterClassRollout>],
    plans: &BTreeMap<ObjectKey, ClusterPlan>,
    waves: impl Fn(&ClusterClassRollout) -> Result<Vec<preview::Wave>, String>,
) -> Vec<ClassWaves> {
    let mut out = Vec::new();
    for rollout in rollouts {
        let class = key_of(&rollout.metadata).to_string();
        let mut concerned = plans.iter().filter(|(_, plan)| plan.class == class).peekable();
        if concerned.clone().all(|(_, plan)| plan.phases.is_empty()) || concerned.peek().is_none() {
            continue;
        }
        let (waves, held) = match waves(rollout) {
            Ok(waves) => (
                waves,
                rollout
                    .spec
                    .paused
                    .filter(|paused| *paused)
                    .map(|_| "spec.paused is set".to_owned()),
            ),
            Err(why) => (Vec::new(), Some(why)),
        };
        let planned: BTreeSet<&ObjectKey> = waves.iter().flat_map(|wave| &wave.clusters).collect();
        let left_out = concerned.filter(|(key, _)| !planned.contains(key));
        out.push(ClassWaves {
            class: class.clone(),
            left_out: left_out.map(|(key, _)| key.to_string()).collect(),
            waves: waves
                .iter()
                .map(|wave| Wave {
                    stage: wave.stage.clone(),
                    clusters: wave.clusters.iter().map(ToString::to_string).collect(),
                    soak_seconds: wave.soak_seconds,
                })
                .collect(),
            held,
        });
    }
    out
}
