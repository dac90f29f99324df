//! Clusters on infrastructure that somebody else manages, and that somebody.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::core::Cluster;
use windlass_meta::ObjectKey;

use crate::cluster::ClusterOf;
use crate::env::Env;
use crate::objects::Objects;

/// The example of a cluster whose infrastructure somebody else manages, without a class.
const EXAMPLE: &str = include_str!("../../../../examples/externally-managed/cluster.yaml");
/// The Role of the example's external system, and its binding to the user that is called like its field manager.
pub const EXTERNAL_ROLE: &str = include_str!("../../../../examples/externally-managed/role.yaml");
/// What it is called there, alone or before a dash.
const NAME: &str = "external";

/// A Cluster that is written by hand, object by object, whose DevCluster somebody else manages unless it is made to be managed.
#[derive(Clone, Debug)]
pub struct ByHand {
    of: ClusterOf,
    managed_by: Option<String>,
}

impl ByHand {
    /// A cluster at v1.35.0 with so many control plane machines and workers. Its objects are called `NAME` (Cluster, DevCluster),
    /// `NAME-control-plane` and `NAME-workers`.
    pub fn new(name: &str, control_plane: usize, workers: usize) -> Self {
        Self {
            of: ClusterOf::new(name, control_plane, workers),
            managed_by: Some("terraform".to_owned()),
        }
    }

    /// The same cluster with another value of the annotation.
    #[must_use]
    pub fn managed_by(mut self, value: &str) -> Self {
        self.managed_by = Some(value.to_owned());
        self
    }

    /// The same cluster without the annotation.
    #[must_use]
    pub fn managed(mut self) -> Self {
        self.managed_by = None;
        self
    }

    /// The same cluster with other workers.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.of.workers = workers;
        self
    }

    /// The same cluster with another number of control plane machines.
    #[must_use]
    pub fn control_plane(mut self, control_plane: usize) -> Self {
        self.of.control_plane = control_plane;
        self
    }

    /// The same cluster at another version.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.of.version);
        self
    }

    /// What to find when it is there.
    pub fn shape(&self) -> &ClusterOf {
        &self.of
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.of.name
    }

    /// Its key.
    pub fn key(&self) -> ObjectKey {
        self.of.key()
    }

    /// All its objects: the Cluster, its DevCluster, the control plane, the MachineDeployment, and the templates.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE).expect("the example is valid");
        for object in &mut objects {
            rename(object, &self.of.name);
            match object["kind"].as_str().unwrap_or_default() {
                "DevCluster" => object["metadata"]["annotations"] = self.annotations(),
                "KubeadmControlPlane" => {
                    object["spec"]["replicas"] = json!(self.of.control_plane);
                    object["spec"]["version"] = json!(self.of.version);
                }
                "MachineDeployment" => {
                    object["spec"]["replicas"] = json!(self.of.workers);
                    object["spec"]["template"]["spec"]["version"] = json!(self.of.version);
                }
                _ => {}
            }
        }
        objects
    }

    fn annotations(&self) -> Value {
        match &self.managed_by {
            Some(by) => json!({ (MANAGED_BY): by }),
            None => json!({}),
        }
    }

    /// The first of its objects of a kind.
    pub fn object(&self, kind: &str) -> Value {
        let found = self.objects().into_iter().find(|object| object["kind"] == kind);
        found.unwrap_or_else(|| panic!("the example has no {kind}"))
    }

    /// Applies everything but the DevCluster, which is its external system's.
    pub async fn apply_rest(&self, objects: &Objects) {
        for object in self.objects().iter().filter(|object| object["kind"] != "DevCluster") {
            objects.apply(object).await;
        }
    }

    /// Applies everything.
    pub async fn apply(&self, objects: &Objects) {
        for object in self.objects() {
            objects.apply(&object).await;
        }
    }

    /// Waits until it is as asked for: Available, nothing under way, all its Machines Running at its version.
    pub async fn wait_running(&self, objects: &Objects) -> Cluster {
        self.of.wait_running(objects).await
    }
}

/// Calls everything in an object that has the example's name by another.
fn rename(value: &mut Value, name: &str) {
    match value {
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix(NAME)
                && (rest.is_empty() || rest.starts_with('-'))
            {
                *text = format!("{name}{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, name)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, name)),
        _ => {}
    }
}

/// Whoever manages the infrastructure of a cluster: a plain client that writes specification and status of its DevCluster.
#[derive(Clone, Debug)]
pub struct ExternalSystem {
    objects: Objects,
}

impl ExternalSystem {
    /// The field manager of what it writes.
    pub const MANAGER: &'static str = "terraform";

    /// One that comes to the server like this.
    pub fn new(objects: &Objects) -> Self {
        Self {
            objects: objects.clone(),
        }
    }

    /// One that may do what the example's Role lets it do, and no more. So it creates no DevCluster.
    pub async fn with_role(env: &Env) -> Self {
        env.apply_yaml(EXTERNAL_ROLE).await;
        Self::new(&env.as_user(Self::MANAGER, &[]))
    }

    /// Its way to the server.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Creates the DevCluster of a cluster, or applies it again.
    pub async fn create(&self, cluster: &ByHand) {
        let object = cluster.object("DevCluster");
        let parameters = PatchParams::apply(Self::MANAGER).force();
        let api = self.objects.dynamic("DevCluster");
        let sent = api.patch(cluster.name(), &parameters, &Patch::Apply(&object)).await;
        sent.unwrap_or_else(|error| panic!("cannot create {object}: {error}"));
    }

    fn parameters() -> PatchParams {
        PatchParams {
            field_manager: Some(Self::MANAGER.to_owned()),
            ..PatchParams::default()
        }
    }

    /// Changes a DevCluster by a merge patch.
    pub async fn merge(&self, name: &str, patch: &Value) {
        let api = self.objects.dynamic("DevCluster");
        let sent = api.patch(name, &Self::parameters(), &Patch::Merge(patch)).await;
        sent.unwrap_or_else(|error| panic!("cannot change DevCluster {name}: {error}"));
    }

    /// Changes the status of a DevCluster by a merge patch.
    pub async fn merge_status(&self, name: &str, status: &Value) {
        let api = self.objects.dynamic("DevCluster");
        let patch = json!({ "status": status });
        let sent = api.patch_status(name, &Self::parameters(), &Patch::Merge(&patch)).await;
        sent.unwrap_or_else(|error| panic!("cannot change the status of DevCluster {name}: {error}"));
    }

    /// Says where the control plane is.
    pub async fn set_endpoint(&self, name: &str, host: &str, port: u16) {
        let endpoint = json!({ "host": host, "port": port });
        self.merge(name, &json!({ "spec": { "controlPlaneEndpoint": endpoint } }))
            .await;
    }

    /// Says that the infrastructure is there.
    pub async fn set_provisioned(&self, name: &str) {
        self.merge_status(name, &json!({ "initialization": { "provisioned": true } }))
            .await;
    }

    /// Both: the endpoint, then that the infrastructure is there.
    pub async fn provision(&self, name: &str, host: &str, port: u16) {
        self.set_endpoint(name, host, port).await;
        self.set_provisioned(name).await;
    }

    /// Takes all finalizers away.
    pub async fn release(&self, name: &str) {
        self.merge(name, &json!({ "metadata": { "finalizers": null } })).await;
    }
}

/// A port of the loopback interface that stays this test's own, and on which nobody listens.
pub fn reserved_port() -> u16 {
    windlass_envtest::reserved_port().expect("there is a free port")
}
