//! The machines of the simulated world: they come up step by step, join, fail, and go.

use kube::api::ListParams;
use rand::RngExt as _;
use serde_json::Value;
use tokio::time::Instant;
use windlass_api::core::v1beta2::Machine;
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_controlplane_kubeadm::names::{CERTIFICATES_EXPIRY, PRE_TERMINATE_HOOK};
use windlass_etcd::{Member, MemberId};
use windlass_meta::Clock as _;

use super::Simulation;
use super::truth::{Truth, Vm, votes};
use crate::play::{cluster_key, leave, objects, register, run_pods};

impl Simulation {
    /// Each Machine and its machine move one step on, with some chance in percent.
    pub(super) async fn advance(&mut self, chance: u32) {
        self.elect();
        let listed = self.machinist.0.list(&ListParams::default()).await.unwrap();
        for machine in &listed.items {
            let name = machine.metadata.name.clone().unwrap();
            if !self.chance(chance) {
                continue;
            }
            let moved = if machine.metadata.deletion_timestamp.is_some() {
                self.go(&name, machine).await
            } else {
                self.come(&name, machine).await
            };
            // Another writer was there first: there is another step.
            if let Err(error) = moved {
                self.truth.lock().tell(format!("{name}: {error}"));
            }
        }
    }

    fn chance(&self, percent: u32) -> bool {
        self.truth.lock().random.random_range(0..100) < percent
    }

    fn vm(&self, name: &str) -> Vm {
        self.truth.lock().vms.entry(name.to_owned()).or_default().clone()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vm)) {
        change(self.truth.lock().vms.entry(name.to_owned()).or_default());
    }

    /// A leader that does not answer is replaced after a while.
    fn elect(&self) {
        let pass = self.chance(40);
        let truth = self.truth.lock();
        let healthy = truth.healthy();
        let mut etcd = truth.fake.etcd.state();
        let members = etcd.members.iter().filter(|member| votes(member)).count();
        let has_quorum = windlass_etcd::quorum::holds(members, healthy.len());
        if pass && has_quorum && !healthy.contains(&etcd.leader) {
            etcd.leader = healthy.first().copied().unwrap_or_default();
        }
    }

    async fn go(&self, name: &str, machine: &Machine) -> kube::Result<()> {
        self.change(name, |vm| vm.deleting = true);
        let annotations = machine.metadata.annotations.as_ref();
        let hooked = annotations.is_some_and(|all| all.contains_key(PRE_TERMINATE_HOOK));
        if hooked {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            if conditions.into_iter().any(|c| c.type_ == "Deleting") {
                return Ok(());
            }
            return self.machinist.hold(name).await;
        }
        self.truth.lock().destroy(name);
        self.machinist.let_go(name).await
    }

    async fn come(&self, name: &str, machine: &Machine) -> kube::Result<()> {
        let labels = machine.metadata.labels.as_ref();
        if labels.is_none_or(|all| !all.contains_key("cluster.x-k8s.io/cluster-name")) {
            self.machinist.label(name).await?;
        }
        let status = machine.status.clone().unwrap_or_default();
        let vm = self.vm(name);
        if machine.spec.provider_id.is_none() {
            if self.config(machine).await?.is_some() {
                self.machinist.identify(name).await?;
            }
            return Ok(());
        }
        if !vm.joined {
            let now = self.clock.now();
            if self.truth.lock().join(name, now) {
                self.truth.lock().fake.clone().changed(&cluster_key());
            }
            return Ok(());
        }
        if status.node_ref.is_none() {
            self.machinist.link(name).await?;
            self.change(name, |vm| {
                vm.linked.get_or_insert_with(Instant::now);
            });
        } else if status.certificates_expiry_date.is_none()
            && let Some(config) = self.config(machine).await?
            && let Some(expiry) = config["metadata"]["annotations"][CERTIFICATES_EXPIRY].as_str()
        {
            self.machinist.certify(name, expiry).await?;
        }
        Ok(())
    }

    async fn config(&self, machine: &Machine) -> kube::Result<Option<Value>> {
        let Some(reference) = &machine.spec.bootstrap.config_ref else {
            return Ok(None);
        };
        let config = objects::<KubeadmConfig>(&self.client).get_opt(&reference.name).await?;
        Ok(config.map(|config| serde_json::to_value(config).unwrap()))
    }
}

impl Truth {
    /// kubeadm goes one step on.
    fn join(&mut self, name: &str, now: jiff::Timestamp) -> bool {
        let fake = self.fake.clone();
        let vm = self.vms.entry(name.to_owned()).or_default().clone();
        let Some(init) = vm.init.filter(|_| !vm.refuses && !vm.broken) else {
            return false;
        };
        if init {
            let members = fake.etcd.state().members.len();
            if members > 0 {
                self.broken_rules
                    .push(format!("{name} initializes beside {members} members"));
            }
            let id = fake.etcd.join(name);
            fake.etcd.state().leader = id;
            self.is_initialized = true;
            return self.joined(name, id, now);
        }
        if !self.has_quorum() || !self.connected {
            return false;
        }
        let Some(id) = vm.member else {
            // The kubelet may register before etcd has the member.
            let early = rand::RngExt::random::<bool>(&mut self.random);
            if early {
                register(&fake, name, now);
            }
            self.add_learner(name);
            return early;
        };
        if vm.stuck {
            return false;
        }
        let mut etcd = fake.etcd.state();
        let Some(member) = etcd.members.iter_mut().find(|member| member.id == id) else {
            // It was removed meanwhile: kubeadm fails.
            return false;
        };
        if !member.is_started() {
            name.clone_into(&mut member.name);
            return false;
        }
        member.learner = false;
        drop(etcd);
        self.joined(name, id, now)
    }

    fn add_learner(&mut self, name: &str) {
        let mut etcd = self.fake.etcd.state();
        let joining = etcd.members.iter().filter(|member| !votes(member));
        let joining: Vec<MemberId> = joining.map(|member| member.id).collect();
        let id = etcd.next_id();
        etcd.members.push(Member {
            id,
            learner: true,
            ..Member::default()
        });
        drop(etcd);
        let alive = |id: &MemberId| self.vms.values().any(|vm| vm.member == Some(*id) && !vm.deleting);
        if joining.iter().any(alive) {
            self.broken_rules
                .push(format!("{name} joins beside the learners {joining:?}"));
        }
        self.vms.entry(name.to_owned()).or_default().member = Some(id);
    }

    fn joined(&mut self, name: &str, id: MemberId, now: jiff::Timestamp) -> bool {
        register(&self.fake, name, now);
        run_pods(&self.fake, name);
        self.fake.state().expiry = now + jiff::SignedDuration::from_hours(24 * 365);
        let vm = self.vms.entry(name.to_owned()).or_default();
        vm.joined = true;
        vm.member = Some(id);
        self.tell(format!("{name} has joined"));
        true
    }

    /// The machine of a Machine is gone.
    fn destroy(&mut self, name: &str) {
        self.tell(format!("{name} is gone"));
        let gone = self.vms.remove(name).unwrap_or_default();
        leave(&self.fake, name);
        let mut etcd = self.fake.etcd.state();
        if let Some(id) = gone.member
            && etcd.members.iter().any(|member| member.id == id)
        {
            etcd.down.insert(id);
        }
        if etcd.members.iter().any(|member| !etcd.down.contains(&member.id)) {
            return;
        }
        // With the last machine, everything that the cluster knew is gone.
        etcd.members.clear();
        etcd.down.clear();
        etcd.alarms.clear();
        drop(etcd);
        let mut state = self.fake.state();
        state.up = false;
        state.kubeadm_config = false;
        drop(state);
        self.is_initialized = false;
    }
}
