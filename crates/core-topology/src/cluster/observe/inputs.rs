//! Reads everything that a topology is computed from.
//!
//! What is read stands in [`Inputs`], and nothing else is: a plan is made from them alone. So two reconciles with the same inputs have the same
//! plan, and [`Inputs::identity`], which goes through all of them, tells whether they are the same without a look into the objects.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::annotations::PAUSED;
use windlass_api::core::{
    Cluster, ClusterClass, ContractVersionedObjectReference, Machine, MachineDeployment, MachineHealthCheck,
    MachinePool,
};
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_api::values::CLUSTER_SECRET_TYPE;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout, annotations};
use windlass_controller_runtime::{Cx, GroupKind, ObjectKey, Seen};
use windlass_runtime_client::Extensions;
use windlass_topology::Error;
use windlass_topology::blueprint::{Class, Contract, references};
use windlass_topology::hooks::{Hooks, PlanAnswer};
use windlass_topology::model::{ClassSpec, MachineDeploymentClass, MachinePoolClass, TemplateRef, text};
use windlass_topology::revision;
use windlass_topology::trial::{Pair, Rotations};

use super::super::hooks;
use super::super::memory::Memory;
use super::version::{Reader, version_for};
use super::{Revision, class_key};

/// All that was read of a Cluster with a topology.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    pub(super) cluster: Arc<Cluster>,
    pub(super) class_key: ObjectKey,
    pub(super) class: Option<Arc<ClusterClass>>,
    pub(super) class_unread: Option<String>,
    pub(super) revision: Revision,
    /// The class as it is now.
    pub(super) newest: Option<Result<Arc<Class>, Error>>,
    /// The class as the Cluster uses it.
    pub(super) read: Option<Result<Arc<Class>, Error>>,
    pub(super) templates: Templates,
    pub(super) unserved: Vec<String>,
    pub(super) contract: Result<Contract, String>,
    pub(super) existing: Result<Existing, String>,
    pub(super) upgrade_plan: Option<(PlanAnswer, Timestamp)>,
    pub(super) rotations: BTreeMap<String, Rotations>,
    pub(super) same: BTreeMap<String, Pair>,
    pub(super) hooks: Hooks,
    pub(super) extensions: Vec<String>,
}

/// The templates that a class names.
#[derive(Debug, Clone)]
pub(super) enum Templates {
    /// As a revision keeps them.
    Kept(Arc<BTreeMap<TemplateRef, Arc<Value>>>),
    /// What counts of them as they are now, in the order of [`named`].
    Read(Vec<Seen<Arc<Value>>>),
}

/// The generated objects that exist.
#[derive(Debug, Clone, Default)]
pub(super) struct Existing {
    pub(super) infrastructure_cluster: Option<Arc<Value>>,
    pub(super) control_plane: Option<Arc<Value>>,
    pub(super) control_plane_machines: Option<Arc<Value>>,
    pub(super) control_plane_health_check: Option<Arc<MachineHealthCheck>>,
    pub(super) deployments: Vec<Workers<MachineDeployment>>,
    pub(super) pools: Vec<Workers<MachinePool>>,
    /// What v1.14 leaves behind when it stops while it makes a Cluster.
    pub(super) shim: Option<Arc<Secret>>,
}

/// A MachineDeployment or MachinePool, and what belongs to it.
#[derive(Debug, Clone)]
pub(super) struct Workers<K> {
    pub(super) object: Arc<K>,
    pub(super) bootstrap: Option<Arc<Value>>,
    pub(super) infrastructure: Option<Arc<Value>>,
    pub(super) health_check: Option<Arc<MachineHealthCheck>>,
    pub(super) machine_versions: Vec<String>,
}

/// Stands for inputs: equal only if all of them are the same.
///
/// An object is the same if it is the very one that a cache had: each event brings a new one, whatever it has changed.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Identity(Vec<Part>);

/// One input.
#[derive(Debug, Clone)]
enum Part {
    Object(Weak<dyn Any + Send + Sync>),
    Text(String),
    Nothing,
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // While one of the two is kept, no other object gets its address.
            (Self::Object(a), Self::Object(b)) => a.ptr_eq(b),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }
}

impl Identity {
    fn object<T: Any + Send + Sync>(&mut self, object: &Arc<T>) {
        let object: Arc<dyn Any + Send + Sync> = object.clone();
        self.0.push(Part::Object(Arc::downgrade(&object)));
    }

    fn maybe<T: Any + Send + Sync>(&mut self, object: Option<&Arc<T>>) {
        match object {
            Some(object) => self.object(object),
            None => self.0.push(Part::Nothing),
        }
    }

    /// What is small is compared by its contents.
    fn text(&mut self, value: &impl Debug) {
        self.0.push(Part::Text(format!("{value:?}")));
    }

    fn workers<K: Any + Send + Sync>(&mut self, all: &[Workers<K>]) {
        self.text(&all.len());
        for workers in all {
            let Workers {
                object,
                bootstrap,
                infrastructure,
                health_check,
                machine_versions,
            } = workers;
            self.object(object);
            self.maybe(bootstrap.as_ref());
            self.maybe(infrastructure.as_ref());
            self.maybe(health_check.as_ref());
            self.text(machine_versions);
        }
    }
}

impl Inputs {
    /// Reads everything of a Cluster that has a topology.
    pub(super) async fn read(cx: &Cx, cluster: Arc<Cluster>, memory: &Memory, extensions: &Extensions) -> Self {
        let class_key = class_key(&cluster);
        let class = cx.cache::<ClusterClass>().get(&class_key);
        if class.is_none() {
            memory.forget_class(&class_key);
        }
        let (revision, kept) = of_revision(cx, &cluster, &class_key, memory);
        let newest = class.as_ref().map(|class| memory.class(&class_key, class));
        let (read, kept) = match kept {
            Some(Ok(kept)) => (Some(Ok(kept.class)), Some(kept.templates)),
            Some(Err(error)) => (Some(Err(error)), None),
            None => (newest.clone(), None),
        };
        // Without a class nothing is known of its templates, and the plan says so.
        let of_cluster = read.clone().and_then(Result::ok);
        let none = ClassSpec::default();
        let spec = of_cluster.as_deref().map_or(&none, |class| &class.spec);
        let reader = Reader { cx, memory };
        let mut unserved = Vec::new();
        let templates = match kept {
            Some(kept) => Templates::Kept(kept),
            None => match &of_cluster {
                Some(class) => Templates::Read(templates(reader, class, &class_key, &mut unserved).await),
                None => Templates::Read(Vec::new()),
            },
        };
        let template = &spec.control_plane.template_ref;
        let contract = match template.kind.as_str() {
            "" => Ok(Contract::default()),
            _ => reader.contract(template).await,
        };
        let existing = match &contract {
            Ok(contract) => Existing::read(reader, &cluster, spec, *contract).await,
            Err(why) => Err(why.clone()),
        };
        let generated = existing.iter().flat_map(Existing::templates);
        let (uid, namespace) = (cluster.metadata.uid(), cluster.metadata.namespace());
        Self {
            class_unread: cx.scope().why_unread(&class_key.namespace),
            upgrade_plan: memory.upgrade_plan(uid),
            rotations: memory.rotations(uid),
            same: memory.same(generated),
            hooks: hooks::served(extensions, namespace).await,
            extensions: hooks::revisions(extensions, spec),
            cluster,
            class_key,
            class,
            revision,
            newest,
            read,
            templates,
            unserved,
            contract,
            existing,
        }
    }

    /// Stands for these inputs. None if one of them is not known: what could not be read is never the same as before.
    pub(super) fn identity(&self) -> Option<Identity> {
        // All fields, so that one that is added must be thought of here.
        let Self {
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
        } = self;
        let mut of = Identity(Vec::new());
        of.object(cluster);
        of.text(class_key);
        of.maybe(class.as_ref());
        of.text(class_unread);
        of.text(revision);
        for class in [newest, read] {
            of.maybe(class.as_ref().map(Result::as_ref).transpose().ok()?);
        }
        match templates {
            Templates::Kept(kept) => of.object(kept),
            Templates::Read(read) => {
                of.text(&read.len());
                for template in read {
                    match template {
                        Seen::Found(template) => of.object(template),
                        Seen::NotFound => of.0.push(Part::Nothing),
                        Seen::Failed(_) => return None,
                    }
                }
            }
        }
        of.text(unserved);
        of.text(contract.as_ref().ok()?);
        let Existing {
            infrastructure_cluster,
            control_plane,
            control_plane_machines,
            control_plane_health_check,
            deployments,
            pools,
            shim,
        } = existing.as_ref().ok()?;
        for object in [infrastructure_cluster, control_plane, control_plane_machines] {
            of.maybe(object.as_ref());
        }
        of.maybe(control_plane_health_check.as_ref());
        of.workers(deployments);
        of.workers(pools);
        of.maybe(shim.as_ref());
        of.text(upgrade_plan);
        of.text(rotations);
        of.text(same);
        let Hooks {
            served,
            unknown,
            answers,
        } = hooks;
        if unknown.is_some() {
            return None;
        }
        of.text(served);
        of.text(answers);
        of.text(extensions);
        Some(of)
    }
}

/// The templates that a class names, each once.
pub(super) fn named(spec: &ClassSpec) -> Vec<&TemplateRef> {
    let mut out: Vec<&TemplateRef> = Vec::new();
    for reference in references(spec) {
        if !reference.template.name.is_empty() && !out.contains(&reference.template) {
            out.push(reference.template);
        }
    }
    out
}

async fn templates(
    reader: Reader<'_>,
    class: &Arc<Class>,
    class_key: &ObjectKey,
    unserved: &mut Vec<String>,
) -> Vec<Seen<Arc<Value>>> {
    let mut out = Vec::new();
    for template in named(&class.spec) {
        let kind = GroupKind::new(template.group(), template.kind.as_str());
        let key = ObjectKey::new(class_key.namespace.as_str(), template.name.as_str());
        let found = reader.get(&kind, version_for(Some(template), &kind), &key).await;
        if let Seen::Found(found) = &found {
            unserved.extend(reader.unserved(template, found).await);
        }
        out.push(found.map(|found| reader.memory.relevant(class_key, class, template, found)));
    }
    out
}

/// The revision of its class that a Cluster has, and what was read of it.
fn of_revision(
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

/// The Secret that owns the infrastructure cluster and the control plane in v1.14 until the Cluster refers to both. Another Secret of its
/// name is none.
fn shim(cx: &Cx, cluster: &Cluster) -> Option<Arc<Secret>> {
    let name = format!("{}-shim", cluster.metadata.name());
    let secret = cx
        .cache::<Secret>()
        .get(&ObjectKey::new(cluster.metadata.namespace(), name))?;
    let mut owners = secret.metadata.owner_references.iter().flatten();
    let is_shim = secret.type_.as_deref() == Some(CLUSTER_SECRET_TYPE)
        && owners.any(|owner| owner.kind == Cluster::KIND && owner.uid == cluster.metadata.uid())
        && secret.data.is_none();
    is_shim.then_some(secret)
}

impl Existing {
    async fn read(reader: Reader<'_>, cluster: &Cluster, spec: &ClassSpec, contract: Contract) -> Result<Self, String> {
        let (cx, namespace) = (reader.cx, cluster.metadata.namespace());
        let own = async |reference: Option<&ContractVersionedObjectReference>, template| {
            follow(reader, namespace, of_typed(reference), template).await
        };
        let infrastructure_cluster = own(
            cluster.spec.infrastructure_ref.as_ref(),
            Some(&spec.infrastructure.template_ref),
        );
        let control_plane = own(
            cluster.spec.control_plane_ref.as_ref(),
            Some(&spec.control_plane.template_ref),
        );
        let mut out = Self {
            control_plane: control_plane.await?,
            infrastructure_cluster: infrastructure_cluster.await?,
            shim: shim(cx, cluster),
            ..Self::default()
        };
        let checks = cx.cache::<MachineHealthCheck>();
        let check = |name: &str| checks.get(&ObjectKey::new(namespace, name));
        if let Some(object) = &out.control_plane {
            let machines = match contract {
                Contract::V1Beta1 => "/spec/machineTemplate/infrastructureRef",
                Contract::V1Beta2 => "/spec/machineTemplate/spec/infrastructureRef",
            };
            let template = spec.control_plane.machine_infrastructure.as_ref();
            let template = template.map(|machines| &machines.template_ref);
            let machines = object.pointer(machines).map(of_value);
            out.control_plane_machines = follow(reader, namespace, machines, template).await?;
            out.control_plane_health_check = check(text(object, "/metadata/name"));
        }
        let name = cluster.metadata.name();
        let machines = cx.cache::<Machine>().by_cluster(namespace, name);
        for object in cx.cache::<MachineDeployment>().by_cluster(namespace, name) {
            if object.metadata.label(labels::TOPOLOGY_OWNED).is_none() {
                continue;
            }
            let entry = object.metadata.label(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME);
            let class = worker_class(cluster, spec, entry);
            let wanted = &object.spec.template.spec;
            out.deployments.push(Workers {
                bootstrap: own(
                    wanted.bootstrap.config_ref.as_ref(),
                    class.map(|class| &class.bootstrap.template_ref),
                )
                .await?,
                infrastructure: own(
                    Some(&wanted.infrastructure_ref),
                    class.map(|class| &class.infrastructure.template_ref),
                )
                .await?,
                health_check: check(object.metadata.name()),
                machine_versions: machine_versions(&machines, entry),
                object,
            });
        }
        for object in cx.cache::<MachinePool>().by_cluster(namespace, name) {
            if object.metadata.label(labels::TOPOLOGY_OWNED).is_none() {
                continue;
            }
            let entry = object.metadata.label(labels::TOPOLOGY_MACHINE_POOL_NAME);
            let class = pool_class(cluster, spec, entry);
            let wanted = &object.spec.template.spec;
            out.pools.push(Workers {
                bootstrap: own(
                    wanted.bootstrap.config_ref.as_ref(),
                    class.map(|class| &class.bootstrap.template_ref),
                )
                .await?,
                infrastructure: own(
                    Some(&wanted.infrastructure_ref),
                    class.map(|class| &class.infrastructure.template_ref),
                )
                .await?,
                health_check: None,
                machine_versions: node_versions(&object),
                object,
            });
        }
        Ok(out)
    }

    /// The objects that may have been tried.
    fn templates(&self) -> impl Iterator<Item = &Value> {
        let own = [
            &self.infrastructure_cluster,
            &self.control_plane,
            &self.control_plane_machines,
        ];
        let deployments = self
            .deployments
            .iter()
            .flat_map(|set| [&set.bootstrap, &set.infrastructure]);
        let pools = self.pools.iter().flat_map(|set| [&set.bootstrap, &set.infrastructure]);
        let all = own.into_iter().chain(deployments).chain(pools);
        all.filter_map(|object| object.as_deref())
    }
}

/// The class of the MachineDeployment that stands under a name in the topology.
fn worker_class<'a>(cluster: &Cluster, spec: &'a ClassSpec, name: Option<&str>) -> Option<&'a MachineDeploymentClass> {
    let topology = cluster.spec.topology.as_ref()?;
    let mut entries = topology.workers.iter().flat_map(|workers| &workers.machine_deployments);
    let entry = entries.find(|entry| Some(entry.name.as_str()) == name)?;
    let classes = &spec.workers.machine_deployments;
    classes.iter().find(|class| class.class == entry.class)
}

/// The class of the MachinePool that stands under a name in the topology.
fn pool_class<'a>(cluster: &Cluster, spec: &'a ClassSpec, name: Option<&str>) -> Option<&'a MachinePoolClass> {
    let topology = cluster.spec.topology.as_ref()?;
    let mut entries = topology.workers.iter().flat_map(|workers| &workers.machine_pools);
    let entry = entries.find(|entry| Some(entry.name.as_str()) == name)?;
    let classes = &spec.workers.machine_pools;
    classes.iter().find(|class| class.class == entry.class)
}

/// Group, kind and name of an object that another one refers to.
type Named<'a> = (&'a str, &'a str, &'a str);

fn of_typed(reference: Option<&ContractVersionedObjectReference>) -> Option<Named<'_>> {
    let reference = reference?;
    Some((&reference.api_group, &reference.kind, &reference.name))
}

fn of_value(reference: &Value) -> Named<'_> {
    // References of the older contract carry a version instead of a group.
    let group = match text(reference, "/apiGroup") {
        "" => text(reference, "/apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group),
        group => group,
    };
    (group, text(reference, "/kind"), text(reference, "/name"))
}

/// The object that a reference names, if it exists, in the version of the template that it is made from.
async fn follow(
    reader: Reader<'_>,
    namespace: &str,
    reference: Option<Named<'_>>,
    template: Option<&TemplateRef>,
) -> Result<Option<Arc<Value>>, String> {
    let Some((group, kind, name)) = reference.filter(|(_, _, name)| !name.is_empty()) else {
        return Ok(None);
    };
    let kind = GroupKind::new(group, kind);
    let key = ObjectKey::new(namespace, name);
    match reader.get(&kind, version_for(template, &kind), &key).await {
        Seen::Found(found) => Ok(Some(found)),
        Seen::NotFound => Ok(None),
        Seen::Failed(why) => Err(why),
    }
}

/// The versions of a pool's Nodes, as its own controller has seen them.
fn node_versions(pool: &MachinePool) -> Vec<String> {
    let versions = pool.status.iter().flat_map(|status| &status.versions);
    versions.map(|one| one.version.clone()).collect()
}

fn machine_versions(machines: &[Arc<Machine>], set: Option<&str>) -> Vec<String> {
    let is_of_set = |machine: &&Arc<Machine>| {
        set.is_some() && machine.metadata.label(labels::TOPOLOGY_MACHINE_DEPLOYMENT_NAME) == set
    };
    let of_set = machines.iter().filter(is_of_set);
    of_set.filter_map(|machine| machine.spec.version.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value() -> Arc<Value> {
        Arc::new(json!({"kind": "T"}))
    }

    fn workers<K: Default>() -> Workers<K> {
        Workers {
            object: Arc::default(),
            bootstrap: Some(value()),
            infrastructure: Some(value()),
            health_check: Some(Arc::default()),
            machine_versions: vec!["v1.35.0".to_owned()],
        }
    }

    fn class() -> Result<Arc<Class>, Error> {
        let reference = |kind: &str| json!({"templateRef": {"apiVersion": "g/v1", "kind": kind, "name": "t"}});
        let class = json!({
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {"infrastructure": reference("ITemplate"), "controlPlane": reference("PTemplate")},
        });
        Class::read(&class).map(Arc::new)
    }

    fn inputs() -> Inputs {
        Inputs {
            cluster: Arc::default(),
            class_key: ObjectKey::new("n", "c"),
            class: Some(Arc::default()),
            class_unread: None,
            revision: Revision::Newest,
            newest: Some(class()),
            read: Some(class()),
            templates: Templates::Read(vec![Seen::Found(value()), Seen::Found(value())]),
            unserved: Vec::new(),
            contract: Ok(Contract::V1Beta2),
            existing: Ok(Existing {
                infrastructure_cluster: Some(value()),
                control_plane: Some(value()),
                control_plane_machines: Some(value()),
                control_plane_health_check: Some(Arc::default()),
                deployments: vec![workers(), workers()],
                pools: vec![workers()],
                shim: None,
            }),
            upgrade_plan: None,
            rotations: BTreeMap::new(),
            same: BTreeMap::new(),
            hooks: Hooks::default(),
            extensions: vec!["e".to_owned()],
        }
    }

    fn existing(inputs: &mut Inputs) -> &mut Existing {
        inputs.existing.as_mut().unwrap()
    }

    type Change = fn(&mut Inputs);

    /// One change of each input. An object of the same contents is another one: its event may have changed what caches leave out.
    const CHANGES: &[(&str, Change)] = &[
        ("Cluster", |i| i.cluster = Arc::default()),
        ("another class", |i| i.class_key.name.push('x')),
        ("class", |i| i.class = Some(Arc::default())),
        ("no class", |i| i.class = None),
        ("namespace that is not read", |i| i.class_unread = Some("w".to_owned())),
        ("revision", |i| i.revision = Revision::Kept("c-1".to_owned())),
        ("class as it is now", |i| i.newest = Some(class())),
        ("class of the Cluster", |i| i.read = Some(class())),
        ("first template", |i| {
            if let Templates::Read(read) = &mut i.templates {
                read[0] = Seen::Found(value());
            }
        }),
        ("last template", |i| {
            if let Templates::Read(read) = &mut i.templates {
                read[1] = Seen::NotFound;
            }
        }),
        ("templates of a revision", |i| {
            i.templates = Templates::Kept(Arc::default());
        }),
        ("a version that is not served", |i| i.unserved.push("w".to_owned())),
        ("contract", |i| i.contract = Ok(Contract::V1Beta1)),
        ("infrastructure", |i| existing(i).infrastructure_cluster = Some(value())),
        ("control plane", |i| existing(i).control_plane = Some(value())),
        ("no control plane", |i| existing(i).control_plane = None),
        ("machines of the control plane", |i| {
            existing(i).control_plane_machines = Some(value());
        }),
        ("health check of the control plane", |i| {
            existing(i).control_plane_health_check = Some(Arc::default());
        }),
        ("a MachineDeployment", |i| {
            existing(i).deployments[1].object = Arc::default();
        }),
        ("one MachineDeployment less", |i| {
            existing(i).deployments.pop();
        }),
        ("their order", |i| existing(i).deployments.swap(0, 1)),
        ("bootstrap template", |i| {
            existing(i).deployments[0].bootstrap = Some(value());
        }),
        ("machine template", |i| existing(i).deployments[1].infrastructure = None),
        ("health check", |i| existing(i).deployments[0].health_check = None),
        ("versions of Machines", |i| {
            existing(i).deployments[0].machine_versions.push("v1.36.0".to_owned());
        }),
        ("a MachinePool", |i| existing(i).pools[0].object = Arc::default()),
        ("bootstrap of a MachinePool", |i| {
            existing(i).pools[0].bootstrap = Some(value());
        }),
        ("infrastructure of a MachinePool", |i| {
            existing(i).pools[0].infrastructure = Some(value());
        }),
        ("versions of Nodes", |i| existing(i).pools[0].machine_versions.clear()),
        ("shim", |i| existing(i).shim = Some(Arc::default())),
        ("upgrade plan", |i| {
            let request = windlass_topology::hooks::PlanRequest {
                handler: "h".to_owned(),
                from_control_plane: "v1.34.0".to_owned(),
                from_workers: "v1.34.0".to_owned(),
                to: "v1.35.0".to_owned(),
            };
            let answer = Err("w".to_owned());
            i.upgrade_plan = Some((PlanAnswer { request, answer }, Timestamp::UNIX_EPOCH));
        }),
        ("rotations", |i| {
            i.rotations.insert("p".to_owned(), Rotations::default());
        }),
        ("hooks", |i| {
            i.hooks.served.insert("BeforeClusterUpgrade".to_owned());
        }),
        ("extensions", |i| i.extensions[0].push('x')),
    ];

    /// What is not known.
    const FAILURES: &[(&str, Change)] = &[
        ("class as it is now", |i| {
            i.newest = Some(Err(Error::new("c", "f", "w")));
        }),
        ("class of the Cluster", |i| {
            i.read = Some(Err(Error::new("c", "f", "w")));
        }),
        ("template", |i| {
            if let Templates::Read(read) = &mut i.templates {
                read[1] = Seen::Failed("w".to_owned());
            }
        }),
        ("contract", |i| i.contract = Err("w".to_owned())),
        ("objects", |i| i.existing = Err("w".to_owned())),
        ("hooks", |i| i.hooks.unknown = Some("w".to_owned())),
    ];

    #[test]
    fn the_same_inputs_are_the_same_and_each_change_of_one_is_seen() {
        let before = inputs();
        let identity = before.identity().unwrap();
        assert_eq!(before.clone().identity().unwrap(), identity);
        assert_ne!(inputs().identity().unwrap(), identity, "objects with the same contents");
        for (what, change) in CHANGES {
            let mut after = before.clone();
            change(&mut after);
            assert_ne!(after.identity().unwrap(), identity, "{what}");
        }
    }

    #[test]
    fn what_is_not_known_is_never_the_same() {
        for (what, fail) in FAILURES {
            let mut failed = inputs();
            fail(&mut failed);
            assert_eq!(failed.identity(), None, "{what}");
        }
    }

    #[test]
    fn an_address_that_is_used_again_is_another_object() {
        let mut of = Identity(Vec::new());
        of.object(&value());
        for _ in 0..1000 {
            let mut other = Identity(Vec::new());
            other.object(&value());
            assert_ne!(other, of);
        }
    }
}
