//! What disturbs the world: faults of the workload cluster and of the API server, users, health checks, time, and the end of the manager.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controlplane_kubeadm::names::CONTROL_PLANE_NAME_LABEL;
use windlass_etcd::{Alarm, AlarmKind};
use windlass_meta::Clock as _;

use super::Simulation;
use super::truth::{LATEST, Truth};
use crate::play::{cluster_key, objects, register, run_pods, stop_pods};

/// Resources whose watches can be late.
const WATCHED: [&str; 5] = [
    "machines",
    "kubeadmcontrolplanes",
    "kubeadmconfigs",
    "secrets",
    "clusters",
];

impl Simulation {
    fn draw(&self, below: u32) -> u32 {
        self.truth.lock().random.random_range(0..below)
    }

    fn tell(&self, what: impl Into<String>) {
        let what = format!("{} {}", self.clock.now().strftime("%m-%d %H:%M:%S"), what.into());
        self.truth.lock().tell(what);
    }

    /// One of all disturbances; most of the time none.
    pub(super) async fn disturb(&mut self) {
        match self.draw(100) {
            0..4 => self.lose_connection(),
            4..12 => self.connect(),
            12..15 => self.break_machines(),
            15..20 => self.find_unhealthy().await,
            20..23 => self.heal().await,
            23..26 => self.hinder_a_join(),
            26 => self.alarm(),
            27..30 => self.delete_machines().await,
            30..33 => self.jump().await,
            33..36 => self.scale().await,
            36..38 => self.roll_out().await,
            38..41 => self.lose_metadata().await,
            41..45 => self.be_late(),
            45..48 => self.fail_requests(),
            48..51 => self.fail_calls(),
            51..57 => self.end_soon(),
            57 => self.lose_node(),
            58 => self.lead_elsewhere(),
            59 => self.lose_kubeconfig().await,
            60 => self.pause().await,
            _ => {}
        }
    }

    pub(super) fn lose_connection(&self) {
        let mut truth = self.truth.lock();
        if truth.connected {
            truth.connected = false;
            truth.lost_at = self.clock.now();
            drop(truth);
            self.tell("the connection is lost");
            self.wake();
        }
    }

    pub(super) fn connect(&self) {
        let mut truth = self.truth.lock();
        if !truth.connected {
            truth.connected = true;
            drop(truth);
            self.tell("the connection is back");
            self.wake();
        }
    }

    /// The workload cluster reports a change.
    pub(super) fn wake(&self) {
        let fake = self.truth.lock().fake.clone();
        fake.changed(&cluster_key());
    }

    /// As many machines break as etcd bears.
    fn break_machines(&self) {
        let mut truth = self.truth.lock();
        if !truth.is_whole() {
            return;
        }
        let most = (truth.vms.len() - 1) / 2;
        let count = truth.random.random_range(1..=most);
        let names: Vec<String> = truth.some(count);
        for name in &names {
            truth.break_machine(name);
        }
        drop(truth);
        self.tell(format!("{names:?} break"));
        self.wake();
    }

    /// Health checks mark what does not work.
    async fn find_unhealthy(&self) {
        let found: Vec<(String, bool)> = {
            let truth = self.truth.lock();
            let bad = truth.vms.iter().filter(|(_, vm)| {
                let fails = vm.broken || ((vm.refuses || vm.stuck) && !vm.joined);
                fails && !vm.deleting
            });
            bad.map(|(name, vm)| (name.clone(), !vm.marked)).collect()
        };
        for (name, new) in found {
            if new && self.machinist.mark(&name, new).await.is_ok() {
                self.tell(format!("{name} is found unhealthy"));
                if let Some(vm) = self.truth.lock().vms.get_mut(&name) {
                    vm.marked = true;
                }
            }
        }
    }

    /// All that is broken works again.
    pub(super) async fn heal(&self) {
        let marked: Vec<String> = {
            let mut truth = self.truth.lock();
            truth.heal();
            let marked = truth.vms.iter().filter(|(_, vm)| vm.marked);
            marked.map(|(name, _)| name.clone()).collect()
        };
        for name in marked {
            if self.machinist.unmark(&name).await.is_ok()
                && let Some(vm) = self.truth.lock().vms.get_mut(&name)
            {
                vm.marked = false;
            }
        }
        self.tell("all machines work again");
        self.wake();
    }

    /// kubeadm fails on the machine that joins, or its member stays a learner.
    fn hinder_a_join(&self) {
        let mut truth = self.truth.lock();
        let refuses = truth.random.random();
        let joining = truth.vms.iter_mut().find(|(_, vm)| !vm.joined && !vm.deleting);
        let Some((name, vm)) = joining else {
            return;
        };
        vm.refuses = refuses;
        vm.stuck = !refuses;
        let what = if refuses { "fails to join" } else { "stays a learner" };
        let what = format!("{name} {what}");
        drop(truth);
        self.tell(what);
    }

    fn alarm(&self) {
        let truth = self.truth.lock();
        let mut etcd = truth.fake.etcd.state();
        if let Some(member) = etcd.members.first().map(|member| member.id) {
            etcd.alarms = vec![Alarm {
                member,
                kind: AlarmKind::NoSpace,
            }];
        }
    }

    /// A user deletes one or two Machines.
    async fn delete_machines(&self) {
        let names = {
            let mut truth = self.truth.lock();
            if !truth.is_whole() {
                return;
            }
            let count = truth.random.random_range(1..=2);
            truth.some(count)
        };
        self.tell(format!("a user deletes {names:?}"));
        for name in names {
            if self.machinist.0.delete(&name, &DeleteParams::default()).await.is_ok()
                && let Some(vm) = self.truth.lock().vms.get_mut(&name)
            {
                vm.deleting = true;
                vm.deleted_by_user = Some(Instant::now());
            }
        }
    }

    /// Months pass at once; timers may follow.
    async fn jump(&self) {
        let days = i64::from(self.draw(150));
        self.tell(format!("{days} days pass"));
        self.clock.jump(SignedDuration::from_hours(24 * days));
        if self.draw(2) == 0 {
            // All timers end together: first the caches catch up, as they would in half a day.
            self.truth.lock().trouble.lag.clear();
            tokio::time::sleep(LATEST).await;
            tokio::time::advance(Duration::from_hours(13)).await;
        }
    }

    pub(super) async fn change_plane(&self, patch: Value) {
        let planes = objects::<KubeadmControlPlane>(&self.client);
        let patched = planes.patch("cp", &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.unwrap();
    }

    async fn scale(&mut self) {
        // Without surge, the only Machine cannot be replaced.
        let least = if self.surge == 0 { 3 } else { 1 };
        self.replicas = [least, 3, 3, 5][self.draw(4) as usize];
        self.tell(format!("{} replicas", self.replicas));
        self.change_plane(json!({ "spec": { "replicas": self.replicas } }))
            .await;
    }

    /// A change that replaces all Machines, or one that is made in place.
    async fn roll_out(&mut self) {
        self.changes += 1;
        let spec = match self.draw(3) {
            0 if self.version == "v1.35.0" => {
                self.version = "v1.36.0";
                json!({ "version": self.version })
            }
            0 | 1 => json!({ "kubeadmConfigSpec": { "preKubeadmCommands": [format!("echo {}", self.changes)] } }),
            _ => json!({ "machineTemplate": { "metadata": { "annotations": { "a": self.changes.to_string() } } } }),
        };
        self.tell(format!("the specification changes: {spec}"));
        self.change_plane(json!({ "spec": spec })).await;
    }

    /// Owner references, labels, or our finalizer are lost.
    async fn lose_metadata(&self) {
        let gone = [
            json!({ "ownerReferences": null }),
            json!({ "labels": null }),
            json!({ "labels": { "cluster.x-k8s.io/control-plane": null } }),
            json!({ "labels": { "cluster.x-k8s.io/cluster-name": null } }),
        ];
        let patch = json!({ "metadata": gone[self.draw(4) as usize] });
        match self.draw(4) {
            0 => self.lose(objects::<KubeadmConfig>(&self.client), &patch).await,
            1 => self.lose(objects::<Secret>(&self.client), &patch).await,
            2 => {
                self.tell("the finalizer is lost");
                self.change_plane(json!({ "metadata": { "finalizers": null } })).await;
            }
            _ => self.lose(objects::<Machine>(&self.client), &patch).await,
        }
    }

    async fn lose(&self, api: Api<DynamicObject>, patch: &Value) {
        let all = api.list(&ListParams::default()).await.unwrap().items;
        // A Machine without both tells by nothing whose it is.
        let tells = |object: &&DynamicObject| {
            let metadata = &object.metadata;
            let labels = metadata.labels.as_ref();
            !api.resource_url().ends_with("/machines")
                || metadata.owner_references.iter().flatten().count() > 0
                    && labels.is_some_and(|all| all.contains_key(CONTROL_PLANE_NAME_LABEL))
        };
        let living = |object: &&DynamicObject| object.metadata.deletion_timestamp.is_none();
        let all: Vec<String> = all
            .iter()
            .filter(living)
            .filter(tells)
            .map(ResourceExt::name_any)
            .collect();
        if all.is_empty() {
            return;
        }
        let name = &all[self.draw(u32::try_from(all.len()).unwrap()) as usize];
        self.tell(format!("{name} loses {patch}"));
        let _ = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    /// The caches fall behind.
    fn be_late(&self) {
        let mut truth = self.truth.lock();
        let resource = WATCHED[truth.random.random_range(0..WATCHED.len())];
        let lag = [0, 1, 5, 30][truth.random.random_range(0..4)];
        truth.trouble.lag.insert(resource.to_owned(), Duration::from_secs(lag));
        drop(truth);
        self.tell(format!("{resource} are {lag} seconds late"));
    }

    fn fail_requests(&self) {
        let mut truth = self.truth.lock();
        truth.trouble.requests = [0, 0, 5, 30][truth.random.random_range(0..4)];
        let chance = truth.trouble.requests;
        drop(truth);
        self.tell(format!("{chance} of 100 requests fail"));
    }

    fn fail_calls(&self) {
        let mut truth = self.truth.lock();
        truth.trouble.calls = [0, 0, 5, 30][truth.random.random_range(0..4)];
        truth.trouble.slowness = Duration::from_millis([0, 0, 100, 2000][truth.random.random_range(0..4)]);
        let trouble = truth.trouble.clone();
        drop(truth);
        self.tell(format!(
            "{} of 100 calls of the workload cluster fail, each takes {:?}",
            trouble.calls, trouble.slowness
        ));
    }

    /// The manager ends at one of its next writes.
    fn end_soon(&self) {
        let writes = 1 + self.draw(8);
        self.process.life.limit(writes);
        self.tell(format!("the manager ends with write {writes}"));
    }

    /// A Node is deleted, and the kubelet registers it again when all is well.
    fn lose_node(&self) {
        let mut truth = self.truth.lock();
        if truth.is_whole() {
            let name = truth.some(1).remove(0);
            truth.fake.state().nodes.retain(|node| node.name != name);
            drop(truth);
            self.tell(format!("Node {name} is deleted"));
            self.wake();
        }
    }

    fn lead_elsewhere(&self) {
        let mut truth = self.truth.lock();
        let healthy: Vec<_> = truth.healthy().into_iter().collect();
        if truth.has_quorum() {
            let leader = healthy[truth.random.random_range(0..healthy.len())];
            truth.fake.etcd.state().leader = leader;
        }
    }

    async fn lose_kubeconfig(&self) {
        let secrets = objects::<Secret>(&self.client);
        let _ = secrets.delete("demo-kubeconfig", &DeleteParams::default()).await;
    }

    async fn pause(&self) {
        let paused = self.draw(2) == 0;
        self.pause_or_not(paused).await;
    }

    pub(super) async fn pause_or_not(&self, paused: bool) {
        self.tell(if paused { "paused" } else { "not paused" });
        let patch = Patch::Merge(json!({ "spec": { "paused": paused } }));
        let clusters = objects::<Cluster>(&self.client);
        clusters.patch("demo", &PatchParams::default(), &patch).await.unwrap();
    }
}

impl Truth {
    /// Some machines at random.
    fn some(&mut self, count: usize) -> Vec<String> {
        let mut names: Vec<String> = self.vms.keys().cloned().collect();
        while names.len() > count {
            let at = self.random.random_range(0..names.len());
            names.remove(at);
        }
        names
    }

    fn break_machine(&mut self, name: &str) {
        stop_pods(&self.fake, name);
        let Some(vm) = self.vms.get_mut(name) else {
            return;
        };
        vm.broken = true;
        let down = vm.member;
        self.fake.etcd.state().down.extend(down);
        let mut state = self.fake.state();
        for node in state.nodes.iter_mut().filter(|node| node.name == name) {
            node.unreachable = true;
            node.ready = Some("Unknown".to_owned());
        }
    }

    /// All machines work, and all joins go on.
    fn heal(&mut self) {
        self.fake.etcd.state().alarms.clear();
        let names: Vec<String> = self.vms.keys().cloned().collect();
        for name in names {
            let vm = self.vms.entry(name.clone()).or_default();
            vm.broken = false;
            vm.refuses = false;
            vm.stuck = false;
            let (joined, member) = (vm.joined, vm.member);
            let mut etcd = self.fake.etcd.state();
            etcd.down.retain(|id| Some(*id) != member);
            drop(etcd);
            if joined {
                self.fake
                    .state()
                    .nodes
                    .retain(|node| node.name != name || !node.unreachable);
                register(&self.fake, &name, jiff::Timestamp::UNIX_EPOCH);
                run_pods(&self.fake, &name);
            }
        }
    }
}
