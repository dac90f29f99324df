//! A managed Cluster behind webhooks, and the oracle: the test's own dry runs.

use std::sync::{Arc, Mutex};

use kube::api::{Patch, PatchParams};
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use windlass_fake_providers::{HookServer, Say};

use super::subject::{BOOTSTRAP, Habits, INFRASTRUCTURE, Subject};
use crate::env::{DEFINITIONS, Env, Hook, VSPHERE, cluster, documents};

const OWNED: &str = "topology.cluster.x-k8s.io/owned";
const ENTRY: &str = "topology.cluster.x-k8s.io/deployment-name";
/// Upstream's annotation on dry runs, at which providers leave out their checks of immutable fields.
const DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
/// The label that says from which round a template is.
const MARK: &str = "round";
/// The worker set whose templates change.
const WORKERS: &str = "microsoft-1";

pub(super) struct World {
    env: Env,
    pub(super) habits: Habits,
    refused: Arc<Mutex<Vec<Value>>>,
    hooks: HookServer,
}

/// The vSphere kinds, with all sorts of lists, a map and a default in the machine template.
fn definitions() -> Vec<Value> {
    let mut all = documents(DEFINITIONS);
    for definition in &mut all {
        if definition["spec"]["names"]["kind"] != INFRASTRUCTURE.kind {
            continue;
        }
        let fields =
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties";
        let fields = definition.pointer_mut(fields).unwrap();
        let texts = json!({"type": "array", "items": {"type": "string"}});
        fields["tags"] = texts.clone();
        fields["zones"] = texts;
        fields["zones"]["x-kubernetes-list-type"] = json!("set");
        fields["disks"] = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "sizeGiB": {"type": "integer"}, "format": {"type": "string"},
            }},
        });
        fields["extra"] = json!({"type": "object", "additionalProperties": {"type": "string"}});
        fields["folder"] = json!({"type": "string", "default": "vm"});
    }
    all
}

/// Rewrites templates at `/change`, and refuses at `/keep` to change the spec of those that a topology has made.
fn answer(habits: Habits, refused: &Mutex<Vec<Value>>, path: &str, request: &Value) -> Say {
    let object = &request["object"];
    let owned = object["metadata"]["labels"].get(OWNED).is_some();
    if path == "/keep" {
        let checked = request["dryRun"] != true || object["metadata"]["annotations"].get(DRY_RUN).is_none();
        if owned && checked && request["operation"] == "UPDATE" && object["spec"] != request["oldObject"]["spec"] {
            refused.lock().unwrap().push(request.clone());
            return Say::no("spec is immutable");
        }
        return Say::yes();
    }
    if !owned && !habits.everywhere {
        return Say::yes();
    }
    let kind = request["kind"]["kind"].as_str().unwrap_or_default();
    let made = habits.make(kind, &object["spec"]["template"]["spec"]);
    Say::patch(json!([{"op": "replace", "path": "/spec/template/spec", "value": made}]))
}

/// Configurations of webhooks for both kinds of templates.
async fn configure(env: &Env, hooks: &HookServer) {
    let resources = [
        ("infrastructure.cluster.x-k8s.io", "vspheremachinetemplates"),
        ("bootstrap.cluster.x-k8s.io", "kubeadmconfigtemplates"),
    ];
    let operations = ["CREATE", "UPDATE"];
    env.configure(Hook::Mutating, hooks.config("/change"), &operations, &resources)
        .await;
    env.configure(Hook::Validating, hooks.config("/keep"), &operations, &resources)
        .await;
}

/// An apply that is not stored.
fn dry(manager: &str) -> PatchParams {
    PatchParams {
        dry_run: true,
        ..PatchParams::apply(manager).force()
    }
}

impl World {
    pub(super) async fn start(random: &mut SmallRng) -> Self {
        let habits = Habits::any(random);
        let refused = Arc::new(Mutex::new(Vec::new()));
        let of_hooks = refused.clone();
        let hooks = HookServer::start(move |path, request| answer(habits, &of_hooks, path, request)).await;
        let env = Env::start_unadmitted_with(definitions()).await;
        configure(&env, &hooks).await;
        let world = Self {
            env,
            habits,
            refused,
            hooks,
        };
        world.asked().await;
        for object in documents(VSPHERE) {
            world.env.apply(object).await;
        }
        world.env.apply(cluster()).await;
        world.env.reconciled("ReconcileSucceeded").await;
        world
    }

    /// Waits until the server asks the webhooks: it learns of their configuration by a watch.
    async fn asked(&self) {
        for subject in [INFRASTRUCTURE, BOOTSTRAP] {
            let mut object = original(subject);
            object["metadata"]["labels"] = json!({OWNED: ""});
            for path in ["/change", "/keep"] {
                self.env
                    .wait("the webhooks", async || {
                        let api = self.env.api(subject.kind);
                        let (params, patch) = (dry("user"), Patch::Apply(named(&object, "probe")));
                        api.patch("probe", &params, &patch).await.unwrap();
                        let asked = self.hooks.requests();
                        let kinds = asked.iter().map(|request| &request["kind"]["kind"]);
                        let mut all = self.hooks.paths().into_iter().zip(kinds);
                        all.any(|(asked, kind)| asked.starts_with(path) && kind == subject.kind)
                            .then_some(())
                    })
                    .await;
            }
        }
    }

    async fn deployments(&self) -> Vec<Value> {
        self.env.generated("MachineDeployment").await
    }

    async fn reference(&self, subject: Subject) -> Option<String> {
        let all = self.deployments().await;
        let ours = all.iter().find(|one| one["metadata"]["labels"][ENTRY] == WORKERS)?;
        Some(ours.pointer(subject.reference)?.as_str()?.to_owned())
    }

    /// The template that the worker set names.
    pub(super) async fn template_in_use(&self, subject: Subject) -> Value {
        let name = self.reference(subject).await.unwrap();
        self.env.get(subject.kind, &name).await.unwrap()
    }

    /// The template that the worker set names, once it is from this round.
    pub(super) async fn template_with_mark(&self, subject: Subject, mark: &str) -> Value {
        self.env
            .wait(&format!("a {} of round {mark}", subject.kind), async || {
                let name = self.reference(subject).await?;
                let found = self.env.get(subject.kind, &name).await?;
                (found["metadata"]["labels"][MARK] == mark).then_some(found)
            })
            .await
    }

    /// The references of all other worker sets and of the control plane.
    pub(super) async fn other_references(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for one in self.deployments().await {
            if one["metadata"]["labels"][ENTRY] != WORKERS {
                all.extend([INFRASTRUCTURE, BOOTSTRAP].map(|subject| one.pointer(subject.reference).cloned()));
            }
        }
        for one in self.env.generated("KubeadmControlPlane").await {
            let machines = "/spec/machineTemplate/spec/infrastructureRef/name";
            all.push(one.pointer(machines).cloned());
        }
        all.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// `spec.template.spec` of the class's template.
    pub(super) async fn class_spec(&self, subject: Subject) -> Value {
        let found = self.env.get(subject.kind, subject.template).await.unwrap();
        found["spec"]["template"]["spec"].clone()
    }

    /// The spec that the class's template will have.
    pub(super) async fn class_as_stored(&self, subject: Subject, spec: &Value) -> Value {
        let object = class_template(subject, spec);
        let api = self.env.api(subject.kind);
        let answer = api.patch(subject.template, &dry("user"), &Patch::Apply(&object)).await;
        serde_json::to_value(answer.unwrap()).unwrap()["spec"].clone()
    }

    pub(super) async fn change_class(&self, subject: Subject, spec: &Value, mark: &str) {
        let mut object = class_template(subject, spec);
        object["metadata"]["labels"] = json!({MARK: mark});
        self.env.apply(object).await;
    }

    /// The oracle: the spec of a template after a dry run in which the topology's field manager applies this spec.
    pub(super) async fn dry_run(&self, template: &Value, spec: &Value) -> Value {
        let from = &template["metadata"];
        let mut annotations = from["annotations"].clone();
        annotations[DRY_RUN] = "".into();
        let object = json!({
            "apiVersion": template["apiVersion"], "kind": template["kind"],
            "metadata": {
                "name": from["name"], "namespace": from["namespace"], "uid": from["uid"], "labels": from["labels"],
                "annotations": annotations, "ownerReferences": from["ownerReferences"],
            },
            "spec": spec,
        });
        let kind = template["kind"].as_str().unwrap_or_default();
        let name = from["name"].as_str().unwrap_or_default();
        let api = self.env.api(kind);
        let answer = api.patch(name, &dry("capi-topology"), &Patch::Apply(&object)).await;
        serde_json::to_value(answer.unwrap()).unwrap()["spec"].clone()
    }

    /// The requests that would have changed a template of Machines in place.
    pub(super) fn refused(&self) -> Vec<Value> {
        self.refused.lock().unwrap().clone()
    }

    pub(super) async fn stop(self) {
        self.env.stop().await;
    }
}

/// The template of the class as it is at first.
fn original(subject: Subject) -> Value {
    let mut all = documents(VSPHERE).into_iter();
    let found = all.find(|one| one["kind"] == subject.kind && one["metadata"]["name"] == subject.template);
    found.unwrap()
}

fn class_template(subject: Subject, spec: &Value) -> Value {
    let mut template = original(subject);
    template["spec"]["template"]["spec"] = spec.clone();
    template
}

fn named(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = name.into();
    object
}
