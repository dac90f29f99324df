//! Reads everything a topology is computed from. The only reader.
//!
//! Whether an intent would change a template is asked of the API server by dry runs, for the templates in question.

mod inputs;
pub(crate) mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, MachineHealthCheck};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::annotations;
use windlass_controller_runtime::{Cx, ObjectKey, Seen, Stored as _};
use windlass_runtime_client::Extensions;
use windlass_topology::blueprint::{Class, Contract};
use windlass_topology::current::{Current, WorkerSet, by_topology_name};
use windlass_topology::hooks::{Call, PlanAnswer, PlanRequest};
use windlass_topology::model::{ClassSpec, TemplateRef};
use windlass_topology::patches::external;
use windlass_topology::trial::{Trial, Verdict};
use windlass_topology::{Error, Target};

use super::memory::Memory;
use super::{dry_run, hooks};
pub(super) use inputs::Identity;
use inputs::{Existing, Inputs, Templates, named};

/// What was read.
#[derive(Debug)]
pub(crate) enum Observed {
    /// The Cluster has no topology.
    Unmanaged,
    /// The Cluster is being deleted.
    Deleting(Arc<Cluster>),
    /// Everything about a topology.
    Managed(Box<Managed>),
    /// Everything is as it was when nothing was left to do.
    Settled,
}

/// Everything about a topology.
#[derive(Debug)]
pub(crate) struct Managed {
    pub(super) cluster: Arc<Cluster>,
    /// The Cluster as JSON.
    pub(super) value: Value,
    pub(super) class_key: ObjectKey,
    pub(super) class: Option<Arc<ClusterClass>>,
    /// The revision of the class that counts.
    pub(super) revision: Revision,
    /// Whether the class is used as it is now.
    pub(super) is_newest: bool,
    /// Whether the Cluster still names a revision of a class that it had before.
    pub(super) has_leftover: bool,
    /// The same as all its Clusters use it, or what cannot be read of it. None without a class, or without its revision.
    pub(super) read: Option<Result<Arc<Class>, Error>>,
    /// Why the class is unknown, if this process does not read its namespace.
    pub(super) class_unread: Option<String>,
    /// The templates that the class names.
    pub(super) templates: BTreeMap<TemplateRef, Seen<Arc<Value>>>,
    /// The templates that are not read in the version that the class names: why.
    pub(super) unserved: Vec<String>,
    /// The contract of the control plane kind, or why that is not known.
    pub(super) contract: Result<Contract, String>,
    /// What exists, or why that is not known.
    pub(super) current: Result<Current, String>,
    /// The upgrade plan that an extension has given last, and when.
    pub(super) upgrade_plan: Option<(PlanAnswer, Timestamp)>,
    /// What an extension has answered last about the templates, in this reconcile.
    pub(super) patches: Option<external::Answered>,
    /// Stands for all that was read. None if part of it is not known, or was asked in this reconcile.
    pub(super) identity: Option<Identity>,
}

/// Which revision of its class a Cluster has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Revision {
    /// The class as it is now: it is not rolled out in waves.
    Newest,
    /// One that the controller of rollouts has not given it yet, and what that says of itself.
    Awaited(String),
    /// This one.
    Kept(String),
    /// This one, which does not exist.
    Lost(String),
    /// This one, which has other contents than its name stands for.
    Edited(String),
}

/// What the plan asks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// Whether intents would change the specs of these templates.
    pub(super) trials: Vec<Trial>,
    /// Whether extensions let the next step come.
    pub(super) calls: Vec<Call>,
    /// Which versions an upgrade goes through.
    pub(super) route: Option<PlanRequest>,
    /// How an extension changes the templates, or whether it finds them good.
    pub(super) patches: Option<Box<external::Question>>,
}

pub(super) async fn observe(cx: &Cx, cluster: Arc<Cluster>, memory: &Memory, extensions: &Extensions) -> Observed {
    read(cx, cluster, memory, extensions, true).await
}

/// [`observe`] that knows of no topology that it is settled.
pub(super) async fn observe_again(
    cx: &Cx,
    cluster: Arc<Cluster>,
    memory: &Memory,
    extensions: &Extensions,
) -> Observed {
    read(cx, cluster, memory, extensions, false).await
}

async fn read(
    cx: &Cx,
    cluster: Arc<Cluster>,
    memory: &Memory,
    extensions: &Extensions,
    may_be_settled: bool,
) -> Observed {
    if cluster.spec.topology.is_none() {
        return Observed::Unmanaged;
    }
    if cluster.is_deleting() {
        memory.forget(cluster.metadata.uid.as_deref().unwrap_or_default());
        return Observed::Deleting(cluster);
    }
    let inputs = Inputs::read(cx, cluster, memory, extensions).await;
    let identity = inputs.identity();
    if may_be_settled
        && let Some(identity) = &identity
        && memory.is_settled(inputs.cluster.metadata.uid(), identity)
    {
        return Observed::Settled;
    }
    Observed::Managed(Box::new(Managed::of(inputs, identity)))
}

/// Asks the extensions, and tries the intents.
pub(super) async fn answer(
    cx: &Cx,
    mut seen: Observed,
    question: Question,
    memory: &Memory,
    extensions: &Extensions,
) -> Observed {
    if let Observed::Managed(managed) = &mut seen {
        // An answer is no input that can be compared.
        managed.identity = None;
        let answers = hooks::ask(extensions, &managed.cluster, &question.calls).await;
        if let Ok(current) = &mut managed.current {
            current.hooks.answers.extend(answers);
        }
        if let Some(request) = question.route {
            let known = (hooks::ask_plan(extensions, &managed.cluster, request).await, cx.now());
            memory.planned(managed.cluster.metadata.uid(), &known);
            managed.upgrade_plan = Some(known);
        }
        if let Some(question) = question.patches {
            let answered = hooks::ask_about_templates(extensions, &managed.cluster, *question).await;
            managed.patches = Some(answered);
        }
        for trial in question.trials {
            let verdict = dry_run::verdict(cx, &trial, memory).await;
            managed.answered(trial.place, verdict);
        }
    }
    seen
}

/// The class that a Cluster uses.
pub(crate) fn class_key(cluster: &Cluster) -> ObjectKey {
    let own = cluster.metadata.namespace.clone().unwrap_or_default();
    let Some(topology) = &cluster.spec.topology else {
        return ObjectKey::new(own, "");
    };
    let class = &topology.class_ref;
    ObjectKey::new(class.namespace.clone().unwrap_or(own), class.name.clone())
}

impl Managed {
    /// What was read, with objects as JSON. Pure: what is not in the inputs would be forgotten when they are compared.
    fn of(inputs: Inputs, identity: Option<Identity>) -> Self {
        let Inputs {
            cluster,
            class_key,
            class,
            class_unread,
            revision,
            newest,
            read,
            templates,
            unserved,
            contract,
            existing,
            upgrade_plan,
            rotations,
            same,
            hooks,
            extensions,
        } = inputs;
        let is_newest = match (&read, &newest) {
            (Some(Ok(read)), Some(Ok(newest))) => read.is_like(newest),
            _ => false,
        };
        let templates = match templates {
            Templates::Kept(kept) => {
                let found = |(reference, template): (&TemplateRef, &Arc<Value>)| {
                    (reference.clone(), Seen::Found(template.clone()))
                };
                kept.iter().map(found).collect()
            }
            Templates::Read(found) => {
                let none = ClassSpec::default();
                let spec = read.as_ref().and_then(|read| read.as_ref().ok());
                let spec = spec.map_or(&none, |class| &class.spec);
                named(spec).into_iter().cloned().zip(found).collect()
            }
        };
        let current = existing.and_then(current).map(|current| Current {
            rotations,
            same,
            hooks,
            extensions,
            ..current
        });
        let names_one = cluster.metadata.has_annotation(annotations::CLASS_REVISION);
        Self {
            value: cluster.to_json(),
            has_leftover: names_one && revision == Revision::Newest,
            cluster,
            class_key,
            class,
            revision,
            is_newest,
            read,
            class_unread,
            templates,
            unserved,
            contract,
            current,
            upgrade_plan,
            patches: None,
            identity,
        }
    }

    /// Adds the result of a trial.
    pub(super) fn answered(&mut self, place: String, verdict: Verdict) {
        if let Ok(current) = &mut self.current {
            current.verdicts.insert(place, verdict);
        }
    }
}

/// The generated objects as JSON.
fn current(existing: Existing) -> Result<Current, String> {
    let Existing {
        infrastructure_cluster,
        control_plane,
        control_plane_machines,
        control_plane_health_check,
        deployments,
        pools,
        shim,
    } = existing;
    let check = |check: Option<Arc<MachineHealthCheck>>| check.map(|check| Arc::new(check.to_json()));
    let sorted = |label, sets: Vec<WorkerSet>| by_topology_name(label, sets).map_err(|error| error.to_string());
    let deployments = deployments.into_iter().map(|set| WorkerSet {
        object: Arc::new(set.object.to_json()),
        bootstrap: set.bootstrap,
        infrastructure: set.infrastructure,
        health_check: check(set.health_check),
        machine_versions: set.machine_versions,
    });
    let pools = pools.into_iter().map(|set| WorkerSet {
        object: Arc::new(set.object.to_json()),
        bootstrap: set.bootstrap,
        infrastructure: set.infrastructure,
        health_check: check(set.health_check),
        machine_versions: set.machine_versions,
    });
    Ok(Current {
        machine_deployments: sorted(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME, deployments.collect())?,
        machine_pools: sorted(labels::TOPOLOGY_MACHINE_POOL_NAME, pools.collect())?,
        infrastructure_cluster,
        control_plane,
        control_plane_machines,
        control_plane_health_check: check(control_plane_health_check),
        shim: shim.map(|shim| Target {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: shim.metadata.namespace().to_owned(),
            name: shim.metadata.name().to_owned(),
            uid: shim.metadata.uid().to_owned(),
        }),
        ..Current::default()
    })
}
