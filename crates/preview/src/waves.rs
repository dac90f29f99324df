//! The waves of a change, for classes that are rolled out in waves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api_ext::rollouts::{ClusterClassRollout, annotations};
use windlass_controller_runtime::{ObjectKey, key_of};
use windlass_core_topology::preview::{self, Waves};

use crate::concerned::class_of;
use crate::error::PreviewError;
use crate::model::{ClassWaves, ClusterPlan, Wave};
use crate::shadow::Shadow;
use crate::simulate::Simulation;

const GROUP: &str = "windlass.dev";

/// The rollouts of changed classes.
#[derive(Debug)]
pub(crate) struct Rollouts {
    rollouts: Vec<Arc<ClusterClassRollout>>,
    /// The revisions of their classes that Clusters have.
    revisions: BTreeMap<ObjectKey, String>,
}

/// The rollouts of these classes. What their Clusters do is planned as if their wave had begun: on the copy, they follow the class.
pub(crate) async fn rollouts(shadow: &Shadow, changed: &BTreeSet<ObjectKey>) -> Result<Rollouts, PreviewError> {
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
    let mut revisions = BTreeMap::new();
    for cluster in cx.cache::<windlass_api::core::Cluster>().all() {
        if class_of(&cluster).is_none_or(|class| !changed.contains(&class)) {
            continue;
        }
        let Some(mut object) = shadow.own("Cluster", &key_of(&cluster.metadata)).await else {
            continue;
        };
        let marks = object["metadata"]["annotations"].as_object_mut();
        if let Some(revision) = marks.and_then(|marks| marks.remove(annotations::CLASS_REVISION)) {
            let revision = revision.as_str().map(str::to_owned);
            revisions.extend(revision.map(|revision| (key_of(&cluster.metadata), revision)));
            shadow.put(object).await?;
        }
    }
    shadow.caught_up().await?;
    let mut rollouts = all;
    rollouts.retain(|rollout| changed.contains(&key_of(&rollout.metadata)));
    Ok(Rollouts { rollouts, revisions })
}

impl Rollouts {
    /// The waves of classes of which at least one Cluster changes.
    pub(crate) async fn waves(
        &self,
        plans: &BTreeMap<ObjectKey, ClusterPlan>,
        simulation: &Simulation<'_>,
    ) -> Vec<ClassWaves> {
        let mut out = Vec::new();
        for rollout in &self.rollouts {
            let class = key_of(&rollout.metadata).to_string();
            let mut concerned = plans.iter().filter(|(_, plan)| plan.class == class);
            if concerned.clone().all(|(_, plan)| plan.phases.is_empty()) {
                continue;
            }
            let found = simulation.waves(rollout, &self.revisions).await;
            let Waves { waves, done, held } = found.unwrap_or_else(|why| Waves {
                held: Some(why),
                ..Waves::default()
            });
            if !waves.is_empty() || held.is_some() || concerned.any(|(key, _)| !done.contains(key)) {
                out.push(of_class(&class, plans, &waves, &done, held));
            }
        }
        out
    }
}

fn of_class(
    class: &str,
    plans: &BTreeMap<ObjectKey, ClusterPlan>,
    waves: &[preview::Wave],
    done: &BTreeSet<ObjectKey>,
    held: Option<String>,
) -> ClassWaves {
    let planned: BTreeSet<&ObjectKey> = waves.iter().flat_map(|wave| &wave.clusters).chain(done).collect();
    let concerned = plans.iter().filter(|(_, plan)| plan.class == class);
    let left_out = concerned.filter(|(key, _)| !planned.contains(key));
    ClassWaves {
        class: class.to_owned(),
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
    }
}
