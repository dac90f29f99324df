//! The waves of a change before it is made.

use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::ClusterClassRollout;
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_topology::waves::{Has, Member, schedule};

use super::facts::{is_paused, settings, stage};
use crate::cluster::watches::clusters_of;

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

/// All waves, if every Cluster is healthy in time.
pub(crate) fn waves(cx: &Cx, rollout: &ClusterClassRollout) -> Result<Vec<Wave>, String> {
    let (settings, selectors) = settings(&rollout.spec)?;
    let clusters = clusters_of(cx, &rollout.key());
    let members = clusters.iter().filter(|cluster| !cluster.metadata.is_deleting());
    let members: Vec<Member> = members
        .map(|cluster| Member {
            key: cluster.key(),
            stage: stage(cluster, &selectors),
            revision: Has::None(None),
            is_new: false,
            is_younger: false,
            is_paused: is_paused(cluster),
            is_stuck: false,
            health: Ok(()),
        })
        .collect();
    let scheduled = schedule(&settings.stages, &members, "the change");
    Ok(scheduled
        .into_iter()
        .map(|wave| {
            let stage = settings.stages.iter().find(|stage| stage.name == wave.stage);
            Wave {
                soak_seconds: stage.map_or(0, |stage| stage.soak.as_secs()),
                stage: wave.stage,
                clusters: wave.clusters,
            }
        })
        .collect())
}
