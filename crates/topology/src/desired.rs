//! The objects that a topology should have.
//!
//! An intent holds only what this controller sets: labels, annotations, owner references and the spec. Names are
//! those of what exists, and derived ones for what does not exist yet.

mod control_plane;
mod health_check;
mod parts;
mod pool;
mod template;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_gotemplate::Budget;
use windlass_meta::Moment;
use windlass_meta::budget::PATCHES_COST;

use crate::blueprint::Blueprint;
use crate::current::{self, Current, WorkerSet};
use crate::error::{Error, describe};
use crate::hooks::{Call, Calls, Hook, PlanAnswer, PlanRequest};
use crate::model::{Metadata, Topology, name_of, read, text};
use crate::patches::external::{Answered, Halt};
use crate::patches::{self, Item, Place, Setting};
use crate::upgrade::{self, ControlPlaneStep, UpgradePlan, WorkerStep};
use crate::variables::{self, Values, builtin, check};
use crate::{keys, names, version};

use parts::{merged_metadata, metadata_json, overlaid, put, string_map};

pub(crate) use control_plane::machine_reference_path;

/// The inputs of a topology computation.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Cluster.
    pub cluster: &'a Value,
    /// Its class with templates.
    pub blueprint: &'a Blueprint,
    /// The existing objects.
    pub current: &'a Current,
    /// The upgrade plan of an extension, with the question that it answers.
    pub upgrade_plan: Option<&'a PlanAnswer>,
    /// What an extension has answered last about the templates.
    pub patches: Option<&'a Answered>,
    /// The time of the decision.
    pub now: &'a Moment,
    /// Whether defaults of variables are stored in the Cluster: not those of a class that is not the newest.
    pub stores_defaults: bool,
}

/// The desired state of a topology.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The topology as read from the Cluster.
    pub topology: Topology,
    /// `spec.topology` with the defaults of variables that the Cluster lacks; none if it has them all.
    pub completed: Option<Value>,
    /// The infrastructure cluster.
    pub infrastructure_cluster: Value,
    /// The control plane and what belongs to it.
    pub control_plane: ControlPlane,
    /// The MachineDeployments, in the order of the topology.
    pub workers: Vec<Worker>,
    /// The MachinePools, in the order of the topology.
    pub pools: Vec<Pool>,
    /// Versions still to be gone through, as seen before this pass.
    pub upgrade_plan: UpgradePlan,
}

/// The control plane and what belongs to it.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    /// The control plane.
    pub object: Value,
    /// The machine template.
    pub machines: Option<Value>,
    /// The MachineHealthCheck.
    pub health_check: Option<Value>,
    /// The progress of an upgrade.
    pub step: ControlPlaneStep,
}

/// One MachinePool and what belongs to it.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Its name in the topology.
    pub name: String,
    /// The MachinePool.
    pub object: Value,
    /// The bootstrap object.
    pub bootstrap: Value,
    /// The infrastructure of the pool.
    pub infrastructure: Value,
    /// The progress of an upgrade.
    pub step: WorkerStep,
}

/// One MachineDeployment and what belongs to it.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its name in the topology.
    pub name: String,
    /// Its class.
    pub class: String,
    /// The MachineDeployment.
    pub object: Value,
    /// The bootstrap template.
    pub bootstrap: Value,
    /// The machine template.
    pub infrastructure: Value,
    /// The MachineHealthCheck.
    pub health_check: Option<Value>,
    /// The progress of an upgrade.
    pub step: WorkerStep,
}

/// The worker set to which an object belongs: the label that says so, and the name in the topology.
#[derive(Clone, Copy)]
struct Member<'a> {
    label: &'static str,
    name: &'a str,
}

impl<'a> Member<'a> {
    fn of_deployment(name: &'a str) -> Self {
        let label = keys::DEPLOYMENT_NAME;
        Self { label, name }
    }

    fn of_pool(name: &'a str) -> Self {
        let label = keys::POOL_NAME;
        Self { label, name }
    }
}

/// An entry of the topology's workers, with what exists for it.
struct Entry<'a> {
    annotations: &'a BTreeMap<String, String>,
    set: Option<&'a WorkerSet>,
}

/// The common parts of all generated objects of one Cluster.
struct Scope<'a> {
    input: Input<'a>,
    topology: &'a Topology,
    cluster: &'a str,
    namespace: &'a str,
    /// `Cluster namespace/name`, for errors.
    object: String,
    /// Stands for the Cluster in derived names.
    seed: String,
}

/// Computes all desired objects. Pure: no reads, no writes.
pub(crate) fn desired(input: Input<'_>, calls: &mut Calls<'_>) -> Result<Desired, Halt> {
    let topology = topology(input.cluster)?;
    let scope = Scope::new(input, &topology);
    let concurrency = upgrade::concurrency(
        &scope.object,
        input
            .cluster
            .pointer("/metadata/annotations")
            .and_then(|a| a.get(keys::UPGRADE_CONCURRENCY))
            .and_then(Value::as_str),
    )?;
    for object in input.current.generated() {
        current::require_owned(object)?;
    }
    scope.require_present()?;
    let mut values = check::effective(
        &scope.object,
        input.cluster,
        &topology,
        &input.blueprint.class.definitions,
    )?;
    let (upgrade_plan, step) = scope.control_plane_step(calls)?;
    let steps = worker_steps(&scope.deployments(), &upgrade_plan, &step, concurrency);
    // Pools come after the MachineDeployments, but for those that an annotation holds back, and for those that wait for the control plane,
    // which may wait for the pools.
    let goes_first = |step: &WorkerStep| step.upgrading || step.starting || (step.pending && !step.out_of_reach);
    let concurrency = if steps.iter().any(goes_first) { 0 } else { concurrency };
    let pool_steps = worker_steps(&scope.pools(), &upgrade_plan, &step, concurrency);
    let rests = |step: &WorkerStep| !(step.upgrading || step.starting || step.on_hold());
    let workers_rest = !step.workers_blocked && steps.iter().chain(&pool_steps).all(rests);
    let after_steps = [Hook::AfterControlPlaneUpgrade, Hook::AfterWorkersUpgrade];
    if step.stable() && workers_rest && !after_steps.iter().any(|hook| calls.is_pending(*hook)) {
        calls.completes(Call {
            to: topology.version.clone(),
            ..Call::about(Hook::AfterClusterUpgrade)
        });
    }

    let infrastructure_name = scope.infrastructure_name()?;
    let control_plane = control_plane::Names::of(&scope, &values)?;
    let mut plans = Vec::with_capacity(topology.workers.machine_deployments.len());
    for (entry, step) in topology.workers.machine_deployments.iter().zip(steps) {
        plans.push(worker::Names::of(&scope, entry, step, &values)?);
    }
    let mut pools = Vec::with_capacity(topology.workers.machine_pools.len());
    for (entry, step) in topology.workers.machine_pools.iter().zip(pool_steps) {
        pools.push(pool::Names::of(&scope, entry, step)?);
    }

    let mut items = vec![Item {
        place: Place::InfrastructureCluster,
        holder: scope.held_by_cluster("spec.infrastructureRef"),
        api_version: input
            .blueprint
            .class
            .spec
            .infrastructure
            .template_ref
            .api_version
            .clone(),
        template: scope.infrastructure_to_patch(),
        variables: Values::new(),
    }];
    control_plane.push_items(&scope, &values, &step, &mut items);
    for plan in &plans {
        plan.push_items(&scope, &values, &mut items);
    }
    for pool in &pools {
        pool.push_items(&scope, &values, &mut items);
    }
    let mut global = values.global.clone();
    global.insert(
        variables::BUILTIN.to_owned(),
        builtin::cluster(input.cluster, &topology, &scope.labels(None)),
    );
    let setting = Setting {
        class: &input.blueprint.class.name,
        patches: &input.blueprint.class.spec.patches,
        definitions: &input.blueprint.class.variables,
        global: &global,
        answer: input.patches,
    };
    patches::apply(&setting, &mut items, Budget::of(PATCHES_COST))?;

    let mut patched = items.into_iter().map(|item| item.template);
    let mut next = || patched.next().unwrap_or_default();
    let infrastructure_cluster = scope.infrastructure_cluster(&infrastructure_name, next());
    let control_plane = control_plane.build(&scope, step, &mut next)?;
    let workers = plans
        .into_iter()
        .map(|plan| plan.build(&scope, &mut next))
        .collect::<Result<_, Error>>()?;
    let pools = pools.into_iter().map(|pool| pool.build(&scope, &mut next)).collect();
    Ok(Desired {
        topology,
        infrastructure_cluster,
        control_plane,
        workers,
        pools,
        upgrade_plan,
        completed: values.completed.take(),
    })
}

/// What is to be asked of an extension before anything can be planned.
pub(crate) fn plan_request(input: Input<'_>) -> Result<Option<PlanRequest>, Error> {
    let external = &input.blueprint.class.spec.upgrade.external;
    let Some(control_plane) = input.current.control_plane.as_deref() else {
        return Ok(None);
    };
    if external.generate_upgrade_plan_extension.is_none() {
        return Ok(None);
    }
    let topology = topology(input.cluster)?;
    let scope = Scope::new(input, &topology);
    let workers = scope.oldest_workers(&scope.deployments(), &scope.pools());
    Ok(scope.plan_request(control_plane, workers))
}

/// Reads and checks the topology, with what admission would default.
fn topology(cluster: &Value) -> Result<Topology, Error> {
    let object = name_of(cluster);
    let mut topology: Topology = read(cluster, "/spec/topology")?;
    let refuse = |field: &str, message: String| Err(Error::new(&object, field, message));
    if topology.class_ref.name.is_empty() {
        return refuse("spec.topology.classRef.name", "must not be empty".into());
    }
    topology.version = version::canonical(&topology.version);
    if !version::is_full(&topology.version) {
        let message = format!("{:?} is no semantic version such as v1.35.0", topology.version);
        return refuse("spec.topology.version", message);
    }
    let workers = &topology.workers;
    let sets = workers.machine_deployments.iter().map(|entry| &entry.name).collect();
    let pools = workers.machine_pools.iter().map(|entry| &entry.name).collect();
    for (part, names) in [("machineDeployments", sets), ("machinePools", pools)] {
        let names: Vec<&String> = names;
        let mut seen = BTreeSet::new();
        for (index, name) in names.into_iter().enumerate() {
            let field = format!("spec.topology.workers.{part}[{index}].name");
            if name.is_empty() {
                return refuse(&field, "must not be empty".into());
            }
            if !seen.insert(name) {
                return refuse(&field, format!("{name:?} is used more than once"));
            }
        }
    }
    Ok(topology)
}

impl<'a> Scope<'a> {
    fn new(input: Input<'a>, topology: &'a Topology) -> Self {
        let cluster = text(input.cluster, "/metadata/name");
        let namespace = text(input.cluster, "/metadata/namespace");
        let uid = text(input.cluster, "/metadata/uid");
        Self {
            input,
            topology,
            cluster,
            namespace,
            object: name_of(input.cluster),
            seed: format!("{uid}/{namespace}/{cluster}"),
        }
    }

    /// An object that the Cluster has used is not made again when it is gone: a new one would be another cluster. References are
    /// written before the objects are made, so an object that is not there yet is a normal case, too.
    fn require_present(&self) -> Result<(), Error> {
        let (cluster, current) = (self.input.cluster, self.input.current);
        let parts = [
            (
                "infrastructureRef",
                &current.infrastructure_cluster,
                "infrastructureProvisioned",
                self.own_infrastructure_name()?,
            ),
            (
                "controlPlaneRef",
                &current.control_plane,
                "controlPlaneInitialized",
                control_plane::own_name(self)?,
            ),
        ];
        for (field, object, flag, own_name) in parts {
            let reference = format!("/spec/{field}");
            let name = text(cluster, &format!("{reference}/name"));
            let flag = format!("/status/initialization/{flag}");
            if object.is_some() || name.is_empty() {
                continue;
            }
            let used = cluster.pointer(&flag).and_then(Value::as_bool) == Some(true);
            // A reference that this Cluster cannot have got comes from a backup: its object is still to be restored.
            let restored = name != own_name;
            if used || restored {
                let kind = text(cluster, &format!("{reference}/kind"));
                let why = if used {
                    "and the Cluster has used it"
                } else {
                    "and its name was not given to this Cluster, which looks restored from a backup"
                };
                let message = format!(
                    "{} does not exist, {why}; restore it or delete the Cluster",
                    describe(kind, self.namespace, name)
                );
                return Err(Error::new(&self.object, format!("spec.{field}"), message));
            }
        }
        Ok(())
    }

    fn control_plane_step(&self, calls: &mut Calls<'_>) -> Result<(UpgradePlan, ControlPlaneStep), Error> {
        let blueprint = self.input.blueprint;
        let Some(have) = self.input.current.control_plane.as_deref() else {
            let step = ControlPlaneStep {
                version: self.topology.version.clone(),
                ..ControlPlaneStep::default()
            };
            return Ok((UpgradePlan::default(), step));
        };
        let (deployments, pools) = (self.deployments(), self.pools());
        let oldest = self.oldest_workers(&deployments, &pools);
        let route = upgrade::Route {
            control_plane: text(have, "/spec/version"),
            workers: oldest,
            target: &self.topology.version,
            allowed: &blueprint.class.spec.kubernetes_versions,
        };
        let answer = self.input.upgrade_plan;
        let plan = match (self.plan_request(have, oldest), answer) {
            (Some(request), Some(known)) if known.request == request => {
                let answer = known.answer.clone().unwrap_or_default();
                upgrade::given(&blueprint.class.name, &route, &answer)?
            }
            _ => upgrade::plan(&self.object, &route)?,
        };
        let upgrading = |entries: &[Entry<'_>]| -> Vec<String> {
            let sets = entries.iter().filter_map(|entry| entry.set);
            let names = sets
                .filter(|set| set.upgrading())
                .map(|set| text(&set.object, "/metadata/name"));
            names.map(str::to_owned).collect()
        };
        let held_back = held_back(self.input.cluster);
        let facts = upgrade::ControlPlaneFacts {
            version: route.control_plane,
            running: current::running_version(have),
            scaling: self.topology.control_plane.replicas.is_some() && current::is_scaling(have, blueprint.contract),
            held_back: held_back.as_deref(),
            workers: oldest,
            workers_upgrading: &upgrading(&deployments),
            pools_upgrading: &upgrading(&pools),
        };
        let step = upgrade::control_plane(&facts, &plan, calls);
        Ok((plan, step))
    }

    /// The oldest version of the workers.
    fn oldest_workers(&self, deployments: &[Entry<'a>], pools: &[Entry<'a>]) -> Option<&'a str> {
        let existing = deployments.iter().chain(pools).filter_map(|entry| entry.set);
        let versions = existing.map(WorkerSet::version).filter(|v| !v.is_empty());
        version::furthest_behind(versions, &self.topology.version)
    }

    /// What an extension is asked about the versions on the way, if the class names one and there is a way to go.
    fn plan_request(&self, control_plane: &Value, workers: Option<&str>) -> Option<PlanRequest> {
        let external = &self.input.blueprint.class.spec.upgrade.external;
        let handler = external.generate_upgrade_plan_extension.clone()?;
        let from = text(control_plane, "/spec/version");
        let to = &self.topology.version;
        let is_there =
            |version: &str| version::parse(version).is_some() && version::parse(version) == version::parse(to);
        (!is_there(from) || workers.is_some_and(|workers| !is_there(workers))).then(|| PlanRequest {
            handler,
            from_control_plane: from.to_owned(),
            from_workers: workers.unwrap_or_default().to_owned(),
            to: to.clone(),
        })
    }

    /// The MachineDeployments of the topology.
    fn deployments(&self) -> Vec<Entry<'a>> {
        let sets = &self.input.current.machine_deployments;
        let entries = self.topology.workers.machine_deployments.iter();
        let entry = entries.map(|entry| Entry {
            annotations: &entry.metadata.annotations,
            set: sets.get(&entry.name),
        });
        entry.collect()
    }

    /// The MachinePools of the topology.
    fn pools(&self) -> Vec<Entry<'a>> {
        let sets = &self.input.current.machine_pools;
        let entries = self.topology.workers.machine_pools.iter();
        let entry = entries.map(|entry| Entry {
            annotations: &entry.metadata.annotations,
            set: sets.get(&entry.name),
        });
        entry.collect()
    }

    fn infrastructure_name(&self) -> Result<String, Error> {
        let referenced = text(self.input.cluster, "/spec/infrastructureRef/name");
        if !referenced.is_empty() {
            return Ok(referenced.to_owned());
        }
        self.own_infrastructure_name()
    }

    /// The name that this Cluster gives.
    fn own_infrastructure_name(&self) -> Result<String, Error> {
        names::Naming {
            cluster: self.cluster,
            topology: None,
            template: self
                .input
                .blueprint
                .class
                .spec
                .infrastructure
                .naming
                .template
                .as_deref(),
            at: (&self.input.blueprint.class.name, "spec.infrastructure.naming.template"),
        }
        .name(&[&self.seed, "infrastructure"])
    }

    fn infrastructure_to_patch(&self) -> Value {
        let template = &self.input.blueprint.infrastructure_cluster;
        let mut metadata = template::metadata_of_object(self, template, &Metadata::default(), None);
        template::to_patch(template, &mut metadata, template::OF_OBJECT)
    }

    fn infrastructure_cluster(&self, name: &str, template: Value) -> Value {
        let mut object = template::object_from(self, template, name, None);
        object["metadata"]["ownerReferences"] = json!([self.owner(true)]);
        template::leave_endpoint(&mut object);
        object
    }

    /// The reference by which an object belongs to the Cluster.
    fn owner(&self, controller: bool) -> Value {
        let mut owner = json!({
            "apiVersion": keys::CORE_API_VERSION,
            "kind": "Cluster",
            "name": self.cluster,
            "uid": text(self.input.cluster, "/metadata/uid"),
        });
        if controller {
            owner["controller"] = true.into();
            owner["blockOwnerDeletion"] = true.into();
        }
        owner
    }

    /// The labels of everything generated; they win over all others.
    fn labels(&self, member: Option<Member<'_>>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (keys::CLUSTER_NAME.to_owned(), self.cluster.to_owned()),
            (keys::OWNED.to_owned(), String::new()),
        ]);
        if let Some(Member { label, name }) = member {
            labels.insert(label.to_owned(), name.to_owned());
        }
        labels
    }
}

/// The annotations of a Cluster that hold upgrades back, in the words of v1.14; none if there are none.
fn held_back(cluster: &Value) -> Option<String> {
    let annotations = cluster.pointer("/metadata/annotations")?.as_object()?;
    let keys = annotations.keys().map(String::as_str);
    let mut keys: Vec<&str> = keys.filter(|key| key.starts_with(keys::BEFORE_UPGRADE_HOOK)).collect();
    keys.sort_unstable();
    match keys.as_slice() {
        [] => None,
        [one] => Some(format!("annotation {one} is set")),
        more => Some(format!("annotations {} are set", more.join(", "))),
    }
}

/// One step per entry of the topology, also for those that have no worker set yet.
fn worker_steps(
    entries: &[Entry<'_>],
    plan: &UpgradePlan,
    control_plane: &ControlPlaneStep,
    concurrency: usize,
) -> Vec<WorkerStep> {
    let facts = entries.iter().filter_map(|entry| {
        let set = entry.set?;
        Some(upgrade::WorkerFacts {
            annotations: entry.annotations,
            version: set.version(),
            upgrading: set.upgrading(),
        })
    });
    let facts: Vec<_> = facts.collect();
    let mut steps = upgrade::workers(&facts, control_plane, plan, concurrency).into_iter();
    let missing = || WorkerStep {
        version: control_plane.version.clone(),
        // A worker set made in the middle of an upgrade would be upgraded right away.
        pending: control_plane.changing_version() || control_plane.workers_blocked,
        out_of_reach: true,
        ..WorkerStep::default()
    };
    let step = entries.iter().map(|entry| {
        let existing = entry.set.and_then(|_| steps.next());
        existing.unwrap_or_else(missing)
    });
    step.collect()
}

#[cfg(test)]
mod tests;
