//! Reads everything a topology is computed from. The only reader.
//!
//! Whether an intent would change a template is asked of the API server by dry runs, for the templates in question.

pub(crate) mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::annotations::PAUSED;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachinePool};
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout, annotations};
use windlass_controller_runtime::{Cx, GroupKind, ObjectKey, Seen, Stored};
use windlass_runtime_client::Extensions;
use windlass_topology::Error;
use windlass_topology::blueprint::{Class, Contract, references};
use windlass_topology::current::{Current, WorkerSet, by_topology_name};
use windlass_topology::hooks::{Call, PlanAnswer, PlanRequest};
use windlass_topology::model::{ClassSpec, MachineDeploymentClass, MachinePoolClass, TemplateRef, text};
use windlass_topology::patches::external;
use windlass_topology::revision;
use windlass_topology::trial::{Trial, Verdict};

use super::memory::Memory;
use super::{dry_run, hooks};
use version::{Reader, version_for};

/// What was read.
#[derive(Debug)]
pub(crate) enum Observed {
    /// The Cluster has no topology.
    Unmanaged,
    /// The Cluster is being deleted.
    Deleting(Arc<Cluster>),
    /// Everything about a topology.
    Managed(Box<Managed>),
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
    if cluster.spec.topology.is_none() {
        return Observed::Unmanaged;
    }
    if cluster.is_deleting() {
        memory.forget(cluster.metadata.uid.as_deref().unwrap_or_default());
        return Observed::Deleting(cluster);
    }
    let value = cluster.to_json();
    let class_key = class_key(&cluster);
    let class = cx.cache::<ClusterClass>().get(&class_key);
    if class.is_none() {
        memory.forget_class(&class_key);
    }
    let (revision, kept) = revision(cx, &cluster, &class_key, memory);
    let names_one = cluster.metadata.has_annotation(annotations::CLASS_REVISION);
    let newest = class.as_ref().map(|class| memory.class(&class_key, class));
    let (read, kept) = match kept {
        Some(Ok(kept)) => (Some(Ok(kept.class)), Some(kept.templates)),
        Some(Err(error)) => (Some(Err(error)), None),
        None => (newest.clone(), None),
    };
    let is_newest = match (&read, &newest) {
        (Some(Ok(read)), Some(Ok(newest))) => read.is_like(newest),
        _ => false,
    };
    let mut seen = Managed {
        cluster,
        value,
        class_unread: cx.scope().why_unread(&class_key.namespace),
        class_key,
        class,
        has_leftover: names_one && revision == Revision::Newest,
        revision,
        is_newest,
        read,
        templates: BTreeMap::new(),
        unserved: Vec::new(),
        contract: Ok(Contract::default()),
        current: Ok(Current::default()),
        upgrade_plan: None,
        patches: None,
    };
    seen.upgrade_plan = memory.upgrade_plan(seen.cluster.metadata.uid());
    let reader = Reader { cx, memory };
    // Without a class nothing is known of its templates, and the plan says so.
    let class = seen.read.clone().and_then(Result::ok);
    let none = ClassSpec::default();
    let spec = class.as_deref().map_or(&none, |class| &class.spec);
    match kept {
        Some(kept) => {
            let found =
                |(reference, template): (&TemplateRef, &Arc<Value>)| (reference.clone(), Seen::Found(template.clone()));
            seen.templates = kept.iter().map(found).collect();
        }
        None => seen.read_templates(reader, spec).await,
    }
    seen.read_contract(reader, spec).await;
    seen.current = seen.read_current(reader, spec).await;
    if let Ok(current) = &mut seen.current {
        current.rotations = memory.rotations(seen.cluster.metadata.uid.as_deref().unwrap_or_default());
        current.same = memory.same(current.generated());
        current.hooks = hooks::served(extensions, seen.cluster.metadata.namespace()).await;
        current.extensions = hooks::revisions(extensions, spec);
    }
    Observed::Managed(Box::new(seen))
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

/// The revision of its class that a Cluster has, and what was read of it.
fn revision(
    cx: &Cx,
    cluster: &Cluster,
    class: &ObjectKey,
    memory: &Memory,
) -> (Revision, Option<Result<revision::Read, Error>>) {
    let without = || {
        let rollout = cx.cache::<ClusterClassRollout>().get(class);
        let rollout = rollout.filter(|rollout| !rollout.is_deleting());
        // Before its controller has looked at it, it holds nothing.
        let status = rollout.as_ref().and_then(|rollout| rollout.status.as_ref());
        match (
            rollout.as_ref(),
            status.and_then(|status| status.update_revision.as_ref()),
        ) {
            (Some(rollout), Some(_)) => (Revision::Awaited(why_awaited(rollout)), None),
            _ => (Revision::Newest, None),
        }
    };
    let Some(name) = cluster.metadata.annotation(annotations::CLASS_REVISION) else {
        return without();
    };
    let key = ObjectKey::new(class.namespace.as_str(), name);
    match cx.cache::<ClusterClassRevision>().get(&key) {
        // The Cluster has moved to another class.
        None if !revision::is_of(&class.name, name) => without(),
        None => (Revision::Lost(name.to_owned()), None),
        Some(object) if object.spec.class_name != class.name => without(),
        Some(object) => match memory.revision(&key, &object).transpose() {
            Some(read) => (Revision::Kept(name.to_owned()), Some(read)),
            None => (Revision::Edited(name.to_owned()), None),
        },
    }
}

/// What a rollout says when it gives Clusters no revision.
fn why_awaited(rollout: &ClusterClassRollout) -> String {
    let conditions = rollout.conditions().iter();
    let mut said = conditions.filter(|condition| condition.status != "True" && !condition.message.is_empty());
    let paused = rollout
        .metadata
        .has_annotation(PAUSED)
        .then(|| format!("it has the annotation {PAUSED}"));
    let said = paused.or_else(|| said.next().map(|condition| condition.message.clone()));
    said.map_or_else(String::new, |said| format!(": {said}"))
}

impl Managed {
    async fn read_templates(&mut self, reader: Reader<'_>, spec: &ClassSpec) {
        for reference in references(spec) {
            let template = reference.template;
            if self.templates.contains_key(template) || template.name.is_empty() {
                continue;
            }
            let kind = GroupKind::new(template.group(), template.kind.as_str());
            let key = ObjectKey::new(self.class_key.namespace.as_str(), template.name.as_str());
            let found = reader.get(&kind, version_for(Some(template), &kind), &key).await;
            if let Seen::Found(found) = &found {
                self.unserved.extend(reader.unserved(template, found).await);
            }
            self.templates.insert(template.clone(), found);
        }
    }

    async fn read_contract(&mut self, reader: Reader<'_>, spec: &ClassSpec) {
        let template = &spec.control_plane.template_ref;
        if !template.kind.is_empty() {
            self.contract = reader.contract(template).await;
        }
    }

    async fn read_current(&self, reader: Reader<'_>, spec: &ClassSpec) -> Result<Current, String> {
        let cx = reader.cx;
        let namespace = self.namespace();
        let follow = async |object: &Value, pointer: &str, template: Option<&TemplateRef>| {
            self.follow(reader, object, pointer, template).await
        };
        let template = Some(&spec.control_plane.template_ref);
        let control_plane = follow(&self.value, "/spec/controlPlaneRef", template).await?;
        let machines = match self.contract.clone()? {
            Contract::V1Beta1 => "/spec/machineTemplate/infrastructureRef",
            Contract::V1Beta2 => "/spec/machineTemplate/spec/infrastructureRef",
        };
        let checks = cx.cache::<MachineHealthCheck>();
        let check = |name: &str| {
            let found = checks.get(&ObjectKey::new(namespace, name))?;
            Some(Arc::new(found.to_json()))
        };
        let mut current = Current {
            infrastructure_cluster: follow(
                &self.value,
                "/spec/infrastructureRef",
                Some(&spec.infrastructure.template_ref),
            )
            .await?,
            ..Current::default()
        };
        if let Some(object) = &control_plane {
            let template = spec.control_plane.machine_infrastructure.as_ref();
            let template = template.map(|machines| &machines.template_ref);
            current.control_plane_machines = follow(object, machines, template).await?;
            current.control_plane_health_check = check(text(object, "/metadata/name"));
        }
        current.control_plane = control_plane;
        let name = self.cluster.metadata.name.clone().unwrap_or_default();
        let mut sets = Vec::new();
        for found in cx.cache::<MachineDeployment>().by_cluster(namespace, &name) {
            let marks = found.metadata.labels.clone().unwrap_or_default();
            if !marks.contains_key(labels::TOPOLOGY_OWNED) {
                continue;
            }
            let object = found.to_json();
            let class = self.worker_class(spec, marks.get(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME));
            let bootstrap = class.map(|class| &class.bootstrap.template_ref);
            let infrastructure = class.map(|class| &class.infrastructure.template_ref);
            sets.push(WorkerSet {
                bootstrap: follow(&object, "/spec/template/spec/bootstrap/configRef", bootstrap).await?,
                infrastructure: follow(&object, "/spec/template/spec/infrastructureRef", infrastructure).await?,
                health_check: check(text(&object, "/metadata/name")),
                machine_versions: machine_versions(
                    cx,
                    namespace,
                    &name,
                    marks.get(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME),
                ),
                object: Arc::new(object),
            });
        }
        current.machine_deployments =
            by_topology_name(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME, sets).map_err(|e| e.to_string())?;
        current.machine_pools = self.read_pools(reader, spec, &name).await?;
        Ok(current)
    }

    async fn read_pools(
        &self,
        reader: Reader<'_>,
        spec: &ClassSpec,
        cluster: &str,
    ) -> Result<BTreeMap<String, WorkerSet>, String> {
        let mut pools = Vec::new();
        for found in reader.cx.cache::<MachinePool>().by_cluster(self.namespace(), cluster) {
            let Some(marks) = &found.metadata.labels else { continue };
            if !marks.contains_key(labels::TOPOLOGY_OWNED) {
                continue;
            }
            let object = found.to_json();
            let class = self.pool_class(spec, marks.get(labels::TOPOLOGY_MACHINE_POOL_NAME));
            let bootstrap = class.map(|class| &class.bootstrap.template_ref);
            let infrastructure = class.map(|class| &class.infrastructure.template_ref);
            let (config, machines) = (
                "/spec/template/spec/bootstrap/configRef",
                "/spec/template/spec/infrastructureRef",
            );
            pools.push(WorkerSet {
                bootstrap: self.follow(reader, &object, config, bootstrap).await?,
                infrastructure: self.follow(reader, &object, machines, infrastructure).await?,
                health_check: None,
                machine_versions: node_versions(&found),
                object: Arc::new(object),
            });
        }
        by_topology_name(labels::TOPOLOGY_MACHINE_POOL_NAME, pools).map_err(|e| e.to_string())
    }

    /// The class of the MachineDeployment that stands under a name in the topology.
    fn worker_class<'a>(&self, spec: &'a ClassSpec, name: Option<&String>) -> Option<&'a MachineDeploymentClass> {
        let topology = self.cluster.spec.topology.as_ref()?;
        let mut entries = topology.workers.iter().flat_map(|workers| &workers.machine_deployments);
        let entry = entries.find(|entry| Some(&entry.name) == name)?;
        let classes = &spec.workers.machine_deployments;
        classes.iter().find(|class| class.class == entry.class)
    }

    /// The class of the MachinePool that stands under a name in the topology.
    fn pool_class<'a>(&self, spec: &'a ClassSpec, name: Option<&String>) -> Option<&'a MachinePoolClass> {
        let topology = self.cluster.spec.topology.as_ref()?;
        let mut entries = topology.workers.iter().flat_map(|workers| &workers.machine_pools);
        let entry = entries.find(|entry| Some(&entry.name) == name)?;
        let classes = &spec.workers.machine_pools;
        classes.iter().find(|class| class.class == entry.class)
    }

    /// The object that a reference names, if it exists, in the version of the template that it is made from.
    async fn follow(
        &self,
        reader: Reader<'_>,
        object: &Value,
        pointer: &str,
        template: Option<&TemplateRef>,
    ) -> Result<Option<Arc<Value>>, String> {
        let Some(reference) = object.pointer(pointer) else {
            return Ok(None);
        };
        let name = text(reference, "/name");
        if name.is_empty() {
            return Ok(None);
        }
        // References of the older contract carry a version instead of a group.
        let group = match text(reference, "/apiGroup") {
            "" => text(reference, "/apiVersion")
                .split_once('/')
                .map_or("", |(group, _)| group),
            group => group,
        };
        let kind = GroupKind::new(group, text(reference, "/kind"));
        let key = ObjectKey::new(self.namespace(), name);
        match reader.get(&kind, version_for(template, &kind), &key).await {
            Seen::Found(found) => Ok(Some(found)),
            Seen::NotFound => Ok(None),
            Seen::Failed(why) => Err(why),
        }
    }

    fn namespace(&self) -> &str {
        self.cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Adds the result of a trial.
    pub(super) fn answered(&mut self, place: String, verdict: Verdict) {
        if let Ok(current) = &mut self.current {
            current.verdicts.insert(place, verdict);
        }
    }
}

/// The versions of a pool's Nodes, as its own controller has seen them.
fn node_versions(pool: &MachinePool) -> Vec<String> {
    let versions = pool.status.iter().flat_map(|status| &status.versions);
    versions.map(|one| one.version.clone()).collect()
}

fn machine_versions(cx: &Cx, namespace: &str, cluster: &str, set: Option<&String>) -> Vec<String> {
    let machines = cx.cache::<Machine>().by_cluster(namespace, cluster);
    machines
        .iter()
        .filter(|machine| {
            let marks = machine.metadata.labels.as_ref();
            set.is_some() && marks.and_then(|m| m.get(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME)) == set
        })
        .filter_map(|machine| machine.spec.version.clone())
        .collect()
}
