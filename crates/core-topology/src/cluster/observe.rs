//! Reads everything a topology is computed from. The only reader.
//!
//! Caches do not keep `managedFields`. They are read from the API server when the decision depends on them, for the templates in question.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels;
use windlass_contract::ContractVersion;
use windlass_controller_runtime::{Cx, GroupKind, ObjectKey, RuntimeError, Seen, Stored, gvk_from};
use windlass_topology::Target;
use windlass_topology::blueprint::{Contract, references};
use windlass_topology::current::{Current, WorkerSet, by_topology_name};
use windlass_topology::model::{ClassSpec, TemplateRef, read, text};

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
    /// The templates that the class names.
    pub(super) templates: BTreeMap<TemplateRef, Seen<Arc<Value>>>,
    /// The contract of the control plane kind, or why that is not known.
    pub(super) contract: Result<Contract, String>,
    /// What exists, or why that is not known.
    pub(super) current: Result<Current, String>,
    /// The templates whose `managedFields` were asked for, and whether they could be read. Those that were found are in `current`.
    pub(super) asked: BTreeMap<Target, Seen<()>>,
}

/// The question whether this controller has set all fields of these templates. They have more fields than the topology generates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(super) unsure: BTreeSet<Target>,
}

/// The managed fields of objects by uid, for the version of the object that they were read for.
#[derive(Debug, Default)]
pub(super) struct KnownFields(Mutex<HashMap<String, Known>>);

#[derive(Debug, Clone)]
struct Known {
    version: String,
    fields: Value,
}

/// More than one process manages at a time. Beyond it, everything is read again.
const MOST_KNOWN: usize = 50_000;

pub(super) async fn observe(cx: &Cx, cluster: Arc<Cluster>) -> Observed {
    if cluster.spec.topology.is_none() {
        return Observed::Unmanaged;
    }
    if cluster.is_deleting() {
        return Observed::Deleting(cluster);
    }
    let value = cluster.to_json();
    let class_key = class_key(&cluster);
    let class = cx.cache::<ClusterClass>().get(&class_key);
    let mut seen = Managed {
        cluster,
        value,
        class_key,
        class,
        templates: BTreeMap::new(),
        contract: Ok(Contract::default()),
        current: Ok(Current::default()),
        asked: BTreeMap::new(),
    };
    seen.read_templates(cx).await;
    seen.current = seen.read_current(cx).await;
    Observed::Managed(Box::new(seen))
}

/// Reads the managed fields of the templates in question.
pub(super) async fn answer(cx: &Cx, mut seen: Observed, question: Question, known: &KnownFields) -> Observed {
    if let Observed::Managed(managed) = &mut seen {
        for target in question.unsure {
            let version = managed.version_of(&target);
            let fields = known.of(cx, &target, &version).await;
            managed.fill_in(target, fields);
        }
    }
    seen
}

/// The class that a Cluster uses.
pub(super) fn class_key(cluster: &Cluster) -> ObjectKey {
    let own = cluster.metadata.namespace.clone().unwrap_or_default();
    let Some(topology) = &cluster.spec.topology else {
        return ObjectKey::new(own, "");
    };
    let class = &topology.class_ref;
    ObjectKey::new(class.namespace.clone().unwrap_or(own), class.name.clone())
}

impl Managed {
    /// The class as JSON.
    pub(super) fn class_value(&self) -> Value {
        self.class.as_deref().map_or(Value::Null, Stored::to_json)
    }

    async fn read_templates(&mut self, cx: &Cx) {
        let spec: ClassSpec = read(&self.class_value(), "/spec").unwrap_or_default();
        for reference in references(&spec) {
            let template = reference.template;
            if self.templates.contains_key(template) || template.name.is_empty() {
                continue;
            }
            let kind = GroupKind::new(template.group(), template.kind.as_str());
            let key = ObjectKey::new(self.class_key.namespace.as_str(), template.name.as_str());
            self.templates.insert(template.clone(), get(cx, &kind, &key).await);
        }
        let template = &spec.control_plane.template_ref;
        let kind = template.kind.strip_suffix("Template").unwrap_or(&template.kind);
        if !kind.is_empty() {
            self.contract = contract(cx, &GroupKind::new(template.group(), kind)).await;
        }
    }

    async fn read_current(&self, cx: &Cx) -> Result<Current, String> {
        let namespace = self.namespace();
        let control_plane = self.follow(cx, &self.value, "/spec/controlPlaneRef").await?;
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
            infrastructure_cluster: self.follow(cx, &self.value, "/spec/infrastructureRef").await?,
            ..Current::default()
        };
        if let Some(object) = &control_plane {
            current.control_plane_machines = self.follow(cx, object, machines).await?;
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
            sets.push(WorkerSet {
                bootstrap: self
                    .follow(cx, &object, "/spec/template/spec/bootstrap/configRef")
                    .await?,
                infrastructure: self
                    .follow(cx, &object, "/spec/template/spec/infrastructureRef")
                    .await?,
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
        current.machine_deployments = by_topology_name(sets).map_err(|e| e.to_string())?;
        Ok(current)
    }

    /// The object that a reference names, if it exists.
    async fn follow(&self, cx: &Cx, object: &Value, pointer: &str) -> Result<Option<Arc<Value>>, String> {
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
        match get(cx, &kind, &ObjectKey::new(self.namespace(), name)).await {
            Seen::Found(found) => Ok(Some(found)),
            Seen::NotFound => Ok(None),
            Seen::Failed(why) => Err(why),
        }
    }

    fn namespace(&self) -> &str {
        self.cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The templates of Machines that exist.
    fn machine_templates(&mut self) -> Vec<&mut Arc<Value>> {
        let Ok(current) = &mut self.current else {
            return Vec::new();
        };
        let sets = current.machine_deployments.values_mut();
        let mut all: Vec<_> = sets
            .flat_map(|set| [set.bootstrap.as_mut(), set.infrastructure.as_mut()])
            .flatten()
            .collect();
        all.extend(&mut current.control_plane_machines);
        all
    }

    /// The resourceVersion of a template, as it was observed.
    fn version_of(&mut self, target: &Target) -> String {
        let templates = self.machine_templates();
        let found = templates.iter().find(|template| Target::of(template) == *target);
        found.map_or_else(String::new, |found| text(found, "/metadata/resourceVersion").to_owned())
    }

    /// Adds the managed fields of a template to what was observed of it.
    pub(super) fn fill_in(&mut self, target: Target, fields: Seen<Value>) {
        if let Seen::Found(fields) = &fields {
            for template in self.machine_templates() {
                if Target::of(template) == target {
                    Arc::make_mut(template)["metadata"]["managedFields"] = fields.clone();
                }
            }
        }
        self.asked.insert(target, fields.map(|_| ()));
    }
}

impl KnownFields {
    /// The managed fields of an object: those of this version that are known, else those that the API server has now.
    async fn of(&self, cx: &Cx, target: &Target, version: &str) -> Seen<Value> {
        if let Some(known) = self.0.lock().get(&target.uid).filter(|k| k.version == version) {
            return Seen::Found(known.fields.clone());
        }
        let gvk = gvk_from(&target.api_version, &target.kind);
        let key = ObjectKey::new(target.namespace.as_str(), target.name.as_str());
        let mut live = match cx.read_value(&gvk, &key).await {
            Seen::Found(live) => live,
            other => return other,
        };
        let fields = match live["metadata"]["managedFields"].take() {
            Value::Null => Value::Array(Vec::new()),
            fields => fields,
        };
        let mut all = self.0.lock();
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        let known = Known {
            version: version.to_owned(),
            fields: fields.clone(),
        };
        all.insert(target.uid.clone(), known);
        Seen::Found(fields)
    }
}

/// The contract of a control plane kind.
async fn contract(cx: &Cx, kind: &GroupKind) -> Result<Contract, String> {
    match cx.dynamic(kind).await {
        Ok(cache) => Ok(match cache.contract() {
            ContractVersion::V1Beta1 => Contract::V1Beta1,
            ContractVersion::V1Beta2 => Contract::V1Beta2,
        }),
        // Without a definition or a contract the kind cannot be written either. The write reports it.
        Err(RuntimeError::UnknownKind { .. } | RuntimeError::NoContract { .. }) => Ok(Contract::default()),
        Err(error) => Err(error.to_string()),
    }
}

async fn get(cx: &Cx, kind: &GroupKind, key: &ObjectKey) -> Seen<Arc<Value>> {
    cx.dynamic_get(kind, key)
        .await
        .map(|object| Arc::new(object.value().clone()))
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
