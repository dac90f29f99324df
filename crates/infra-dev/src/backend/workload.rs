//! A simulated workload cluster: one embedded API server that stands for those of all control plane machines, behind which etcd members
//! answer. Each connection is accepted with the certificates of one machine.

mod joins;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_controller_runtime::ObjectKey;
use windlass_meta::KubernetesVersion;
use windlass_store::{Limits, Store};

use super::authority::Bundle;
use super::etcd::EtcdCluster;
use super::kubelets::{Kubelet, Kubelets, Refusal};
use super::nodes::{self, Kubelet as Report};
use super::returning::Returning;
use super::site::lost;
use super::station::Roster;
use super::trouble::Trouble;
use super::{Before, CloudError, Member};
use tunnel::Tunnel;

/// The user of the simulation itself. Limits of users are by name, and those who have the kubeconfig of the cluster must not use up its own.
const SIMULATOR: &str = "windlass-dev";

/// A running simulated cluster. A clone is another handle to it.
#[derive(Clone)]
pub(super) struct Workload {
    key: ObjectKey,
    server: ApiServer,
    client: Client,
    etcd: EtcdCluster,
    etcd_id: u64,
    /// By which names and addresses clients reach the API server; first the one of the Cluster.
    hosts: Arc<[String]>,
    /// The machine that made the cluster.
    founder: Arc<str>,
    roster: Arc<Roster>,
    /// The kubeconfig that machines found last when they joined, and its authorities.
    published: Arc<Mutex<Option<Published>>>,
    kubelets: Arc<Kubelets>,
    settling: Arc<tokio::sync::Mutex<()>>,
    returning: Arc<Returning>,
    /// The version of each control plane machine.
    versions: Arc<Mutex<BTreeMap<String, String>>>,
    // The task that answers on the port, and how to end it alone.
    listening: TaskTracker,
    accepting: Arc<Mutex<Option<AbortHandle>>>,
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A kubeconfig, and the authorities in it.
type Published = (String, Arc<Bundle>);

/// A number that stays the same for the same name.
fn number(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // Tools print these numbers as signed ones now and then.
    (hasher.finish() >> 1).max(1)
}

impl Workload {
    /// Makes the API server of a cluster, and answers on `listener`. The first machine leaves its configuration in the cluster.
    pub(super) async fn start(
        key: &ObjectKey,
        listener: TcpListener,
        founder: &Member<'_>,
        troubles: &BTreeSet<Trouble>,
        configuration: &str,
        now: Timestamp,
    ) -> Result<Self, CloudError> {
        let server_error = |why: String| CloudError::Server {
            cluster: key.clone(),
            why,
        };
        let mut hosts = vec![founder.endpoint.host.clone()];
        hosts.extend(listener.local_addr().map(|address| address.ip().to_string()));
        let etcd_id = number(&key.to_string());
        let etcd = if founder.brings_external_etcd() {
            EtcdCluster::elsewhere(etcd_id)
        } else {
            EtcdCluster::new(etcd_id)
        };
        let roster = Arc::<Roster>::default();
        let mut options = Options::new(Store::memory(Limits::small()));
        // Its administrators are the tenants who may read its kubeconfig, and it is part of this process.
        options.limits_masters = true;
        options.pod_tunnel = Some(Arc::new(Tunnel {
            etcd: etcd.clone(),
            roster: Arc::clone(&roster),
        }));
        founder.version.clone_into(&mut options.kubernetes_version);
        let server = ApiServer::start(options)
            .await
            .map_err(|error| server_error(error.to_string()))?;
        let client = Client::new(server.client_service(UserInfo::admin(SIMULATOR)), "default");
        let workload = Self {
            key: key.clone(),
            server,
            client,
            etcd,
            etcd_id,
            hosts: hosts.into(),
            founder: founder.name.into(),
            roster,
            published: Arc::default(),
            kubelets: Arc::default(),
            settling: Arc::default(),
            returning: Arc::new(Returning::new(founder.others.clone())),
            versions: Arc::default(),
            listening: TaskTracker::new(),
            accepting: Arc::default(),
        };
        workload.enrol(founder, troubles, now)?;
        workload.answer(listener);
        let authorities = founder.authorities.cluster.trusted();
        for object in nodes::kubeadm_objects(founder.version, configuration, founder.endpoint, authorities) {
            workload.put(&object).await?;
        }
        Ok(workload)
    }

    /// A client in this process.
    #[cfg(test)]
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Answers on a port, until the server is stopped or its network is cut. A client that connects before all machines are back waits.
    pub(super) fn answer(&self, listener: TcpListener) {
        let listening_at = listener.local_addr();
        let (roster, etcd) = (Arc::clone(&self.roster), self.etcd.clone());
        let choose = move || {
            let station = roster.next(|name| etcd.runs(name))?;
            Some(Arc::clone(station.api_server()))
        };
        let (server, returning) = (self.server.clone(), Arc::clone(&self.returning));
        let address = listening_at.map_or_else(|_| "unknown".to_owned(), |address| address.to_string());
        let task = self.listening.spawn(async move {
            returning.complete().await;
            if let Err(error) = server.serve_by(listener, Arc::new(choose)).await {
                lost(&address, &error, "a simulated API server lost its port");
            }
        });
        self.listening.close();
        *self.accepting.lock() = Some(task.abort_handle());
    }

    /// Ends all connections and stops answering; the server runs on. When this returns its port is free.
    pub(super) async fn cut(&self) {
        let accepting = self.accepting.lock().take();
        if let Some(task) = accepting {
            task.abort();
        }
        self.listening.wait().await;
    }

    /// Ends the API server; when this returns its port is free again.
    pub(super) async fn ended(&self) {
        self.server.shutdown();
        self.returning.give_up();
        self.listening.wait().await;
    }

    /// A control plane machine joins: an etcd member, unless it has left for good or etcd runs elsewhere, and the static Pods of the control
    /// plane.
    pub(super) async fn join(
        &self,
        machine: &Member<'_>,
        troubles: &BTreeSet<Trouble>,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        let Member {
            name, version, before, ..
        } = *machine;
        let member = number(name);
        let learner = troubles.contains(&Trouble::StaysLearner);
        if before != Before::Left {
            let joined = self.etcd.join(name, member, learner);
            joined.map_err(|error| CloudError::Kubeadm {
                machine: name.to_owned(),
                why: error.to_string(),
            })?;
        }
        self.enrol(machine, troubles, now)?;
        tracing::debug!(cluster = %self.key, node = name, at = %now, "simulated control plane machine joins");
        let etcd = nodes::etcd_annotations(self.etcd_id, member);
        let is_here = |component: &&str| *component != nodes::ETCD || !self.etcd.is_elsewhere();
        for component in nodes::COMPONENTS.into_iter().filter(is_here) {
            self.put(&nodes::pod(component, name, version, &etcd)).await?;
            self.put_status(&nodes::pod_status(component, name, version, now))
                .await?;
        }
        self.change_versions(|all| {
            all.insert(name.to_owned(), version.to_owned());
        });
        Ok(())
    }

    /// Changes the versions of the control plane machines. The one API server stands for those of all machines: it has the lowest version, as
    /// a client of several may be answered by any of them.
    fn change_versions(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut all = self.versions.lock();
        change(&mut all);
        let parsed = all
            .values()
            .filter_map(|text| Some((KubernetesVersion::parse_tolerant(text).ok()?, text)));
        if let Some((_, lowest)) = parsed.min_by(|(one, _), (other, _)| one.cmp(other)) {
            self.server.set_kubernetes_version(lowest);
        }
    }

    /// The host by which kubelets reach the API server.
    fn host(&self) -> &str {
        self.hosts.first().map_or("localhost", String::as_str)
    }

    /// The kubelets of its Nodes.
    pub(super) fn kubelets(&self) -> &Kubelets {
        &self.kubelets
    }

    /// Who checks kubelets takes turns with others.
    pub(super) fn settling(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.settling)
    }

    /// The kubelets whose Nodes are to show something else than they do.
    pub(super) async fn changed_kubelets(&self) -> Vec<(Arc<Kubelet>, Option<Refusal>)> {
        self.kubelets.changed(&self.running(), self.host()).await
    }

    /// The members of etcd.
    pub(super) fn etcd(&self) -> &EtcdCluster {
        &self.etcd
    }

    /// What the kubelet of a machine reports, and the node lifecycle controller makes of it. With the kubelet of a machine that is off, its
    /// Pods are not ready.
    pub(super) async fn report(&self, name: &str, kubelet: Report, with_pods: bool) -> Result<(), CloudError> {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &core("Node"));
        let Some(node) = all.get_opt(name).await.map_err(|error| self.refused(&error))? else {
            return Ok(());
        };
        let how = PatchParams::default();
        let (spec, status) = nodes::reported(&node.data, kubelet, Timestamp::now());
        let taints = all.patch(name, &how, &Patch::Merge(&spec)).await;
        taints.map_err(|error| self.refused(&error))?;
        let reported = all.patch_status(name, &how, &Patch::Merge(&status)).await;
        reported.map_err(|error| self.refused(&error))?;
        if !with_pods {
            return Ok(());
        }
        let pods: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "kube-system", &core("Pod"));
        let status = nodes::pod_readiness(kubelet, Timestamp::now());
        for component in nodes::COMPONENTS {
            let pod = nodes::pod_name(component, name);
            self.gone(pods.patch_status(&pod, &how, &Patch::Merge(&status)).await)?;
        }
        Ok(())
    }

    /// A machine goes: its Pods and its Node go with it, as the cloud controller of a real cluster removes them.
    pub(super) async fn leave(&self, name: &str, control_plane: bool) -> Result<(), CloudError> {
        self.returning.settled(name);
        self.kubelets.remove(name);
        if control_plane {
            self.change_versions(|all| {
                all.remove(name);
            });
            self.etcd.lose(name);
            self.roster.remove(name);
            let pods: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "kube-system", &core("Pod"));
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                ..DeleteParams::default()
            };
            for component in nodes::COMPONENTS {
                self.gone(pods.delete(&nodes::pod_name(component, name), &at_once).await)?;
            }
        }
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &core("Node"));
        self.gone(all.delete(name, &DeleteParams::default()).await)
    }

    fn refused(&self, error: &kube::Error) -> CloudError {
        CloudError::Server {
            cluster: self.key.clone(),
            why: error.to_string(),
        }
    }

    /// Something that is already gone is what was wanted.
    fn gone<T>(&self, result: Result<T, kube::Error>) -> Result<(), CloudError> {
        match result {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(self.refused(&error)),
        }
    }

    pub(super) async fn put(&self, object: &Value) -> Result<(), CloudError> {
        let (api, name) = self.api(object)?;
        let how = PatchParams::apply("kubelet").force();
        api.patch(&name, &how, &Patch::Apply(object))
            .await
            .map(drop)
            .map_err(|error| self.refused(&error))
    }

    async fn put_status(&self, object: &Value) -> Result<(), CloudError> {
        let (api, name) = self.api(object)?;
        let how = PatchParams::apply("kubelet").force();
        api.patch_status(&name, &how, &Patch::Apply(object))
            .await
            .map(drop)
            .map_err(|error| self.refused(&error))
    }

    fn api(&self, object: &Value) -> Result<(Api<DynamicObject>, String), CloudError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        if api_version.is_empty() || kind.is_empty() || name.is_empty() {
            return Err(CloudError::Server {
                cluster: self.key.clone(),
                why: "an object to write has no apiVersion, kind or metadata.name".to_owned(),
            });
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        Ok((api, name))
    }
}

/// A kind of the core group. What is deleted is not decoded.
fn core(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind))
}
