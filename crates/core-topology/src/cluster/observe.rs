//! Reads everything a topology is computed from. The only reader.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels;
use windlass_contract::ContractVersion;
use windlass_kit::{Cx, GroupKind, ObjectKey, Seen, Stored, gvk_from};
use windlass_topology::blueprint::{Contract, references};
use windlass_topology::current::{Current, WorkerSet, by_topology_name};
use windlass_topology::model::{ClassSpec, TemplateRef, read, text};
use windlass_topology::plan::{Plan as Steps, Target};

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
    pub(super) contract: Contract,
    /// What exists, or why that is not known.
    pub(super) current: Result<Current, String>,
    /// The steps to take, where looking found them out already.
    pub(super) steps: Option<Steps>,
}

/// Which fields of an object this controller set, for objects that have more than it wants. Caches do not keep this.
#[derive(Debug, Default)]
pub(super) struct KnownFields(Mutex<HashMap<String, Known>>);

#[derive(Debug, Clone)]
struct Known {
    version: String,
    fields: Value,
}

/// More than one process ever manages at a time; beyond it, everything is simply asked for again.
const MOST_KNOWN: usize = 50_000;

pub(super) async fn observe(cx: &Cx, cluster: Arc<Cluster>, known: &KnownFields) -> Observed {
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
        contract: Contract::default(),
        current: Ok(Current::default()),
        steps: None,
    };
    seen.read_templates(cx).await;
    seen.current = seen.read_current(cx).await;
    seen.make_sure(cx, known).await;
    Observed::Managed(Box::new(seen))
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
        if let Ok(cache) = cx.dynamic(&GroupKind::new(template.group(), kind)).await {
            self.contract = match cache.contract() {
                ContractVersion::V1Beta1 => Contract::V1Beta1,
                ContractVersion::V1Beta2 => Contract::V1Beta2,
            };
        }
    }

    async fn read_current(&self, cx: &Cx) -> Result<Current, String> {
        let namespace = self.namespace();
        let control_plane = self.follow(cx, &self.value, "/spec/controlPlaneRef").await?;
        let machines = match self.contract {
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

    /// Templates that hold more than is wanted: finds out whether this controller put it there.
    async fn make_sure(&mut self, cx: &Cx, known: &KnownFields) {
        let Some(steps) = super::plan::first_steps(self) else {
            return;
        };
        if steps.unsure.is_empty() {
            self.steps = Some(steps);
            return;
        }
        let unsure = steps.unsure;
        let Ok(current) = &mut self.current else { return };
        let mut templates: Vec<&mut Arc<Value>> = Vec::new();
        for set in current.machine_deployments.values_mut() {
            templates.extend(&mut set.bootstrap);
            templates.extend(&mut set.infrastructure);
        }
        templates.extend(&mut current.control_plane_machines);
        for template in templates {
            let target = Target::of(template);
            if unsure.contains(&target)
                && let Some(fields) = known.of(cx, &target, text(template, "/metadata/resourceVersion")).await
            {
                Arc::make_mut(template)["metadata"]["managedFields"] = fields;
            }
        }
    }
}

impl KnownFields {
    /// The managed fields of an object: remembered for this version of it, else asked for.
    async fn of(&self, cx: &Cx, target: &Target, version: &str) -> Option<Value> {
        if let Some(known) = self.0.lock().get(&target.uid).filter(|k| k.version == version) {
            return Some(known.fields.clone());
        }
        let gvk = gvk_from(&target.api_version, &target.kind);
        let key = ObjectKey::new(target.namespace.as_str(), target.name.as_str());
        let mut live = cx.read_value(&gvk, &key).await.into_found()?;
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
        Some(fields)
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
