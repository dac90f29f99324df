//! The workload cluster as one process of the manager reaches it: slow, failing, or not at all. Changes of etcd's members are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::Value;
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_controlplane_kubeadm::core_dns::{CoreDns, CoreDnsChange, CoreDnsObjects};
use windlass_controlplane_kubeadm::facts::{NodeFacts, PodFacts};
use windlass_controlplane_kubeadm::workload::testing::FakeWorkload;
use windlass_controlplane_kubeadm::workload::{WorkloadCluster, WorkloadClusters};
use windlass_etcd::testing::FakeEndpoint;
use windlass_etcd::{Alarm, EtcdError, EtcdMembers, MemberId, MemberList, Status, async_trait};
use windlass_meta::{Clock as _, ObjectKey};

use super::clock::SimClock;
use super::process::{Ends, Life};
use super::truth::{Shared, Sight};

/// The connection of one process.
#[derive(Clone)]
pub(super) struct Remote {
    pub(super) truth: Shared,
    pub(super) life: Arc<Life>,
    pub(super) clock: SimClock,
}

impl Remote {
    fn fake(&self) -> FakeWorkload {
        self.truth.lock().fake.clone()
    }

    /// A call begins; it may fail.
    async fn call(&self) -> Result<(), String> {
        let slowness = self.truth.lock().trouble.slowness;
        if slowness > Duration::ZERO {
            tokio::time::sleep(slowness).await;
        }
        let mut truth = self.truth.lock();
        if self.life.is_over() || !truth.connected {
            return Err("the connection is lost".to_owned());
        }
        let failing = truth.trouble.calls;
        if truth.random.random_range(0..100) < failing {
            return Err("timed out".to_owned());
        }
        Ok(())
    }

    /// A write begins; the process may end before or after it.
    async fn change<T, E>(&self, lost: fn() -> E, change: impl Future<Output = Result<T, E>> + Send) -> Result<T, E> {
        let end = self.life.spend(&mut self.truth.lock().random);
        match end {
            Some(Ends::Before) => Err(lost()),
            Some(Ends::After) => {
                let _ = change.await;
                Err(lost())
            }
            None => change.await,
        }
    }
}

fn unanswered() -> String {
    "the connection broke".to_owned()
}

impl WorkloadClusters for Remote {
    fn workload(&self, _: &ObjectKey) -> Workload<Box<dyn WorkloadCluster>> {
        let now = self.clock.now();
        let mut truth = self.truth.lock();
        let is_up = truth.fake.state().up;
        if self.life.is_over() || !self.life.has_tried(now) || !is_up {
            if !self.life.is_over() {
                truth.sight = Sight::default();
            }
            return Workload::NotTried("no attempt was made yet".to_owned());
        }
        let leader = truth.fake.etcd.state().leader;
        truth.sight = Sight {
            connected: truth.connected,
            healthy: truth.healthy(),
            leader,
            ..Sight::default()
        };
        if !truth.connected {
            let since = truth.lost_at.max(self.life.tried_at());
            let heard = truth.lost_at > self.life.tried_at();
            return Workload::Down(Outage {
                since,
                last_success: heard.then_some(truth.lost_at),
                why: "no answer".to_owned(),
                grace: GracePeriods::default(),
            });
        }
        Workload::Up(Box::new(self.clone()))
    }

    fn subscribe(&self, changed: Arc<dyn Fn(&ObjectKey) + Send + Sync>) {
        self.fake().subscribe(changed);
    }
}

#[async_trait]
impl WorkloadCluster for Remote {
    async fn has_kubeadm_config(&self) -> Result<bool, String> {
        self.call().await?;
        self.fake().has_kubeadm_config().await
    }

    async fn nodes(&self, also: &BTreeSet<String>) -> Result<Vec<NodeFacts>, String> {
        self.call().await?;
        self.truth.lock().sight.nodes = true;
        self.fake().nodes(also).await
    }

    async fn pods(&self) -> Result<BTreeMap<String, PodFacts>, String> {
        self.call().await?;
        self.truth.lock().sight.pods = true;
        self.fake().pods().await
    }

    async fn etcd(&self, node: &str) -> Result<Box<dyn EtcdMembers>, String> {
        self.call().await?;
        let endpoint = self.fake().etcd.endpoint(node);
        Ok(Box::new(Endpoint {
            remote: self.clone(),
            endpoint,
        }))
    }

    async fn kube_proxy_image(&self) -> Result<Option<String>, String> {
        self.call().await?;
        self.fake().kube_proxy_image().await
    }

    async fn set_kube_proxy_image(&self, image: &str) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.set_kube_proxy_image(image)).await
    }

    async fn core_dns(&self) -> Result<Option<CoreDns>, String> {
        self.call().await?;
        self.fake().core_dns().await
    }

    async fn unfinished_core_dns(&self) -> Result<Option<CoreDns>, String> {
        self.call().await?;
        self.fake().unfinished_core_dns().await
    }

    async fn core_dns_objects(&self) -> Result<Option<CoreDnsObjects>, String> {
        self.call().await?;
        self.fake().core_dns_objects().await
    }

    async fn change_core_dns(&self, change: &CoreDnsChange) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.change_core_dns(change)).await
    }

    async fn update_kubeadm_dns(&self, dns: &Value, version: &str) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.update_kubeadm_dns(dns, version)).await
    }

    async fn update_kubeadm_config(&self, configuration: &Value, version: &str) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        let update = fake.update_kubeadm_config(configuration, version);
        self.change(unanswered, update).await
    }

    async fn ensure_rbac(&self, version: &str) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.ensure_rbac(version)).await
    }

    async fn cluster_info(&self) -> Result<Option<String>, String> {
        self.call().await?;
        self.fake().cluster_info().await
    }

    async fn update_cluster_info(&self, authorities: &str) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.update_cluster_info(authorities)).await
    }

    async fn extension_authorities(&self) -> Result<Option<BTreeSet<String>>, String> {
        self.call().await?;
        self.fake().extension_authorities().await
    }

    async fn drop_extension_authorities(&self, fingerprints: &BTreeSet<String>) -> Result<(), String> {
        self.call().await?;
        let fake = self.fake();
        self.change(unanswered, fake.drop_extension_authorities(fingerprints))
            .await
    }

    async fn certificate_expiry(&self, node: &str, port: u16) -> Result<Timestamp, String> {
        self.call().await?;
        self.fake().certificate_expiry(node, port).await
    }
}

/// One etcd member, reached through the connection.
struct Endpoint {
    remote: Remote,
    endpoint: FakeEndpoint,
}

fn silent() -> EtcdError {
    EtcdError::Unreachable {
        call: "the call",
        reason: unanswered(),
    }
}

impl Endpoint {
    /// A call begins; what needs a quorum fails without one.
    async fn call(&self, call: &'static str, needs_quorum: bool) -> Result<(), EtcdError> {
        let called = self.remote.call().await;
        called.map_err(|reason| EtcdError::Unreachable { call, reason })?;
        if needs_quorum && !self.remote.truth.lock().has_quorum() {
            return Err(EtcdError::Refused {
                call,
                reason: "etcdserver: no leader".to_owned(),
            });
        }
        Ok(())
    }
}

#[async_trait]
impl EtcdMembers for Endpoint {
    async fn members(&self) -> Result<MemberList, EtcdError> {
        self.call("MemberList", true).await?;
        self.endpoint.members().await
    }

    async fn status(&self) -> Result<Status, EtcdError> {
        self.call("Status", false).await?;
        self.endpoint.status().await
    }

    async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        self.call("Alarm", false).await?;
        let alarms = self.endpoint.alarms().await?;
        self.remote.truth.lock().sight.etcd = true;
        Ok(alarms)
    }

    async fn move_leader(&self, target: MemberId) -> Result<(), EtcdError> {
        self.call("MoveLeader", true).await?;
        if !self.remote.truth.lock().healthy().contains(&target) {
            return Err(silent());
        }
        self.remote.change(silent, self.endpoint.move_leader(target)).await
    }

    async fn remove_member(&self, id: MemberId) -> Result<(), EtcdError> {
        self.call("MemberRemove", true).await?;
        let remove = async {
            // Only a member that answers carries it out.
            self.endpoint.status().await?;
            let before = self.remote.fake().etcd.state().clone();
            self.endpoint.remove_member(id).await?;
            self.remote.truth.lock().judge_removal(id, &before);
            let etcd = self.remote.fake().etcd;
            etcd.state().down.remove(&id);
            Ok(())
        };
        self.remote.change(silent, remove).await
    }
}
