//! Reads everything a topology is computed from. The only reader.
//!
//! Whether an intent would change a template is asked of the API server by dry runs, for the templates in question.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels;
use windlass_contract::ContractVersion;
use windlass_controller_runtime::{Cx, GroupKind, ObjectKey, RuntimeError, Seen, Stored};
use windlass_topology::blueprint::{Contract, references};
use windlass_topology::current::{Current, WorkerSet, by_topology_name};
use windlass_topology::model::{ClassSpec, TemplateRef, read, text};
use windlass_topology::trial::{Trial, Verdict};

use super::dry_run;
use super::memory::Memory;

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
    /// The trials that gave no verdict, by place: why. The verdicts are in `current`.
    pub(super) failed_trials: BTreeMap<String, String>,
}

/// The question whether intents would change the specs of these templates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(super) trials: Vec<Trial>,
}

pub(super) async fn observe(cx: &Cx, cluster: Arc<Cluster>, memory: &Memory) -> Observed {
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
    let mut seen = Managed {
        cluster,
        value,
        class_key,
        class,
        templates: BTreeMap::new(),
        contract: Ok(Contract::default()),
        current: Ok(Current::default()),
        failed_trials: BTreeMap::new(),
    };
    seen.read_templates(cx).await;
    seen.current = seen.read_current(cx).await;
    if let Ok(current) = &mut seen.current {
        current.rotations = memory.rotations(seen.cluster.metadata.uid.as_deref().unwrap_or_default());
    }
    Observed::Managed(Box::new(seen))
}

/// Tries the intents.
pub(super) async fn answer(cx: &Cx, mut seen: Observed, question: Question, memory: &Memory) -> Observed {
    if let Observed::Managed(managed) = &mut seen {
        for trial in question.trials {
            let verdict = dry_run::verdict(cx, &trial, memory).await;
            managed.answered(trial.place, verdict);
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

    /// Adds the result of a trial.
    pub(super) fn answered(&mut self, place: String, verdict: Result<Verdict, String>) {
        match (&mut self.current, verdict) {
            (Ok(current), Ok(verdict)) => drop(current.verdicts.insert(place, verdict)),
            (_, Err(why)) => drop(self.failed_trials.insert(place, why)),
            (Err(_), Ok(_)) => {}
        }
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
