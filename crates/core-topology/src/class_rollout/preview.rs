//! The waves of a change before it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api::kind::ApiKind as _;
use windlass_api_ext::rollouts::ClusterClassRollout;
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_topology::waves::{Has, Member, schedule};

use super::facts::{self, settings, stage};
use super::observe::observe;
use super::plan::{is_paused, newest_name};
use crate::cluster::memory::Memory;

/// A wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave {
    /// The name of the stage.
    pub stage: String,
    /// Its Clusters.
    pub clusters: Vec<ObjectKey>,
    /// For how many seconds all Clusters must be healthy before the next wave.
    pub soak_seconds: i64,
}

/// The waves of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waves {
    /// All of them, if every Cluster is healthy in time.
    pub waves: Vec<Wave>,
    /// The Clusters that have the class as it is after the change already, and are in none.
    pub done: BTreeSet<ObjectKey>,
    /// Why no wave begins, if none does.
    pub held: Option<String>,
}

/// What stands for the change where revisions are compared.
const CHANGE: &str = "the change";

/// All waves, if every Cluster is healthy in time. `revisions` are those of the class that the Clusters have now.
pub(crate) async fn waves(
    cx: &Cx,
    rollout: Arc<ClusterClassRollout>,
    revisions: &BTreeMap<ObjectKey, String>,
    memory: &Memory,
) -> Result<Waves, String> {
    let (settings, selectors) = settings(&rollout.spec)?;
    let seen = observe(cx, rollout, memory).await;
    let class = seen.class.as_deref();
    // Where the class cannot be kept, no Cluster has it.
    let newest = class.and_then(|class| newest_name(&seen, class));
    let has_it = |key: &ObjectKey| newest.is_some() && revisions.get(key) == newest.as_ref();
    let clusters = || seen.clusters.iter().map(|of_class| &of_class.cluster);
    let members: Vec<Member> = clusters()
        .map(|cluster| Member {
            key: cluster.key(),
            stage: stage(cluster, &selectors),
            revision: if has_it(&cluster.key()) {
                Has::This(CHANGE.to_owned())
            } else {
                Has::None(None)
            },
            is_new: false,
            is_younger: false,
            is_paused: facts::is_paused(cluster),
            is_stuck: false,
            health: Ok(()),
        })
        .collect();
    let waves = schedule(&settings.stages, &members, CHANGE)
        .into_iter()
        .map(|wave| {
            let stage = settings.stages.iter().find(|stage| stage.name == wave.stage);
            Wave {
                soak_seconds: stage.map_or(0, |stage| stage.soak.as_secs()),
                stage: wave.stage,
                clusters: wave.clusters,
            }
        })
        .collect();
    Ok(Waves {
        waves,
        done: clusters().map(|cluster| cluster.key()).filter(has_it).collect(),
        held: settings.paused.or_else(|| class.and_then(is_paused)),
    })
}
