//! An API server with the kinds of Cluster API and of a made-up vSphere provider, and the topology controllers on it.

use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_controller_runtime::{Cx, Runtime};
use windlass_manager::registry::controllers::{CONTROLLERS, Ports};
use windlass_manager::registry::kinds::KINDS;
use windlass_runtime_client::{Callable, Extensions};
use windlass_testkit::{Server, keys};

/// The founding proposal's class and Cluster in the v1beta2 shape, and templates for it.
pub(crate) const VSPHERE: &str = include_str!("../../../topology/testdata/vsphere.yaml");

/// The vSphere kinds.
pub(crate) const DEFINITIONS: &str = include_str!("founding/definitions.yaml");

/// Nothing that is waited for may take longer.
const PATIENCE: Duration = Duration::from_mins(3);
/// Longer than a write of words is held back, which is three seconds.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);
/// How often is looked whether it is there.
const LOOK: Duration = Duration::from_millis(10);

/// The kinds of admission webhooks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook {
    Mutating,
    Validating,
}

pub(crate) struct Env {
    pub(crate) server: Server,
    pub(crate) client: kube::Client,
    kit: Runtime,
}

impl Env {
    /// With the topology controllers alone.
    pub(crate) async fn start() -> Self {
        let env = Self::prepare().await;
        env.kit.start(controllers(&env.kit.cx()));
        env
    }

    /// With the topology controllers, and with these definitions of vSphere kinds.
    pub(crate) async fn start_with(vsphere: Vec<Value>) -> Self {
        let server = Server::with_definitions_and(vsphere).await;
        let env = Self::prepare_on(server, None::<fn(&Server) -> kube::Client>).await;
        env.kit.start(controllers(&env.kit.cx()));
        env
    }

    /// [`Self::start`] where objects can be stored that admission refuses.
    pub(crate) async fn start_unadmitted() -> Self {
        Self::start_unadmitted_with(documents(DEFINITIONS)).await
    }

    /// The same with these definitions of vSphere kinds.
    pub(crate) async fn start_unadmitted_with(vsphere: Vec<Value>) -> Self {
        Self::start_unadmitted_behind(vsphere, |server| server.client("test")).await
    }

    /// The same behind a client of the test's.
    pub(crate) async fn start_unadmitted_behind(
        vsphere: Vec<Value>,
        client: impl FnOnce(&Server) -> kube::Client,
    ) -> Self {
        let server = Server::without_admission_and(vsphere).await;
        let env = Self::prepare_on(server, Some(client)).await;
        env.kit.start(controllers(&env.kit.cx()));
        env
    }

    /// With all controllers that there are.
    pub(crate) async fn start_everything() -> Self {
        let env = Self::prepare().await;
        let ports = Ports::new(&env.kit.cx(), keys());
        env.kit
            .start(CONTROLLERS.iter().map(|one| (one.entry)(&ports)).collect());
        env
    }

    /// With the topology controllers behind a client of the test's.
    pub(crate) async fn start_behind(client: impl FnOnce(&Server) -> kube::Client) -> Self {
        let env = Self::prepare_with(Some(client)).await;
        env.kit.start(controllers(&env.kit.cx()));
        env
    }

    async fn prepare() -> Self {
        Self::prepare_with(None::<fn(&Server) -> kube::Client>).await
    }

    async fn prepare_with(behind: Option<impl FnOnce(&Server) -> kube::Client>) -> Self {
        Self::prepare_on(Server::with_definitions_and(documents(DEFINITIONS)).await, behind).await
    }

    async fn prepare_on(server: Server, behind: Option<impl FnOnce(&Server) -> kube::Client>) -> Self {
        let client = server.client("test");
        let behind = behind.map_or_else(|| client.clone(), |behind| behind(&server));
        let kit = Runtime::builder(behind).build();
        let env = Self { server, client, kit };
        env.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bar"}}))
            .await;
        env
    }

    /// Class, templates and Cluster of the proposal.
    pub(crate) async fn apply_example(&self) {
        for object in documents(VSPHERE) {
            self.apply(object).await;
        }
        self.apply(cluster()).await;
        self.reconciled("ReconcileSucceeded").await;
    }

    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version, plural) = match kind {
            "Namespace" => ("", "v1", "namespaces".to_owned()),
            "Secret" => ("", "v1", "secrets".to_owned()),
            "Event" => ("", "v1", "events".to_owned()),
            "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1", "customresourcedefinitions".to_owned()),
            kind if kind.ends_with("WebhookConfiguration") => (
                "admissionregistration.k8s.io",
                "v1",
                format!("{}s", kind.to_lowercase()),
            ),
            kind if kind.starts_with("VSphere") || kind.starts_with("AWS") => (
                "infrastructure.cluster.x-k8s.io",
                "v1beta1",
                format!("{}s", kind.to_lowercase()),
            ),
            kind => {
                let entry = KINDS.iter().find(|entry| entry.kind == kind).unwrap();
                (entry.group, entry.version, entry.plural.to_owned())
            }
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind.to_owned(),
            plural,
        };
        if matches!(kind, "Namespace" | "CustomResourceDefinition") || kind.ends_with("WebhookConfiguration") {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), "bar", &resource)
        }
    }

    /// Has the server call a webhook about operations on objects of these groups and resources.
    pub(crate) async fn configure(
        &self,
        hook: Hook,
        client_config: Value,
        operations: &[&str],
        resources: &[(&str, &str)],
    ) {
        let rule = |(group, resource): &(&str, &str)| json!({"operations": operations, "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]});
        let rules: Vec<_> = resources.iter().map(rule).collect();
        let object = json!({"metadata": {"name": "provider"}, "webhooks": [{
            "name": "provider.example.com", "clientConfig": client_config, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 30, "rules": rules,
        }]});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let api = self.api(&format!("{hook:?}WebhookConfiguration"));
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) async fn apply(&self, object: Value) {
        let api = self.api(object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let params = PatchParams::apply("user").force();
        api.patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Creates as a client that wants unknown fields refused; gives back what the server said against it.
    pub(crate) async fn refused(&self, object: &Value) -> String {
        self.create(object, "Strict").await.unwrap_err().to_string()
    }

    /// Creates as a client that says what becomes of unknown fields. An apply would be refused whatever it says.
    pub(crate) async fn create(&self, object: &Value, validation: &str) -> Result<Value, kube::Error> {
        let api = self.api(object["kind"].as_str().unwrap());
        let path = format!("{}?fieldValidation={validation}", api.resource_url());
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        self.client.request(request).await
    }

    pub(crate) async fn merge(&self, kind: &str, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.api(kind)
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn status(&self, kind: &str, name: &str, status: Value) {
        let patch = json!({"status": status});
        let params = PatchParams::default();
        self.api(kind)
            .patch_status(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default()).await.unwrap();
        list.items
            .into_iter()
            .map(|o| serde_json::to_value(o).unwrap())
            .collect()
    }

    /// Those that the controllers made.
    pub(crate) async fn generated(&self, kind: &str) -> Vec<Value> {
        let owned = |o: &Value| o["metadata"]["labels"].get("topology.cluster.x-k8s.io/owned").is_some();
        self.list(kind).await.into_iter().filter(owned).collect()
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await.unwrap();
        found.map(|o| serde_json::to_value(o).unwrap())
    }

    /// Waits until the Cluster's condition has this reason and says what it says about the present generation.
    pub(crate) async fn reconciled(&self, reason: &str) -> Value {
        self.wait(&format!("TopologyReconciled with reason {reason}"), async || {
            let cluster = self.get("Cluster", "foo").await?;
            let condition = condition(&cluster, "TopologyReconciled")?;
            let now = condition["observedGeneration"] == cluster["metadata"]["generation"];
            (now && condition["reason"] == reason).then_some(cluster)
        })
        .await
    }

    pub(crate) async fn wait<T>(&self, what: &str, mut done: impl AsyncFnMut() -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = done().await {
                    break found;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        if let Ok(found) = tokio::time::timeout(PATIENCE, waiting).await {
            return found;
        }
        let cluster = self.get("Cluster", "foo").await;
        panic!(
            "waited in vain for {what}; the Cluster is {:#}",
            cluster.unwrap_or_default()
        );
    }

    /// Waits until an object has all of these fields, and none of those that are null.
    pub(crate) async fn becomes(&self, kind: &str, name: &str, expected: Value) -> Value {
        let mut last = None;
        let waiting = async {
            loop {
                last = self.get(kind, name).await;
                if let Some(found) = last.as_ref().filter(|found| differs(found, &expected).is_none()) {
                    break found.clone();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        if let Ok(found) = tokio::time::timeout(PATIENCE, waiting).await {
            return found;
        }
        let cluster = self.get("Cluster", "foo").await.unwrap_or_default();
        let told = condition(&cluster, "TopologyReconciled");
        let differs = last.and_then(|found| differs(&found, &expected));
        panic!("{kind} {name}: {differs:?}; {told:?}");
    }

    /// The objects that were made for an entry of the topology: its worker set, or one of its templates.
    pub(crate) async fn of_entry(&self, kind: &str, entry: &str) -> Vec<Value> {
        let is_of = |object: &Value| {
            let labels = &object["metadata"]["labels"];
            ["deployment-name", "pool-name"]
                .iter()
                .any(|label| labels[format!("topology.cluster.x-k8s.io/{label}")] == entry)
        };
        self.generated(kind).await.into_iter().filter(is_of).collect()
    }

    /// The only worker set of an entry.
    pub(crate) async fn deployment(&self, entry: &str) -> Value {
        let mut all = self.of_entry("MachineDeployment", entry).await;
        assert_eq!(all.len(), 1, "{entry}");
        all.remove(0)
    }

    /// The only worker set of a Cluster.
    pub(crate) async fn deployment_of(&self, cluster: &str) -> Value {
        let mut all = self.generated("MachineDeployment").await;
        all.retain(|one| one["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster);
        assert_eq!(all.len(), 1, "{cluster}");
        all.remove(0)
    }

    /// The control plane reports that it is done with a version.
    pub(crate) async fn control_plane_runs(&self, version: &str) {
        let control_plane = self.generated("KubeadmControlPlane").await.remove(0);
        let replicas = &control_plane["spec"]["replicas"];
        let status = json!({
            "versions": [{"version": version, "replicas": replicas}], "replicas": replicas, "upToDateReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        });
        self.status("KubeadmControlPlane", name(&control_plane), status).await;
    }

    /// Changes the Cluster's topology.
    pub(crate) async fn topology(&self, change: impl FnOnce(&mut Value)) {
        let cluster = self.get("Cluster", "foo").await.unwrap();
        let mut topology = cluster["spec"]["topology"].clone();
        change(&mut topology);
        self.merge("Cluster", "foo", json!({"spec": {"topology": topology}}))
            .await;
    }

    /// Another process takes over.
    pub(crate) async fn restart(&mut self) {
        self.restart_after(async |_| ()).await;
    }

    /// Another process takes over, and something happens before.
    pub(crate) async fn restart_after(&mut self, meanwhile: impl AsyncFnOnce(&Self)) {
        self.kit.shutdown().await;
        meanwhile(self).await;
        self.kit = Runtime::builder(self.client.clone()).build();
        self.kit.start(controllers(&self.kit.cx()));
    }

    /// Waits until nothing is written for longer than a write of words is held back.
    pub(crate) async fn quiet(&self) {
        let mut writes = None;
        self.wait("quiet", async || {
            let before = writes.replace(self.server.counters().writes());
            if before != writes {
                tokio::time::sleep(SILENCE).await;
            }
            (before == writes).then_some(())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        self.kit.shutdown().await;
        self.server.stop().await;
    }
}

pub(crate) fn condition(object: &Value, type_: &str) -> Option<Value> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|c| c["type"] == type_).cloned()
}

/// Where a value differs from these fields, of which those that are null are not there.
pub(crate) fn differs(value: &Value, expected: &Value) -> Option<String> {
    let inner =
        |part: String, value: &Value, expected: &Value| differs(value, expected).map(|rest| format!(".{part}{rest}"));
    match expected {
        Value::Object(fields) if value.is_object() => {
            let mut fields = fields.iter();
            fields.find_map(|(name, field)| inner(name.clone(), &value[name], field))
        }
        Value::Array(items) if value.as_array().is_some_and(|have| have.len() == items.len()) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(n, item)| inner(n.to_string(), &value[n], item))
        }
        expected => (value != expected).then(|| format!(" is {value} and not {expected}")),
    }
}

/// Stops the test unless a value has all of these fields, and none of those that are null.
#[track_caller]
pub(crate) fn assert_has(value: &Value, expected: &Value) {
    assert_eq!(differs(value, expected), None, "{value:#}");
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The five random characters at the end of a name, which are those that Kubernetes draws from.
pub(crate) fn is_random(suffix: &str) -> bool {
    suffix.len() == 5 && suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
}

/// Templates and class of the example, with a change of the class.
pub(crate) fn example(change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let mut all = documents(VSPHERE);
    let class = all.iter_mut().find(|object| object["kind"] == "ClusterClass").unwrap();
    change(class);
    all
}

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// The Cluster of the founding proposal, at the version that it names.
pub(crate) fn founding_cluster() -> Value {
    documents(include_str!("founding/cluster.yaml")).remove(0)
}

/// The same at a version that can be upgraded.
pub(crate) fn cluster() -> Value {
    let mut cluster = founding_cluster();
    cluster["spec"]["topology"]["version"] = json!("v1.31.1");
    cluster
}

/// All controllers of topologies.
fn controllers(cx: &Cx) -> Vec<windlass_controller_runtime::ControllerEntry> {
    vec![
        windlass_core_topology::cluster_topologies(Extensions::new(cx, None, Callable::default())),
        windlass_core_topology::cluster_classes(Extensions::new(cx, None, Callable::default())),
        windlass_core_topology::class_rollouts(),
        windlass_core_topology::machine_deployment_templates(),
        windlass_core_topology::machine_set_templates(),
    ]
}
