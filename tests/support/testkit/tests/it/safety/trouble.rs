//! Machines of a control plane fail: their hosts die, joins do not end, etcd members raise alarms, certificates expire. Each is replaced by
//! the controllers together, from the health check to the member of its replacement, and etcd keeps its quorum.

mod etcd;
mod joins;
mod machines;
mod rollouts;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_infra_dev::{EtcdState, Trouble};
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, Kind, NAMESPACE};

/// How long a Machine may take to join here, in seconds: longer than a healthy one needs on a busy host.
pub(super) fn startup() -> u32 {
    match Kind::chosen() {
        Kind::Real => 90,
        Kind::Embedded | Kind::Socket => 40,
    }
}

/// A cluster of control plane Machines alone, whose health is checked.
pub(super) struct Site {
    pub(super) env: Env,
    pub(super) cluster: ByHand,
}

impl Site {
    /// A cluster that runs, and is at rest.
    pub(super) async fn start(name: &str, replicas: usize) -> Self {
        Self::start_with(name, replicas, json!({}), &[]).await
    }

    /// With other fields in the spec of its control plane, and with troubles of the first machines.
    pub(super) async fn start_with(name: &str, replicas: usize, spec: Value, troubles: &[Trouble]) -> Self {
        let site = Self {
            env: Env::start().await,
            cluster: ByHand::new(name, replicas, 0).managed(),
        };
        for trouble in troubles {
            site.env.cloud().trouble_next(&site.cluster.key(), *trouble);
        }
        for mut object in site.cluster.objects() {
            if object["kind"] == "KubeadmControlPlane" {
                let own = object["spec"].as_object_mut().unwrap();
                own.extend(spec.as_object().unwrap().clone());
            }
            site.env.apply(&object).await;
        }
        if troubles.is_empty() {
            site.runs().await;
            site.env.rest().await;
        }
        site
    }

    /// Waits until the cluster is as desired.
    async fn runs(&self) {
        self.cluster.wait_running(&self.env).await;
    }

    /// Checks the health of the Machines. Machines whose Node does not appear in time are unhealthy, too.
    pub(super) async fn check(&self, startup_seconds: u32, node_seconds: u32) {
        let after = |status: &str| json!({ "type": "Ready", "status": status, "timeoutSeconds": node_seconds });
        self.env
            .apply(&json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "MachineHealthCheck",
                "metadata": { "name": self.cluster.name(), "namespace": NAMESPACE },
                "spec": {
                    "clusterName": self.cluster.name(),
                    "selector": { "matchLabels": { "cluster.x-k8s.io/control-plane": "" } },
                    "checks": {
                        "nodeStartupTimeoutSeconds": startup_seconds,
                        "unhealthyNodeConditions": [after("Unknown"), after("False")],
                    },
                },
            }))
            .await;
    }

    /// Changes the spec of the control plane.
    async fn change(&self, spec: Value) {
        let name = format!("{}-control-plane", self.cluster.name());
        let patch = json!({ "spec": spec });
        self.env.merge("KubeadmControlPlane", &name, &patch).await;
    }

    /// Another number of control plane Machines.
    pub(super) async fn scale(&mut self, replicas: usize) {
        self.change(json!({ "replicas": replicas })).await;
        self.cluster = self.cluster.clone().control_plane(replicas);
    }

    /// Another version.
    pub(super) async fn upgrade(&mut self, version: &str) {
        self.change(json!({ "version": version })).await;
        self.cluster = self.cluster.clone().version(version);
    }

    pub(super) fn etcd(&self) -> EtcdState {
        self.env.cloud().etcd(&self.cluster.key()).unwrap()
    }

    pub(super) fn leader(&self) -> String {
        self.etcd().leader.unwrap()
    }

    /// A member that does not lead.
    pub(super) fn follower(&self) -> String {
        let etcd = self.etcd();
        let leads = |name: &&String| etcd.leader.as_ref() == Some(*name);
        etcd.members.keys().find(|name| !leads(name)).unwrap().clone()
    }

    pub(super) async fn trouble(&self, machine: &str, trouble: Trouble) {
        let cloud = self.env.cloud();
        cloud.trouble(&self.cluster.key(), machine, trouble).await.unwrap();
    }

    async fn recover(&self, machine: &str) {
        let cloud = self.env.cloud();
        cloud.recover(&self.cluster.key(), machine).await.unwrap();
    }

    /// The machine of a trouble that was asked for before it started.
    pub(super) async fn troubled(&self) -> String {
        let machines = |_: &[Machine]| self.env.cloud().troubled(&self.cluster.key()).len() == 1;
        self.env.wait_all::<Machine>("a machine in trouble", machines).await;
        self.env.cloud().troubled(&self.cluster.key()).pop_first().unwrap()
    }

    /// Waits until a Machine is deleted or gone.
    async fn goes(&self, machine: &str) {
        let goes = |machines: &[Machine]| {
            names(machines, |found| !is_going(found))
                .iter()
                .all(|name| name != machine)
        };
        self.env.wait_all::<Machine>("the Machine on its way", goes).await;
    }

    /// Waits until the cluster is as desired without these Machines. At no time more than one joins.
    pub(super) async fn replaces(&self, machines: &[&str]) {
        let done = |all: &[Machine]| {
            let joining = names(all, |machine| !is_going(machine) && node(machine).is_none());
            assert!(joining.len() <= 1, "{joining:?} join at the same time");
            let left = names(all, |_| true);
            let nodes = all.iter().filter(|machine| node(machine).is_some()).count();
            machines.iter().all(|machine| !left.contains(*machine)) && nodes == self.cluster.shape().control_plane
        };
        self.env.wait_all::<Machine>("Machines replaced", done).await;
        self.runs().await;
        let etcd = self.etcd();
        let members: BTreeSet<_> = etcd.members.into_iter().collect();
        let machines = self.env.list::<Machine>().await;
        let expected = names(&machines, |_| true).into_iter().map(|name| (name, true));
        assert_eq!(members, expected.collect(), "a member is left, or does not vote");
    }

    /// Waits until a condition of the control plane has a status and says this.
    async fn says(&self, condition: &str, status: &str, text: &str) {
        let key = ObjectKey::new(NAMESPACE, format!("{}-control-plane", self.cluster.name()));
        let what = format!("{condition} {status}: {text}");
        let is_right = |plane: &KubeadmControlPlane| {
            let mut all = plane.status.iter().flat_map(|status| &status.conditions);
            all.any(|found| found.type_ == condition && found.status == status && found.message.contains(text))
        };
        self.env.wait_for::<KubeadmControlPlane>(&key, &what, is_right).await;
    }

    /// At rest no more Machines were made than these, ever.
    pub(super) async fn made(&self, machines: u64) {
        self.env.rest().await;
        assert_eq!(self.env.created("machines"), machines);
    }

    pub(super) async fn stop(self) {
        self.env.stop().await;
    }
}

fn is_going(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn node(machine: &Machine) -> Option<&str> {
    let node = machine.status.as_ref()?.node_ref.as_ref()?;
    Some(&node.name)
}

/// The names of some Machines.
pub(super) fn names(machines: &[Machine], which: impl Fn(&Machine) -> bool) -> BTreeSet<String> {
    let found = machines.iter().filter(|machine| which(machine));
    found.filter_map(|machine| machine.metadata.name.clone()).collect()
}
