//! A small world for tests: a class of the in-memory shape, a Cluster, and what applying a plan makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_meta::Moment;

use crate::blueprint::{Blueprint, Class, Contract};
use crate::current::{self, Current, WorkerSet};
use crate::desired::Input;
use crate::error::Error;
use crate::hooks::{Hooks, PlanAnswer};
use crate::model::text;
use crate::patches::external::Answered;
use crate::plan::{Action, Plan, plan};
use crate::trial::{Rotations, Verdict};
use crate::{keys, patches};

/// Reads YAML documents.
pub(crate) fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// Class and templates as the in-memory example has them.
pub(crate) const IN_MEMORY: &str = include_str!("../testdata/in-memory.yaml");

/// Objects by kind and name, and the Cluster.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) cluster: Value,
    pub(crate) class: Value,
    pub(crate) templates: Vec<Value>,
    pub(crate) objects: BTreeMap<(String, String), Value>,
    pub(crate) machine_versions: BTreeMap<String, Vec<String>>,
    pub(crate) contract: Contract,
    pub(crate) rotations: BTreeMap<String, Rotations>,
    pub(crate) hooks: Hooks,
    pub(crate) upgrade_plan: Option<PlanAnswer>,
    /// What an extension has answered last about the templates.
    pub(crate) patches: Option<Answered>,
    /// Stands for the extensions that patch templates.
    pub(crate) extensions: Vec<String>,
    /// The time.
    pub(crate) now: Timestamp,
    /// What the server makes of the spec of each object that is applied.
    pub(crate) webhook: fn(&mut Value),
}

impl World {
    pub(crate) fn new(documents: &str, cluster: Value) -> Self {
        let (classes, templates): (Vec<Value>, Vec<Value>) =
            yaml(documents).into_iter().partition(|o| o["kind"] == "ClusterClass");
        let mut class = classes.into_iter().next().unwrap();
        let variables: Vec<Value> = class
            .pointer("/spec/variables")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|v| {
                json!({"name": v["name"], "definitions": [
                    {"from": "inline", "required": v["required"], "schema": v["schema"]},
                ]})
            })
            .collect();
        class["status"] = json!({"variables": variables});
        Self {
            cluster,
            class,
            templates,
            objects: BTreeMap::new(),
            machine_versions: BTreeMap::new(),
            contract: Contract::V1Beta2,
            rotations: BTreeMap::new(),
            hooks: Hooks::default(),
            upgrade_plan: None,
            patches: None,
            extensions: Vec::new(),
            now: Timestamp::constant(1_800_000_000, 0),
            webhook: |_| {},
        }
    }

    pub(crate) fn in_memory() -> Self {
        Self::new(
            IN_MEMORY,
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": "demo000", "namespace": "default", "uid": "c-uid"},
                "spec": {"topology": {
                    "classRef": {"name": "in-memory"}, "version": "v1.35.0",
                    "controlPlane": {"replicas": 3},
                    "workers": {"machineDeployments": [
                        {"class": "default-worker", "name": "md-0", "replicas": 3},
                    ]},
                }},
            }),
        )
    }

    pub(crate) fn object(&self, kind: &str, name: &str) -> Option<Arc<Value>> {
        self.objects
            .get(&(kind.to_owned(), name.to_owned()))
            .cloned()
            .map(Arc::new)
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.objects
            .iter()
            .filter(|((k, _), _)| k == kind)
            .map(|(_, v)| v)
            .collect()
    }

    pub(crate) fn only(&self, kind: &str) -> &Value {
        let all = self.of_kind(kind);
        assert_eq!(all.len(), 1, "{kind}");
        all[0]
    }

    pub(crate) fn blueprint(&self) -> Result<Blueprint, Error> {
        Blueprint::new(&Arc::new(Class::read(&self.class)?), self.contract, |reference| {
            let found = self
                .templates
                .iter()
                .find(|t| t["kind"] == reference.kind.as_str() && t["metadata"]["name"] == reference.name.as_str());
            found
                .cloned()
                .map(Arc::new)
                .ok_or_else(|| format!("{} does not exist", reference.name))
        })
    }

    pub(crate) fn current(&self) -> Current {
        let by_ref = |pointer: &str| {
            let reference = self.cluster.pointer(pointer)?;
            self.object(text(reference, "/kind"), text(reference, "/name"))
        };
        let follow = |object: &Value, pointer: &str| {
            let reference = object.pointer(pointer)?;
            self.object(text(reference, "/kind"), text(reference, "/name"))
        };
        let control_plane = by_ref("/spec/controlPlaneRef");
        let machines = match self.contract {
            Contract::V1Beta1 => "/spec/machineTemplate/infrastructureRef",
            Contract::V1Beta2 => "/spec/machineTemplate/spec/infrastructureRef",
        };
        let sets = self.of_kind("MachineDeployment").into_iter().map(|md| WorkerSet {
            bootstrap: follow(md, "/spec/template/spec/bootstrap/configRef"),
            infrastructure: follow(md, "/spec/template/spec/infrastructureRef"),
            health_check: self.object("MachineHealthCheck", text(md, "/metadata/name")),
            machine_versions: self
                .machine_versions
                .get(text(md, "/metadata/name"))
                .cloned()
                .unwrap_or_default(),
            object: Arc::new(md.clone()),
        });
        let pools = self.of_kind("MachinePool").into_iter().map(|pool| WorkerSet {
            bootstrap: follow(pool, "/spec/template/spec/bootstrap/configRef"),
            infrastructure: follow(pool, "/spec/template/spec/infrastructureRef"),
            health_check: None,
            machine_versions: self
                .machine_versions
                .get(text(pool, "/metadata/name"))
                .cloned()
                .unwrap_or_default(),
            object: Arc::new(pool.clone()),
        });
        Current {
            machine_pools: current::by_topology_name(keys::POOL_NAME, pools).unwrap(),
            infrastructure_cluster: by_ref("/spec/infrastructureRef"),
            control_plane_machines: control_plane.as_deref().and_then(|cp| follow(cp, machines)),
            control_plane_health_check: control_plane
                .as_deref()
                .and_then(|cp| self.object("MachineHealthCheck", text(cp, "/metadata/name"))),
            machine_deployments: current::by_topology_name(keys::DEPLOYMENT_NAME, sets).unwrap(),
            control_plane,
            shim: None,
            verdicts: BTreeMap::new(),
            same: BTreeMap::new(),
            hooks: self.hooks.clone(),
            rotations: self.rotations.clone(),
            extensions: self.extensions.clone(),
        }
    }

    /// Plans, and answers the trials that the plan asks for.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        let mut current = self.current();
        let first = self.plan_with(&current)?;
        if first.trials.is_empty() {
            return Ok(first);
        }
        for trial in first.trials {
            let verdict = Verdict::of(&self.dry_run(&trial.have), &self.dry_run(&trial.want));
            current.verdicts.insert(trial.place, verdict);
        }
        let second = self.plan_with(&current)?;
        assert!(second.trials.is_empty(), "asks twice: {:?}", second.trials);
        Ok(second)
    }

    pub(crate) fn plan_with(&self, current: &Current) -> Result<Plan, Error> {
        let blueprint = self.blueprint()?;
        plan(Input {
            cluster: &self.cluster,
            blueprint: &blueprint,
            current,
            stores_defaults: true,
            upgrade_plan: self.upgrade_plan.as_ref(),
            patches: self.patches.as_ref(),
            now: &Moment::at(self.now),
        })
    }

    /// What an apply of an existing object gives: fields that were applied before and are not any more go, lists count as a whole.
    fn dry_run(&self, intent: &Value) -> Value {
        let (kind, name) = (text(intent, "/kind"), text(intent, "/metadata/name"));
        let mut object = self.objects[&(kind.to_owned(), name.to_owned())].clone();
        let owned = object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].clone();
        remove(&mut object["spec"], &owned, &intent["spec"]);
        windlass_smd::merge_patch(&mut object["spec"], &intent["spec"]);
        (self.webhook)(&mut object["spec"]);
        object
    }

    /// Takes every step, as an API server would keep it.
    pub(crate) fn take(&mut self, plan: &Plan) {
        for step in &plan.steps {
            if let Some(rotation) = &step.rotation {
                self.rotations
                    .entry(rotation.place.clone())
                    .or_default()
                    .add(rotation, self.now);
            }
            match &step.action {
                Action::PatchCluster(patch) => windlass_smd::merge_patch(&mut self.cluster, patch),
                Action::Delete(target) => {
                    self.objects.remove(&(target.kind.clone(), target.name.clone()));
                }
                Action::Apply(intent) => {
                    let key = (
                        text(intent, "/kind").to_owned(),
                        text(intent, "/metadata/name").to_owned(),
                    );
                    let uid = format!("uid-{}-{}", key.0, key.1);
                    let mut object = intent.clone();
                    (self.webhook)(&mut object["spec"]);
                    if let Some(have) = self.objects.get(&key) {
                        patches::set_or_remove(&mut object, &["status"], have.get("status").cloned());
                    }
                    object["metadata"]["uid"] = uid.into();
                    let owned = json!([{
                        "manager": keys::FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields(intent),
                    }]);
                    object["metadata"]["managedFields"] = owned;
                    self.objects.insert(key, object);
                }
            }
        }
    }

    /// Plans and takes steps until nothing changes; gives what was done, pass by pass.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        for _ in 0..10 {
            let plan = self.plan().unwrap();
            let changes: Vec<String> = plan.changes().map(|s| s.event.clone()).collect();
            if changes.is_empty() {
                return done;
            }
            done.extend(changes);
            self.take(&plan);
        }
        panic!("does not come to rest: {done:#?}");
    }

    /// The control plane runs its version with all replicas.
    pub(crate) fn control_plane_ready(&mut self) {
        for object in self
            .objects
            .values_mut()
            .filter(|o| text(o, "/kind").ends_with("ControlPlane"))
        {
            let replicas = object["spec"]["replicas"].clone();
            object["status"] = json!({
                "versions": [{"version": object["spec"]["version"], "replicas": replicas}],
                "replicas": replicas, "upToDateReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
            });
        }
    }
}

/// Removes the owned fields that an intent lacks.
fn remove(have: &mut Value, owned: &Value, want: &Value) {
    let (Some(fields), Some(owned)) = (have.as_object_mut(), owned.as_object()) else {
        return;
    };
    for (field, below) in owned {
        let field = field.trim_start_matches("f:");
        match want.get(field) {
            None => drop(fields.remove(field)),
            Some(want) => fields.get_mut(field).map_or((), |have| remove(have, below, want)),
        }
    }
}

/// The set of fields an apply owns, lists as a whole.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(k, _)| !matches!(k.as_str(), "apiVersion" | "kind" | "name" | "namespace" | "uid"))
            .map(|(k, v)| (format!("f:{k}"), fields(v)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => json!({}),
    }
}
