//! The settings of a rollout, and how its Clusters are: pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use windlass_api::annotations::PAUSED;
use windlass_api::conditions::{AVAILABLE, TOPOLOGY_RECONCILED};
use windlass_api::core::{Cluster, MachinePool, MachineSet};
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::{
    ClusterClassRolloutSpec, GO_BACK, HealthGate, RequiredCondition, RolloutWave, annotations,
};
use windlass_contract::Selector;
use windlass_controller_runtime::{ObjectKey, Seen};
use windlass_topology::revision;
use windlass_topology::status::FAILED;
use windlass_topology::waves::{Abort, Has, Member, OTHERS, Settings, Size, Stage};

use super::observe::{OfClass, Workers};

/// When a Cluster counts as failed, unless the rollout says so.
const DEADLINE: i32 = 3600;

/// Why settings cannot be used: a field, and what is wrong.
pub(super) type Problem = String;

/// The settings, and the selectors of all stages but the last one.
pub(super) fn settings(spec: &ClusterClassRolloutSpec) -> Result<(Settings, Vec<Selector>), Problem> {
    let mut stages = Vec::new();
    let mut selectors = Vec::new();
    for (index, stage) in spec.stages.iter().enumerate() {
        let at = format!("spec.stages[{index}]");
        let everything = LabelSelector::default();
        let selector = Selector::parse(stage.selector.as_ref().unwrap_or(&everything));
        selectors.push(selector.map_err(|error| format!("{at}.selector.{error}"))?);
        let own = stage.wave_size.as_ref().map(|size| (format!("{at}.waveSize"), size));
        stages.push(Stage {
            name: stage.name.clone(),
            size: size(own, spec)?,
            soak: seconds(stage.soak_seconds.or(spec.soak_seconds).unwrap_or_default()),
        });
    }
    stages.push(Stage {
        name: OTHERS.to_owned(),
        size: size(None, spec)?,
        soak: seconds(spec.soak_seconds.unwrap_or_default()),
    });
    let gate = spec.health_gate.clone().unwrap_or_default();
    let abort = spec.abort.as_ref().map(|abort| Abort {
        revision: abort.revision.clone(),
        goes_back: abort.released.as_deref() == Some(GO_BACK),
    });
    let settings = Settings {
        stages,
        deadline: seconds(gate.progress_deadline_seconds.unwrap_or(DEADLINE)),
        most_unhealthy: usize::try_from(gate.max_unhealthy.unwrap_or_default()).unwrap_or_default(),
        paused: spec.paused.unwrap_or_default().then(|| "spec.paused is set".to_owned()),
        abort,
    };
    Ok((settings, selectors))
}

fn seconds(number: i32) -> SignedDuration {
    SignedDuration::from_secs(number.max(0).into())
}

fn size(own: Option<(String, &IntOrString)>, spec: &ClusterClassRolloutSpec) -> Result<Size, Problem> {
    let of_all = spec.wave_size.as_ref().map(|size| ("spec.waveSize".to_owned(), size));
    let Some((field, size)) = own.or(of_all) else {
        return Ok(Size::Count(1));
    };
    let found = match size {
        IntOrString::Int(number) => usize::try_from(*number)
            .ok()
            .filter(|number| *number > 0)
            .map(Size::Count),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.parse().ok());
            percent.filter(|percent| (1..=100).contains(percent)).map(Size::Percent)
        }
    };
    found.ok_or_else(|| format!("{field}: a number from 1, or a percentage from 1% to 100% is expected"))
}

/// The Clusters of a class as members of its rollout. `class_of` gives the class of a revision that exists.
pub(super) fn members<'a>(
    clusters: &[OfClass],
    selectors: &[Selector],
    gate: &HealthGate,
    class: &str,
    class_of: impl Fn(&str) -> Option<&'a str>,
    newest_since: Option<jiff::Timestamp>,
) -> Vec<Member> {
    clusters
        .iter()
        .map(|of_class| {
            let cluster = &of_class.cluster;
            let annotation = |key: &str| cluster.metadata.annotation(key);
            let exists = |name: &&str| class_of(name) == Some(class);
            let named = annotation(annotations::CLASS_REVISION);
            let reconciled = annotation(annotations::RECONCILED_CLASS_REVISION).filter(exists);
            let revision = match named {
                Some(name) if exists(&name) => Has::This(name.to_owned()),
                Some(name) if revision::is_of(class, name) && class_of(name).is_none() => Has::Lost,
                // None, or that of a class which the Cluster had before.
                _ => Has::None(reconciled.map(str::to_owned)),
            };
            Member {
                key: cluster.key(),
                stage: stage(cluster, selectors),
                is_new: named.is_some() || has_nothing(cluster),
                is_younger: newest_since.is_some_and(|since| cluster.metadata.created() > since),
                is_paused: is_paused(cluster),
                is_stuck: is_stuck(cluster),
                health: health(of_class, named, gate),
                revision,
            }
        })
        .collect()
}

/// The index of the stage of a Cluster: that of the first selector that matches it, or the last one.
pub(super) fn stage(cluster: &Cluster, selectors: &[Selector]) -> usize {
    let labels = cluster.metadata.labels.as_ref();
    let first = selectors.iter().position(|selector| selector.matches(labels));
    first.unwrap_or(selectors.len())
}

/// Whether the topology of a Cluster cannot be reconciled as it is.
fn is_stuck(cluster: &Cluster) -> bool {
    let reconciled = windlass_conditions::get(cluster.conditions(), TOPOLOGY_RECONCILED);
    reconciled.is_some_and(|condition| condition.status != "True" && condition.reason == FAILED)
}

/// Whether nothing was generated for a Cluster yet.
fn has_nothing(cluster: &Cluster) -> bool {
    cluster.spec.infrastructure_ref.is_none() && cluster.spec.control_plane_ref.is_none()
}

pub(super) fn is_paused(cluster: &Cluster) -> bool {
    cluster.spec.paused.unwrap_or_default() || cluster.metadata.has_annotation(PAUSED)
}

/// Whether everything of a Cluster has been brought to its revision, and it is healthy.
fn health(of_class: &OfClass, revision: Option<&str>, gate: &HealthGate) -> Result<(), String> {
    let cluster = &of_class.cluster;
    let known = |type_: &str| windlass_conditions::get(cluster.conditions(), type_);
    let reconciled = known(TOPOLOGY_RECONCILED);
    if reconciled.is_none_or(|condition| condition.status != "True") {
        let message = reconciled.map_or("is missing", |condition| first_line(&condition.message));
        return Err(format!("{TOPOLOGY_RECONCILED}: {message}"));
    }
    if cluster.metadata.annotation(annotations::RECONCILED_CLASS_REVISION) != revision {
        return Err("its objects are not brought to the revision yet".to_owned());
    }
    match &of_class.control_plane {
        Seen::Found(object) => control_plane(object)?,
        Seen::NotFound => return Err("its control plane does not exist".to_owned()),
        Seen::Failed(why) => return Err(format!("its control plane cannot be read: {why}")),
    }
    of_class.deployments.iter().try_for_each(deployment)?;
    of_class.pools.iter().try_for_each(|one| pool(one))?;
    let available = [RequiredCondition {
        status: "True".to_owned(),
        type_: AVAILABLE.to_owned(),
    }];
    let required = if gate.conditions.is_empty() {
        &available[..]
    } else {
        &gate.conditions
    };
    for one in required {
        let found = known(&one.type_);
        if found.is_none_or(|condition| condition.status != one.status) {
            let has = found.map_or("is missing".to_owned(), |condition| {
                let message = first_line(&condition.message);
                format!(
                    "is {}{}{message}",
                    condition.status,
                    if message.is_empty() { "" } else { ": " }
                )
            });
            return Err(format!("condition {} {has}", one.type_));
        }
    }
    Ok(())
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// Whether an object's controller has seen its spec, and all of its Machines are up to date. How many there should be is a matter of Available:
/// scaling is no change of the class.
fn up_to_date(what: &str, generations: (Option<i64>, Option<i64>), numbers: [Option<i64>; 2]) -> Result<(), String> {
    if let (Some(generation), Some(observed)) = generations
        && observed < generation
    {
        return Err(format!("{what} is not observed yet"));
    }
    match numbers {
        [Some(existing), Some(current)] if existing != current => {
            Err(format!("{what} has {current} of {existing} Machines up to date"))
        }
        // Providers without the numbers make no statement.
        _ => Ok(()),
    }
}

fn control_plane(object: &Value) -> Result<(), String> {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let current = number("/status/upToDateReplicas").or_else(|| number("/status/updatedReplicas"));
    up_to_date(
        "its control plane",
        (number("/metadata/generation"), number("/status/observedGeneration")),
        [number("/status/replicas"), current],
    )
}

/// A MachineDeployment counts its Machines by a condition that may be older than its template. The templates of its MachineSets are not.
fn deployment(of: &Workers) -> Result<(), String> {
    let object = &of.deployment;
    let what = format!("MachineDeployment {}", object.metadata.name());
    let strategy = object
        .spec
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.strategy.as_ref());
    let waits_for_users = strategy.is_some_and(|strategy| strategy.type_ == "OnDelete");
    let wanted = &object.spec.template.spec;
    let is_older = |set: &&Arc<MachineSet>| {
        let have = &set.spec.template.spec;
        let differs = have.version != wanted.version
            || have.bootstrap.config_ref != wanted.bootstrap.config_ref
            || have.infrastructure_ref != wanted.infrastructure_ref;
        let machines = set.status.as_ref().and_then(|status| status.replicas);
        differs && (set.spec.replicas.unwrap_or_default() > 0 || machines.unwrap_or_default() > 0)
    };
    if let Some(older) = of.sets.iter().find(is_older).filter(|_| !waits_for_users) {
        return Err(format!(
            "{what} still has Machines of MachineSet {}",
            older.metadata.name()
        ));
    }
    let status = object.status.clone().unwrap_or_default();
    up_to_date(
        &what,
        // Without a status, its controller has not seen it yet.
        (object.metadata.generation, status.observed_generation.or(Some(0))),
        [status.replicas, status.up_to_date_replicas.filter(|_| !waits_for_users)].map(|number| number.map(i64::from)),
    )
}

fn pool(object: &MachinePool) -> Result<(), String> {
    let status = object.status.clone().unwrap_or_default();
    up_to_date(
        &format!("MachinePool {}", object.metadata.name()),
        (object.metadata.generation, status.observed_generation.or(Some(0))),
        [status.replicas, status.up_to_date_replicas].map(|number| number.map(i64::from)),
    )
}

/// The Clusters that a status names.
pub(super) fn keys(names: &[String]) -> BTreeSet<ObjectKey> {
    let key = |name: &String| {
        name.split_once('/')
            .map(|(namespace, name)| ObjectKey::new(namespace, name))
    };
    names.iter().filter_map(key).collect()
}

/// The wave that a status names.
pub(super) fn wave(stored: &RolloutWave) -> windlass_topology::waves::Wave {
    windlass_topology::waves::Wave {
        number: stored.number,
        stage: stored.stage.clone(),
        revision: stored.revision.clone(),
        clusters: keys(&stored.clusters),
        tolerated: keys(&stored.tolerated_clusters),
        waiting: keys(&stored.waiting_clusters),
        waiting_since: stored.waiting_time.as_ref().map(|time| time.0),
        healthy_since: stored.healthy_time.as_ref().map(|time| time.0),
    }
}
