//! What is true in the simulated world, and the rules that hold at every write to the API server and at every change of etcd's members.
//! The rules are judged by the world, not by what the planner says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use serde_json::Value;
use tokio::time::Instant;
use windlass_controlplane_kubeadm::names::PRE_TERMINATE_HOOK;
use windlass_controlplane_kubeadm::workload::testing::FakeWorkload;
use windlass_etcd::testing::FakeState;
use windlass_etcd::{Member, MemberId, quorum};
use windlass_testkit::{Witness, WriteTo};

/// How late watches are at most, with what a reconcile takes.
pub(super) const LATEST: Duration = Duration::from_mins(1);

/// The machine behind a Machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Vm {
    /// Its KubeadmConfig asks for `kubeadm init`; none while there is no KubeadmConfig.
    pub(super) init: Option<bool>,
    /// It is a Node with a voting member.
    pub(super) joined: bool,
    /// Since when its Machine knows the Node; the controller may not have heard of it.
    pub(super) linked: Option<Instant>,
    /// The Machine is deleted, and not yet gone.
    pub(super) deleting: bool,
    /// A user deleted it then; the controller may not have heard of it.
    pub(super) deleted_by_user: Option<Instant>,
    /// kubeadm fails on it.
    pub(super) refuses: bool,
    /// Its member stays a learner.
    pub(super) stuck: bool,
    /// Nothing on it answers.
    pub(super) broken: bool,
    /// A health check found it unhealthy.
    pub(super) marked: bool,
    /// Its member.
    pub(super) member: Option<MemberId>,
}

impl Vm {
    /// Whether the controller must know the Node.
    fn is_known_to_be_linked(&self) -> bool {
        self.linked.is_some_and(|at| at.elapsed() > LATEST)
    }

    /// Whether the controller must know that the Machine is deleted.
    fn is_known_to_go(&self) -> bool {
        self.deleted_by_user.is_none_or(|at| at.elapsed() > LATEST)
    }
}

/// What the controller saw of the workload cluster at its last reconcile.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight {
    pub(super) connected: bool,
    pub(super) nodes: bool,
    pub(super) pods: bool,
    pub(super) etcd: bool,
    /// The members that worked then.
    pub(super) healthy: BTreeSet<MemberId>,
    pub(super) leader: MemberId,
}

impl Sight {
    fn is_clear(&self) -> bool {
        self.connected && self.nodes && self.pods && self.etcd
    }
}

/// Chances of faults, in percent, and what is late.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    /// Requests to the API server that are refused, lost or not answered.
    pub(super) requests: u32,
    /// Calls to the workload cluster that fail.
    pub(super) calls: u32,
    /// The time of each call to the workload cluster.
    pub(super) slowness: Duration,
    /// How late the events of watches are, by resource.
    pub(super) lag: BTreeMap<String, Duration>,
}

pub(super) struct Truth {
    pub(super) fake: FakeWorkload,
    pub(super) vms: BTreeMap<String, Vm>,
    pub(super) connected: bool,
    /// Since when the cluster does not answer.
    pub(super) lost_at: Timestamp,
    pub(super) is_deleting: bool,
    /// There was a cluster.
    pub(super) is_initialized: bool,
    /// The status of the control plane says that there was one. It may not be known for long: a first machine that came up while calls
    /// to the cluster fail is like one that never did, and is replaced like it.
    is_known_initialized: bool,
    pub(super) sight: Sight,
    pub(super) trouble: Trouble,
    pub(super) random: SmallRng,
    pub(super) broken_rules: Vec<String>,
    /// What happened, for the report of a failure.
    pub(super) story: Vec<String>,
    /// Writes of the controller, without events.
    pub(super) writes: Vec<String>,
}

/// A clone is another handle to the same truth.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Truth>>);

impl Shared {
    pub(super) fn new(seed: u64, now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Truth {
            fake: FakeWorkload::default(),
            vms: BTreeMap::new(),
            connected: true,
            lost_at: now,
            is_deleting: false,
            is_initialized: false,
            is_known_initialized: false,
            sight: Sight::default(),
            trouble: Trouble::default(),
            random: SmallRng::seed_from_u64(seed),
            broken_rules: Vec::new(),
            story: Vec::new(),
            writes: Vec::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Truth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a write means for the control plane.
enum Meaning<'w> {
    Create(&'w str),
    Configure { name: &'w str, init: bool },
    Delete(&'w str),
    Release(&'w str),
    Initialized,
    Other,
}

impl Truth {
    pub(super) fn tell(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.story.push(what);
    }

    /// The members that work: voters whose machine answers.
    pub(super) fn healthy(&self) -> BTreeSet<MemberId> {
        let etcd = self.fake.etcd.state();
        let works = |member: &&Member| votes(member) && !etcd.down.contains(&member.id);
        etcd.members.iter().filter(works).map(|member| member.id).collect()
    }

    /// Whether the members that work are enough for etcd to answer.
    pub(super) fn has_quorum(&self) -> bool {
        let healthy = self.healthy().len();
        let etcd = self.fake.etcd.state();
        quorum::holds(etcd.members.iter().filter(|member| votes(member)).count(), healthy)
    }

    /// Whether etcd bears the loss of another machine, and nothing is under way.
    pub(super) fn is_whole(&self) -> bool {
        let etcd = self.fake.etcd.state();
        let (members, down) = (etcd.members.len(), etcd.down.len());
        drop(etcd);
        let whole = |vm: &Vm| vm.joined && vm.linked.is_some() && !vm.deleting && !vm.broken;
        members >= 3
            && members == self.vms.len()
            && down == 0
            && self.healthy().len() == members
            && self.vms.values().all(whole)
    }

    fn meaning<'w>(&self, write: &'w WriteTo, body: &Value) -> Meaning<'w> {
        let name = write.name.as_str();
        match (write.resource.as_str(), write.subresource.as_str(), write.verb) {
            ("machines", "", "delete") => Meaning::Delete(name),
            ("machines", "", "apply") if !self.vms.contains_key(name) => Meaning::Create(name),
            ("machines", "", "patch") => {
                let annotations = body["metadata"]["annotations"].as_object();
                let hook = annotations.and_then(|all| all.get(PRE_TERMINATE_HOOK));
                hook.filter(|hook| hook.is_null())
                    .map_or(Meaning::Other, |_| Meaning::Release(name))
            }
            ("kubeadmconfigs", "", "apply") if self.vms.get(name).is_none_or(|vm| vm.init.is_none()) => {
                let init = body["spec"]["joinConfiguration"].is_null();
                Meaning::Configure { name, init }
            }
            ("kubeadmcontrolplanes", "status", _) => {
                let initialized = &body["status"]["initialization"]["controlPlaneInitialized"];
                let said = initialized.as_bool().filter(|said| *said);
                said.map_or(Meaning::Other, |_| Meaning::Initialized)
            }
            _ => Meaning::Other,
        }
    }

    /// The rules that a write breaks.
    fn judge(&self, meaning: &Meaning<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        let mut rule = |holds: bool, what: String| {
            if !holds {
                broken.push(what);
            }
        };
        // All that is left of a control plane that is deleted goes at once, and of one that never came up.
        let is_free = self.is_deleting || !(self.is_initialized && self.is_known_initialized);
        match *meaning {
            Meaning::Create(name) => {
                let joins = |(_, vm): &(&String, &Vm)| !vm.joined && !vm.deleting;
                let joining: Vec<_> = self.vms.iter().filter(joins).map(|(name, _)| name).collect();
                rule(joining.is_empty(), format!("{name} is made while {joining:?} joins"));
                rule(
                    self.vms.is_empty() || self.sight.is_clear(),
                    format!("{name} is made without sight"),
                );
            }
            Meaning::Configure { name, init: true } => {
                let other = self
                    .vms
                    .iter()
                    .any(|(other, vm)| other != name && vm.init == Some(true) && !vm.joined);
                let members = self.fake.etcd.state().members.len();
                rule(members == 0 && !other, format!("{name} initializes a second cluster"));
            }
            Meaning::Delete(name) => {
                let deleting = |(other, vm): &(&String, &Vm)| *other != name && vm.deleting && vm.is_known_to_go();
                let deleting: Vec<_> = self.vms.iter().filter(deleting).map(|(name, _)| name).collect();
                rule(
                    is_free || deleting.is_empty(),
                    format!("{name} is deleted while {deleting:?} is going"),
                );
                rule(
                    is_free || self.sight.is_clear(),
                    format!("{name} is deleted without sight"),
                );
                // A Machine without its Node may not be known to lead. Its member is looked for again before it leaves.
                let member = self
                    .vms
                    .get(name)
                    .filter(|vm| vm.is_known_to_be_linked())
                    .and_then(|vm| vm.member);
                let leader = self.fake.etcd.state().leader;
                let leads = member == Some(leader) && leader == self.sight.leader;
                rule(
                    is_free || !leads || self.vms.len() == 1,
                    format!("{name} is deleted while its member leads"),
                );
            }
            Meaning::Release(name) => {
                let last = self.vms.len() == 1;
                rule(
                    is_free || last || self.sight.is_clear(),
                    format!("{name} is released without sight"),
                );
                if let (false, Err(why)) = (is_free || last, self.quorum_without(None, Some(name))) {
                    rule(false, format!("{name} is released: {why}"));
                }
            }
            Meaning::Configure { .. } | Meaning::Initialized | Meaning::Other => {}
        }
        broken
    }

    /// Whether etcd keeps its quorum without a member, or when a machine is gone.
    fn quorum_without(&self, removed: Option<MemberId>, dead: Option<&str>) -> Result<(), String> {
        let etcd = self.fake.etcd.state();
        let left = etcd.members.iter().filter(|m| votes(m) && Some(m.id) != removed);
        let left: Vec<_> = left.collect();
        let works = |m: &&&Member| self.sight.healthy.contains(&m.id) && Some(m.name.as_str()) != dead;
        let healthy = left.iter().filter(works).count();
        if quorum::holds(left.len(), healthy) {
            return Ok(());
        }
        let names: Vec<_> = left.iter().map(|m| m.name.as_str()).collect();
        Err(format!("etcd loses its quorum: {healthy} of {names:?} work"))
    }

    /// A member was removed, and etcd did not refuse: `before` is what etcd was like.
    pub(super) fn judge_removal(&mut self, id: MemberId, before: &FakeState) {
        let Some(member) = before.members.iter().find(|member| member.id == id) else {
            return;
        };
        self.tell(format!("etcd member {} {id} is removed", member.name));
        let vm = self.vms.values().find(|vm| vm.member == Some(id));
        if vm.is_some_and(|vm| !vm.deleting) {
            self.broken_rules
                .push(format!("member {} of a Machine that stays is removed", member.name));
        }
        if vm.is_some_and(Vm::is_known_to_be_linked) && before.leader == id && self.sight.leader == id {
            self.broken_rules
                .push(format!("member {} is removed while it leads", member.name));
        }
        // Members are compared with Machines: Nodes and pods tell nothing about one that is no Machine's.
        if !(self.sight.connected && self.sight.etcd) {
            self.broken_rules
                .push(format!("member {} is removed without sight", member.name));
        }
        if votes(member)
            && let Err(why) = self.quorum_without(Some(id), None)
        {
            self.broken_rules
                .push(format!("member {} is removed: {why}", member.name));
        }
    }

    fn carried_out(&mut self, meaning: &Meaning<'_>) {
        match *meaning {
            Meaning::Create(name) => {
                self.tell(format!("{name} is made"));
                self.vms.insert(name.to_owned(), Vm::default());
            }
            Meaning::Configure { name, init } => {
                if init {
                    self.tell(format!("{name} is to initialize"));
                }
                if let Some(vm) = self.vms.get_mut(name) {
                    vm.init = Some(init);
                }
            }
            Meaning::Delete(name) => {
                self.tell(format!("{name} is deleted"));
                if let Some(vm) = self.vms.get_mut(name) {
                    vm.deleting = true;
                }
            }
            Meaning::Release(name) => self.tell(format!("{name} is released")),
            Meaning::Initialized => self.is_known_initialized = true,
            Meaning::Other => {}
        }
    }
}

/// A member with a vote.
pub(super) fn votes(member: &Member) -> bool {
    !member.learner && member.is_started()
}

impl Witness for Shared {
    fn before(&self, write: &WriteTo, body: &Value) -> Vec<String> {
        let truth = self.lock();
        truth.judge(&truth.meaning(write, body))
    }

    fn after(&self, write: &WriteTo, body: &Value, noted: Vec<String>) {
        if !write.succeeded() || write.resource == "events" {
            return;
        }
        let mut truth = self.lock();
        let meaning = truth.meaning(write, body);
        truth.carried_out(&meaning);
        truth.broken_rules.extend(noted);
        let what = [write.verb, &write.resource, &write.subresource, &write.name].join(" ");
        truth.writes.push(what);
    }

    fn lag(&self, resource: &str) -> Duration {
        self.lock().trouble.lag.get(resource).copied().unwrap_or_default()
    }
}
