//! Plays the recorded steps against the embedded API server with all controllers, in process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_controller_runtime::{Metrics, transport};
use windlass_manager::controllers::{self, Running, Selection};
use windlass_manager::registry::{install, kinds};
use windlass_manager::{Fetcher, Helming, InProcess, OlderVersions};
use windlass_store::{Limits, Store};

/// The namespace of all objects.
const NAMESPACE: &str = "default";
/// The recorded cluster.
pub(crate) const CLUSTER: &str = "demo000";
/// The cluster whose workload API server is compared.
pub(crate) const RICH: &str = "rich";
/// The polling interval.
const POLL: Duration = Duration::from_millis(250);
/// After this time without a write, the controllers count as idle.
const QUIET: Duration = Duration::from_secs(3);
/// The timeout of a step.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A kind to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

impl Kind {
    fn resource(&self) -> ApiResource {
        let (group, version) = self.api_version.rsplit_once('/').unwrap_or(("", &self.api_version));
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &self.kind))
    }
}

/// The management cluster.
pub(crate) struct Stage {
    server: ApiServer,
    client: kube::Client,
    running: Running,
    kinds: Vec<Kind>,
}

/// The state to wait for: this many machines, all running this version, and idle controllers.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) cluster: &'static str,
    pub(crate) control_plane: usize,
    pub(crate) workers: usize,
    pub(crate) version: &'static str,
}

impl Stage {
    /// Starts the cluster; `kinds` are the compared kinds.
    pub(crate) async fn start(kinds: Vec<Kind>) -> Result<Self, String> {
        let store = Store::memory(Limits::default());
        let mut options = Options::new(store);
        options.admission.push(Arc::new(InProcess::default()));
        options.converter = Some(Arc::new(OlderVersions));
        let server = ApiServer::start(options).await.map_err(|error| error.to_string())?;
        let metrics = Metrics::new();
        let service = || server.client_service(UserInfo::admin("kubernetes-admin"));
        let client = transport::in_process(service(), &metrics);
        install::install(&client, &kinds::all_crds(), install::Conversion::InProcess)
            .await
            .map_err(|error| error.to_string())?;
        let running = controllers::start(
            transport::in_process(service(), &metrics),
            metrics,
            &Selection::all(),
            &Fetcher::default(),
            &Helming::default(),
        );
        Ok(Self {
            server,
            client,
            running,
            kinds,
        })
    }

    pub(crate) async fn shutdown(&self) {
        self.running.shutdown().await;
        self.server.shutdown();
    }

    fn api(&self, kind: &Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), NAMESPACE, &kind.resource())
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        self.api(&Kind {
            api_version: text("apiVersion"),
            kind: text("kind"),
        })
    }

    fn cluster(&self) -> Api<DynamicObject> {
        self.api(&Kind {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "Cluster".to_owned(),
        })
    }

    /// Creates an object as `kubectl apply` does.
    pub(crate) async fn kubectl_apply(&self, mut object: Value) -> Result<(), String> {
        object["metadata"]["namespace"] = json!(NAMESPACE);
        object["metadata"]["annotations"] = json!({});
        // kubectl escapes these characters.
        let escapes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
        let applied = escapes.iter().fold(format!("{object}\n"), |text, (plain, escaped)| {
            text.replace(*plain, escaped)
        });
        object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
        let parameters = PostParams {
            field_manager: Some("kubectl-client-side-apply".to_owned()),
            ..PostParams::default()
        };
        let typed = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        let created = self.api_of(&object).create(&parameters, &typed).await;
        created
            .map(drop)
            .map_err(|error| format!("{} {}: {error}", object["kind"], object["metadata"]["name"]))
    }

    /// Applies an object server-side as `user`.
    pub(crate) async fn apply(&self, object: &Value) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let applied = self
            .api_of(object)
            .patch(name, &PatchParams::apply("user"), &Patch::Apply(object))
            .await;
        applied
            .map(drop)
            .map_err(|error| format!("{} {name}: {error}", object["kind"]))
    }

    /// Changes an object as `kubectl patch --type json` does.
    pub(crate) async fn patch(&self, object: &Value, operations: Value) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let operations = serde_json::from_value(operations).map_err(|error| error.to_string())?;
        let parameters = PatchParams {
            field_manager: Some("kubectl-patch".to_owned()),
            ..PatchParams::default()
        };
        let patched = self
            .api_of(object)
            .patch(name, &parameters, &Patch::<()>::Json(operations))
            .await;
        patched
            .map(drop)
            .map_err(|error| format!("{} {name}: {error}", object["kind"]))
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, object: &Value) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let deleted = self.api_of(object).delete(name, &DeleteParams::default()).await;
        deleted
            .map(drop)
            .map_err(|error| format!("{} {name}: {error}", object["kind"]))
    }

    /// All objects of a compared kind and of the recorded cluster or class.
    pub(crate) async fn objects(&self) -> Result<Vec<Value>, String> {
        let mut objects = Vec::new();
        for kind in &self.kinds {
            objects.extend(self.list(kind).await?);
        }
        objects.retain(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with(CLUSTER) || name.starts_with("in-memory")
        });
        Ok(objects)
    }

    /// All events.
    pub(crate) async fn events(&self) -> Result<Vec<Value>, String> {
        let kind = Kind {
            api_version: "v1".to_owned(),
            kind: "Event".to_owned(),
        };
        self.list(&kind).await
    }

    async fn list(&self, kind: &Kind) -> Result<Vec<Value>, String> {
        list(self.api(kind), kind).await
    }

    /// Machines of a cluster.
    pub(crate) async fn machines(&self, cluster: &str) -> Result<Vec<Value>, String> {
        let kind = Kind {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "Machine".to_owned(),
        };
        let mut machines = self.list(&kind).await?;
        machines.retain(|machine| machine["spec"]["clusterName"] == cluster);
        Ok(machines)
    }

    /// Waits until a cluster is in the desired state.
    pub(crate) async fn wait(&self, wanted: &Wanted) -> Result<(), String> {
        let cluster = wanted.cluster;
        self.until(&format!("{wanted:?}"), || async move {
            let found = self.cluster().get(cluster).await.map_err(|error| error.to_string())?;
            let done = [
                "Available",
                "TopologyReconciled",
                "ControlPlaneMachinesReady",
                "WorkerMachinesReady",
            ];
            let busy = ["RollingOut", "ScalingUp", "ScalingDown"];
            let machines = self.machines(cluster).await?;
            let is_control_plane = |machine: &&Value| {
                machine["metadata"]["labels"]
                    .get("cluster.x-k8s.io/control-plane")
                    .is_some()
            };
            let control_plane = machines.iter().filter(is_control_plane).count();
            Ok(control_plane == wanted.control_plane
                && machines.len() - control_plane == wanted.workers
                && machines.iter().all(|machine| {
                    machine["spec"]["version"] == wanted.version && machine["status"]["phase"] == "Running"
                })
                && done.iter().all(|name| condition(&found.data, name) == Some("True"))
                && busy.iter().all(|name| condition(&found.data, name) == Some("False")))
        })
        .await
    }

    /// Waits until a worker is being provisioned.
    pub(crate) async fn wait_for_rollout(&self) -> Result<(), String> {
        self.until("a worker in the middle of being provisioned", || async {
            let machines = self.machines(CLUSTER).await?;
            Ok(machines.iter().any(|machine| {
                machine["status"]["phase"] == "Provisioning"
                    && machine["spec"]["bootstrap"].get("dataSecretName").is_some()
            }))
        })
        .await
    }

    /// Waits until the cluster and all its objects are deleted.
    pub(crate) async fn wait_for_deletion(&self) -> Result<(), String> {
        self.until("the cluster is gone", || async {
            let found = self
                .cluster()
                .get_opt(CLUSTER)
                .await
                .map_err(|error| error.to_string())?;
            Ok(found.is_none())
        })
        .await
    }

    /// Waits until there are no more writes.
    pub(crate) async fn quiet(&self) -> Result<(), String> {
        let deadline = Instant::now() + TIMEOUT;
        let (mut revision, mut since) = (self.server.store().revision(), Instant::now());
        while since.elapsed() < QUIET {
            if Instant::now() > deadline {
                return Err(format!("something is still written after {} s", TIMEOUT.as_secs()));
            }
            sleep(POLL).await;
            let now = self.server.store().revision();
            if now != revision {
                (revision, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    async fn until<F>(&self, what: &str, mut good: impl FnMut() -> F) -> Result<(), String>
    where
        F: Future<Output = Result<bool, String>>,
    {
        let deadline = Instant::now() + TIMEOUT;
        while !good().await? {
            if Instant::now() > deadline {
                return Err(format!("not reached within {} s: {what}", TIMEOUT.as_secs()));
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// The objects in a workload cluster, through the kubeconfig in its Secret.
    pub(crate) async fn workload(&self, cluster: &str, kinds: &[Kind]) -> Result<Vec<Value>, String> {
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let secret = secrets
            .get(&format!("{cluster}-kubeconfig"))
            .await
            .map_err(|error| error.to_string())?;
        let value = secret.data.unwrap_or_default().remove("value").unwrap_or_default();
        let text = String::from_utf8(value.0).map_err(|error| error.to_string())?;
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).map_err(|error| error.to_string())?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await;
        let config = config.map_err(|error| error.to_string())?;
        let client = transport::connect(&config, &Metrics::new()).map_err(|error| error.to_string())?;
        let mut objects = Vec::new();
        for kind in kinds {
            objects.extend(list(Api::all_with(client.clone(), &kind.resource()), kind).await?);
        }
        Ok(objects)
    }
}

/// Lists objects. Items of lists have no kind, so it is added.
async fn list(api: Api<DynamicObject>, kind: &Kind) -> Result<Vec<Value>, String> {
    let found = api
        .list(&ListParams::default())
        .await
        .map_err(|error| format!("{}: {error}", kind.kind))?;
    let items = found.items.into_iter().map(|item| {
        let mut object = serde_json::to_value(item).map_err(|error| error.to_string())?;
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        Ok(object)
    });
    items.collect()
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)?["status"].as_str()
}

/// The ClusterClass and its templates, with machines that start at once.
pub(crate) fn class(path: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| error.to_string())?;
    for object in &mut objects {
        start_within(object, "0s");
    }
    Ok(objects)
}

/// Sets all start-up durations.
pub(crate) fn start_within(value: &mut Value, duration: &str) {
    match value {
        Value::Object(map) => {
            for (key, below) in map.iter_mut() {
                if key == "startupDuration" {
                    *below = json!(duration);
                } else {
                    start_within(below, duration);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| start_within(item, duration)),
        _ => {}
    }
}
