//! A kind and a controller for tests: a Gadget wants `spec.size` ConfigMaps with random names, and reports how many it has.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::kind::Conditioned as _;
use windlass_api::labels::CLUSTER_NAME;
use windlass_conditions::{Status, condition, set};
use windlass_controller_runtime::{
    Controller, Cx, Decision, Moment, NoQuestion, ObjectKey, ReconcileError, Watch, owner,
};

pub(crate) const GROUP: &str = "test.windlass.io";
/// The annotation with the cluster of a Gadget without the label.
pub(crate) const OF_CLUSTER: &str = "test.windlass.io/cluster";
pub(crate) const FINALIZER: &str = "test.windlass.io/gadget";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gadget {
    #[serde(default = "version")]
    pub(crate) api_version: String,
    #[serde(default = "kind")]
    pub(crate) kind: String,
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: GadgetSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<GadgetStatus>,
}

fn version() -> String {
    format!("{GROUP}/v1")
}

fn kind() -> String {
    "Gadget".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GadgetSpec {
    #[serde(default)]
    pub(crate) size: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GadgetStatus {
    #[serde(default)]
    pub(crate) made: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(default, rename = "observedGeneration", skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

windlass_api::codec!(Gadget);

impl kube::Resource for Gadget {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Gadget".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "gadgets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

pub(crate) fn gadget(name: &str, size: usize) -> Gadget {
    Gadget {
        api_version: version(),
        kind: kind(),
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            labels: Some([("cluster.x-k8s.io/cluster-name".to_owned(), "c1".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: GadgetSpec { size, color: None },
        status: None,
    }
}

pub(crate) fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}, "defaulted": {"type": "string", "default": "x"}}},
            "status": {"type": "object", "properties": {
                "made": {"type": "integer"},
                "note": {"type": "string"},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["type", "status"], "properties": {
                        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"}, "message": {"type": "string"},
                        "lastTransitionTime": {"type": "string", "format": "date-time"}, "observedGeneration": {"type": "integer", "format": "int64"},
                    }},
                },
            }},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{GROUP}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    })
}

/// The counters and switches of a test.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    pub(crate) observed: AtomicUsize,
    pub(crate) planned: AtomicUsize,
    pub(crate) panic_once: AtomicBool,
    pub(crate) read_undeclared: AtomicBool,
    pub(crate) secrets_seen: AtomicUsize,
    /// Each status differs from the one before.
    pub(crate) restless: AtomicBool,
}

pub(crate) struct GadgetController(pub(crate) Arc<Probe>);

pub(crate) struct Observed {
    gadget: Arc<Gadget>,
    have: Vec<Arc<ConfigMap>>,
    new_names: Vec<String>,
}

pub(crate) struct Plan {
    create: Vec<ConfigMap>,
    delete: Vec<Arc<ConfigMap>>,
    release: bool,
}

windlass_api::conditioned!(Gadget);

impl windlass_controller_runtime::Plan for Plan {}

impl Controller for GadgetController {
    type Kind = Gadget;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Result<(), ReconcileError>;

    const NAME: &'static str = "gadget";
    const MANAGER: &'static str = "gadget";
    const STATUS_MANAGER: &'static str = "gadget-status";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    fn cluster_of(gadget: &Gadget) -> Option<ObjectKey> {
        let meta = &gadget.metadata;
        let annotation = meta.annotations.as_ref().and_then(|all| all.get(OF_CLUSTER));
        let label = meta.labels.as_ref().and_then(|all| all.get(CLUSTER_NAME));
        Some(ObjectKey::new("default", annotation.or(label)?.as_str()))
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::owned::<ConfigMap>()]
    }

    async fn observe(&self, cx: &Cx, object: Arc<Gadget>) -> Observed {
        self.0.observed.fetch_add(1, Ordering::SeqCst);
        assert!(!self.0.panic_once.swap(false, Ordering::SeqCst), "asked to panic");
        if self.0.read_undeclared.load(Ordering::SeqCst) {
            let secrets = cx.cache::<k8s_openapi::api::core::v1::Secret>();
            self.0
                .secrets_seen
                .store(secrets.list("default").len(), Ordering::SeqCst);
        }
        let uid = object.metadata.uid.clone().unwrap_or_default();
        Observed {
            have: cx.cache::<ConfigMap>().by_owner(&uid),
            new_names: (0..object.spec.size).map(|_| cx.names().name("gadget-")).collect(),
            gadget: object,
        }
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        self.0.planned.fetch_add(1, Ordering::SeqCst);
        let deleting = seen.gadget.metadata.deletion_timestamp.is_some();
        let want = if deleting { 0 } else { seen.gadget.spec.size };
        let missing = want.saturating_sub(seen.have.len());
        let create = seen.new_names.iter().take(missing).map(|name| ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: seen.gadget.metadata.namespace.clone(),
                owner_references: Some(vec![owner::controller_ref(&*seen.gadget)]),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        });
        Plan {
            create: create.collect(),
            delete: seen.have.iter().skip(want).cloned().collect(),
            release: deleting && seen.have.is_empty(),
        }
        .into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Self::Done {
        for object in &plan.create {
            cx.writer().create(Self::MANAGER, object).await?;
        }
        for object in &plan.delete {
            cx.writer().delete(&**object).await?;
        }
        if plan.release {
            cx.writer()
                .remove_finalizer(Self::MANAGER, &*seen.gadget, FINALIZER)
                .await?;
        }
        Ok(())
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Self::Done, now: &Moment) -> Option<Value> {
        if plan.release && done.is_ok() {
            return None;
        }
        let made = seen.have.len();
        let ready = Status::from(made == seen.gadget.spec.size);
        let mut conditions = seen.gadget.conditions().to_vec();
        conditions.retain(|c| c.type_ == "Ready");
        set(
            &mut conditions,
            condition(
                "Ready",
                ready,
                "Counted",
                "",
                now.now(),
                seen.gadget.metadata.generation,
            ),
        );
        let restless = self.0.restless.load(Ordering::SeqCst);
        let note = restless.then(|| self.0.planned.load(Ordering::SeqCst).to_string());
        let generation = seen.gadget.metadata.generation;
        Some(json!({"made": made, "note": note, "observedGeneration": generation, "conditions": conditions}))
    }
}
