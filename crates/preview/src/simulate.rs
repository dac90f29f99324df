//! Reconciles topologies on the copy, round by round: after each round, the copy is brought to the state in which its rollouts leave it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use windlass_api::annotations::PAUSED;
use windlass_api::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet,
};
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_controller_runtime::{Moment, ObjectKey, key_of};
use windlass_core_topology::preview::{Round, Topologies, Waves};
use windlass_runtime_client::{Callable, Extensions};
use windlass_topology::status::FAILED;

use crate::concerned::class_of;
use crate::error::PreviewError;
use crate::machines::Machines;
use crate::model::{ClusterPlan, HookCall, Phase};
use crate::names::cluster_of;
use crate::phase;
use crate::settle;
use crate::shadow::{Refused, Shadow, Written};

/// How long the caches of a copy, which is in this process, may take to be filled.
const FILLED_WITHIN: Duration = Duration::from_mins(2);
/// Reconciles at once.
const AT_A_TIME: usize = 16;
/// More rounds than any chain of upgrades has.
const MOST_ROUNDS: usize = 64;

/// A simulation on a copy.
pub(crate) struct Simulation<'a> {
    shadow: &'a Shadow,
    topologies: Topologies,
    machines: Machines,
}

impl<'a> Simulation<'a> {
    /// Waits until the caches are filled.
    pub(crate) async fn new(shadow: &'a Shadow) -> Result<Self, PreviewError> {
        let cx = shadow.cx();
        cx.cache::<Cluster>();
        cx.cache::<ClusterClass>();
        cx.cache::<Machine>();
        cx.cache::<MachineSet>();
        cx.cache::<MachineDeployment>();
        cx.cache::<MachineHealthCheck>();
        cx.cache::<MachinePool>();
        cx.cache::<ExtensionConfig>();
        cx.cache::<ClusterClassRollout>();
        cx.cache::<ClusterClassRevision>();
        cx.cache::<KubeadmConfig>();
        cx.cache::<KubeadmControlPlane>();
        let topologies = Topologies::new(cx);
        let machines = Machines::new(Extensions::new(cx, None, Callable::default()));
        let is_ready = tokio::time::timeout(FILLED_WITHIN, cx.ready()).await;
        if !is_ready.is_ok_and(|ready| ready) {
            return Err(PreviewError::Copy("its caches were not filled".to_owned()));
        }
        Ok(Self {
            shadow,
            topologies,
            machines,
        })
    }

    /// Makes what the files do not have: the objects of topologies of which only the Cluster is there, as if the controllers had made them.
    pub(crate) async fn complete(&self) -> Result<(), PreviewError> {
        let cx = self.shadow.cx();
        let classes = cx.cache::<ClusterClass>().all();
        self.classes(&classes.iter().map(|class| key_of(&class.metadata)).collect())
            .await?;
        let clusters = cx.cache::<Cluster>().all();
        let fresh = clusters
            .iter()
            .filter(|cluster| cluster.spec.topology.is_some() && cluster.spec.control_plane_ref.is_none());
        let fresh: BTreeSet<ObjectKey> = fresh.map(|cluster| key_of(&cluster.metadata)).collect();
        for (cluster, plan) in self.clusters(&fresh, &[]).await? {
            if let Some(problem) = plan.problems.first() {
                return Err(PreviewError::Change(format!(
                    "Cluster {cluster}, without the change: {problem}"
                )));
            }
        }
        Ok(())
    }

    /// Brings the statuses of classes up to date.
    pub(crate) async fn classes(&self, classes: &BTreeSet<ObjectKey>) -> Result<(), PreviewError> {
        let cx = self.shadow.fresh();
        for key in classes {
            let Some(class) = cx.cache::<ClusterClass>().get(key) else {
                continue;
            };
            let Some(status) = self.topologies.class_status(&cx, class, &Moment::at(cx.now())).await else {
                continue;
            };
            let Some(mut object) = self.shadow.own("ClusterClass", key).await else {
                continue;
            };
            object["status"] = status;
            self.shadow.put(object).await?;
        }
        self.shadow.take_log();
        self.shadow.take_refused();
        self.shadow.caught_up().await
    }

    /// What is done for these Clusters. `changed` are objects that the user changes.
    pub(crate) async fn clusters(
        &self,
        clusters: &BTreeSet<ObjectKey>,
        changed: &[Written],
    ) -> Result<BTreeMap<ObjectKey, ClusterPlan>, PreviewError> {
        let mut plans: BTreeMap<ObjectKey, ClusterPlan> = BTreeMap::new();
        for key in clusters {
            let cluster = self.shadow.cx().cache::<Cluster>().get(key);
            let class = cluster.as_deref().and_then(class_of);
            let plan = plans.entry(key.clone()).or_default();
            plan.class = class.map(|class| class.to_string()).unwrap_or_default();
        }
        let mut active: Vec<ObjectKey> = Vec::with_capacity(clusters.len());
        for key in clusters {
            let cluster = self.shadow.cx().cache::<Cluster>().get(key);
            match cluster.as_deref().and_then(paused) {
                Some(why) => plans.entry(key.clone()).or_default().waits.push(why),
                None => active.push(key.clone()),
            }
        }
        let mut changed = by_cluster(changed.to_vec());
        for round in 0..MOST_ROUNDS {
            if active.is_empty() {
                break;
            }
            if round == 1 {
                self.shadow.leave_original();
            }
            let rounds = self.reconcile(&active).await;
            let mut written = by_cluster(self.shadow.take_log());
            let refused = self.shadow.take_refused();
            self.shadow.caught_up().await?;
            let mut next = Vec::new();
            for (key, done) in rounds {
                let own = written.remove(&key).unwrap_or_default();
                let users = changed.remove(&key).unwrap_or_default();
                let plan = plans.entry(key.clone()).or_default();
                if self
                    .take(&key, done.unwrap_or_default(), own, users, &refused, plan)
                    .await?
                {
                    next.push(key);
                }
            }
            self.shadow.caught_up().await?;
            active = next;
        }
        Ok(plans)
    }

    /// The waves in which the Clusters of a class get its change, or which setting cannot be used.
    pub(crate) async fn waves(
        &self,
        rollout: &Arc<ClusterClassRollout>,
        revisions: &BTreeMap<ObjectKey, String>,
    ) -> Result<Waves, String> {
        let cx = self.shadow.fresh();
        self.topologies.waves(&cx, rollout.clone(), revisions).await
    }

    async fn reconcile(&self, clusters: &[ObjectKey]) -> Vec<(ObjectKey, Option<Round>)> {
        let all = clusters.iter().map(|key| async move {
            let cx = self.shadow.fresh();
            (
                key.clone(),
                self.topologies.reconcile(&cx, key, &Moment::at(cx.now())).await,
            )
        });
        let mut done: Vec<_> = futures::stream::iter(all).buffer_unordered(AT_A_TIME).collect().await;
        done.sort_by(|a, b| a.0.cmp(&b.0));
        done
    }

    /// Takes over what a round has done. True if another round may do more.
    async fn take(
        &self,
        key: &ObjectKey,
        round: Round,
        written: Vec<Written>,
        users: Vec<Written>,
        refused: &[Refused],
        plan: &mut ClusterPlan,
    ) -> Result<bool, PreviewError> {
        let mut phase: Phase = phase::of(self.shadow, &written, &round.steps).await;
        phase.hooks = round
            .hooks
            .iter()
            .map(|call| HookCall {
                hook: call.hook.name().to_owned(),
                from: call.from.clone(),
                to: call.to.clone(),
            })
            .collect();
        let all: Vec<Written> = users.into_iter().chain(written).collect();
        let found = self.machines.of(self.shadow, key, &all).await;
        phase.objects.extend(found.gone);
        phase.machines = found.changes;
        for object in found.after {
            self.shadow.put(object).await?;
        }
        let is_idle = phase.is_empty();
        let is_lost = !Self::problems(key, &round, refused, plan).is_empty();
        let has_moved = settle::settle(self.shadow, key, &all).await?;
        let goes_on = !is_lost && (!is_idle || has_moved);
        phase.held = round.notes.clone();
        if !goes_on && !is_lost {
            plan.waits = waits(&round);
        }
        if !is_idle {
            plan.phases.push(phase);
        }
        Ok(goes_on)
    }

    fn problems<'p>(key: &ObjectKey, round: &Round, refused: &[Refused], plan: &'p mut ClusterPlan) -> &'p [String] {
        let report = round.report.as_ref().filter(|report| report.reason == FAILED);
        let said = report
            .map(|report| report.message.clone())
            .filter(|said| !said.is_empty());
        let mut found: Vec<String> = Vec::new();
        if let Some(failed) = &round.failed {
            found.push(failed.clone());
        }
        if let Some(said) = said {
            found.extend(said.lines().map(|line| line.trim_start_matches("  * ").to_owned()));
        } else if let Some(blocked) = &round.blocked {
            found.push(blocked.clone());
        }
        let about = |one: &&Refused| one.cluster.as_ref() == Some(key);
        for one in refused.iter().filter(about) {
            if !found.iter().any(|known| known.contains(&one.why)) {
                found.push(one.why.clone());
            }
        }
        plan.problems.extend(found);
        &plan.problems
    }
}

/// Why nothing is done for a Cluster, if it is paused.
fn paused(cluster: &Cluster) -> Option<String> {
    let why = if cluster.spec.paused == Some(true) {
        "spec.paused is set"
    } else if cluster.metadata.annotation(PAUSED).is_some() {
        "it has the annotation cluster.x-k8s.io/paused"
    } else {
        return None;
    };
    Some(format!(
        "the Cluster is paused, and nothing is done before it is resumed: {why}"
    ))
}

/// Why something is left to do when nothing more is done.
fn waits(round: &Round) -> Vec<String> {
    let mut out = round.notes.clone();
    let blocking = round.progress.iter().flat_map(|progress| &progress.blocking);
    for one in blocking.filter(|one| one.seconds.is_none()) {
        let line = format!("{}: {}", one.hook.name(), one.message);
        if !out.contains(&line) {
            out.push(line);
        }
    }
    out
}

fn by_cluster(written: Vec<Written>) -> BTreeMap<ObjectKey, Vec<Written>> {
    let mut out: BTreeMap<ObjectKey, Vec<Written>> = BTreeMap::new();
    for one in written {
        let object: Option<&Value> = one.after.as_ref().or(one.before.as_ref());
        if let Some(cluster) = object.and_then(cluster_of) {
            out.entry(cluster).or_default().push(one);
        }
    }
    out
}
