//! Clusters with externally managed infrastructure, and a simulated external system.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::core::Cluster;
use windlass_meta::ObjectKey;

use crate::cluster::ClusterOf;
use crate::env::Env;
use crate::objects::Objects;

/// The example of a cluster with externally managed infrastructure, without a class.
const EXAMPLE: &str = include_str!("../../../../examples/externally-managed/cluster.yaml");
/// The Role of the example's external system, and its binding to a user with the name of its field manager.
pub const EXTERNAL_ROLE: &str = include_str!("../../../../examples/externally-managed/role.yaml");
/// The name of the objects in the example, alone or before a dash.
const NAME: &str = "external";

/// A Cluster without a class, as separate objects. Its DevCluster is externally managed by default.
#[derive(Clone, Debug)]
pub struct ByHand {
    of: ClusterOf,
    managed_by: Option<String>,
}

impl ByHand {
    /// A cluster at v1.35.0 with this many control plane machines and workers. Its objects are named `NAME` (Cluster,
    /// DevCluster), `NAME-control-plane` and `NAME-workers`.
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

    /// The same cluster with another number of workers.
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

    /// The expected result.
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

    /// Applies everything but the DevCluster, which belongs to the external system.
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

    /// Waits until it is as desired: Available, no rollout in progress, all its Machines Running at its version.
    pub async fn wait_running(&self, objects: &Objects) -> Cluster {
        self.of.wait_running(objects).await
    }
}

/// Replaces the example's name in an object.
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

/// An external system that manages the infrastructure of a cluster: a client that writes spec and status of its DevCluster.
#[derive(Clone, Debug)]
pub struct ExternalSystem {
    objects: Objects,
}

impl ExternalSystem {
    /// The field manager of what it writes.
    pub const MANAGER: &'static str = "terraform";

    /// An external system with this access.
    pub fn new(objects: &Objects) -> Self {
        Self {
            objects: objects.clone(),
        }
    }

    /// An external system with only the permissions of the example's Role. So it cannot create a DevCluster.
    pub async fn with_role(env: &Env) -> Self {
        env.apply_yaml(EXTERNAL_ROLE).await;
        Self::new(&env.as_user(Self::MANAGER, &[]))
    }

    /// Its access to the server.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Applies the DevCluster of a cluster.
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

    /// Writes the control plane endpoint.
    pub async fn set_endpoint(&self, name: &str, host: &str, port: u16) {
        let endpoint = json!({ "host": host, "port": port });
        self.merge(name, &json!({ "spec": { "controlPlaneEndpoint": endpoint } }))
            .await;
    }

    /// Reports the infrastructure as provisioned.
    pub async fn set_provisioned(&self, name: &str) {
        self.merge_status(name, &json!({ "initialization": { "provisioned": true } }))
            .await;
    }

    /// Writes the endpoint, then reports the infrastructure as provisioned.
    pub async fn provision(&self, name: &str, host: &str, port: u16) {
        self.set_endpoint(name, host, port).await;
        self.set_provisioned(name).await;
    }

    /// Removes all finalizers.
    pub async fn release(&self, name: &str) {
        self.merge(name, &json!({ "metadata": { "finalizers": null } })).await;
    }
}

/// A port of the loopback interface that is reserved for this test, without a listener.
pub fn reserved_port() -> u16 {
    windlass_envtest::reserved_port().expect("there is a free port")
}
