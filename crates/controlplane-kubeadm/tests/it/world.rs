//! A small world: Machines that come up step by step, an etcd, and a control plane that asks for them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};
use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_controller_runtime::{Decision, Moment, Seen};
use windlass_controlplane_kubeadm::core_dns::{BACKUP, COREFILE, CoreDns, CoreDnsChange, CoreDnsObjects, Corefile};
use windlass_controlplane_kubeadm::desired::has_local_kubelets;
use windlass_controlplane_kubeadm::facts::{
    Answers, Certificate, Cluster, Control, ControlPlane, CpMachine, Etcd, Facts, Kubeconfig, NodeFacts, PodFacts,
    Reached, SecretFacts, TemplateRef,
};
use windlass_controlplane_kubeadm::names::PRE_TERMINATE_HOOK;
use windlass_controlplane_kubeadm::plan::in_place::Update;
use windlass_controlplane_kubeadm::plan::{Action, NewMachine, Plan, WorkloadChange, plan};
use windlass_controlplane_kubeadm::status::{Done, status};
use windlass_etcd::{Member, MemberId, quorum};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey, Purpose};
use windlass_runtime_client::in_place::InPlace;

use crate::authorities::Authorities;

pub(crate) fn start() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

/// An authority that was made at a time. Worlds share its key.
pub(crate) fn authority_of(made: Timestamp) -> CertificateAuthority {
    static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap());
    let request = CaRequest {
        common_name: "kubernetes".into(),
        days: 3650,
    };
    CertificateAuthority::self_signed(&request, KEY.clone(), made).unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) control_plane: ControlPlane,
    pub(crate) cluster: Cluster,
    pub(crate) machines: BTreeMap<String, CpMachine>,
    /// How far each Machine has come: 0 made, 1 identity, 2 member and Node, 3 pods run.
    pub(crate) progress: BTreeMap<String, u8>,
    pub(crate) members: Vec<Member>,
    pub(crate) leader: MemberId,
    pub(crate) alarms: Vec<windlass_etcd::Alarm>,
    pub(crate) template: Value,
    pub(crate) certificates: bool,
    /// The client certificate in the kubeconfig, and the server.
    pub(crate) kubeconfig: Option<(windlass_pki::Certificate, String)>,
    /// What signs client certificates.
    pub(crate) authority: CertificateAuthority,
    pub(crate) workers: Vec<String>,
    pub(crate) pools: Vec<String>,
    pub(crate) reachable: bool,
    /// Since when it does not answer, and its last answer; none while no attempt was made.
    pub(crate) outage: Option<(Timestamp, Option<Timestamp>)>,
    pub(crate) kube_proxy: String,
    pub(crate) core_dns: Option<CoreDns>,
    pub(crate) corefile: Option<Corefile>,
    pub(crate) kubeadm_dns: Value,
    /// What is answered when a Machine could be updated in place.
    pub(crate) in_place: InPlace,
    /// Whether the API server has the control plane as deleted while caches do not show it.
    pub(crate) deleted_meanwhile: Result<bool, String>,
    pub(crate) finalizer: bool,
    /// Machines whose node is broken: pods not ready.
    pub(crate) broken: Vec<String>,
    /// A Machine with a Node that is not linked to it.
    pub(crate) unlinked: Option<String>,
    pub(crate) last_status: Value,
    pub(crate) trust: Authorities,
    counter: u64,
}

impl World {
    pub(crate) fn new(replicas: i32) -> Self {
        Self {
            now: start(),
            control_plane: ControlPlane {
                name: "cp".into(),
                namespace: "default".into(),
                uid: "cp-uid".into(),
                generation: 1,
                replicas,
                version: "v1.35.0".into(),
                max_surge: 1,
                managed_etcd: true,
                template: TemplateRef {
                    group: "infrastructure.cluster.x-k8s.io".into(),
                    kind: "DevMachineTemplate".into(),
                    name: "tmpl".into(),
                },
                kubeadm: json!({
                    "clusterConfiguration": { "apiServer": { "certSANs": ["localhost"] } },
                    "initConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/c.sock" } },
                    "joinConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/c.sock" } },
                }),
                ..ControlPlane::default()
            },
            cluster: Cluster {
                name: "demo".into(),
                uid: "demo-uid".into(),
                refers_here: true,
                infrastructure_provisioned: true,
                endpoint: Some(("127.0.0.1".into(), 6443)),
                ..Cluster::default()
            },
            machines: BTreeMap::new(),
            progress: BTreeMap::new(),
            members: Vec::new(),
            leader: MemberId::default(),
            alarms: Vec::new(),
            template: json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachineTemplate",
                "metadata": {
                    "name": "tmpl", "namespace": "default", "uid": "t",
                    "ownerReferences": [{ "kind": "Cluster", "name": "demo", "uid": "demo-uid" }],
                },
                "spec": { "template": { "spec": { "backend": { "inMemory": {} } } } },
            }),
            certificates: false,
            kubeconfig: None,
            authority: authority_of(start()),
            workers: Vec::new(),
            pools: Vec::new(),
            reachable: true,
            outage: Some((start(), None)),
            in_place: InPlace::Impossible("no extension".to_owned()),
            kube_proxy: "registry.k8s.io/kube-proxy:v1.35.0".into(),
            core_dns: None,
            corefile: None,
            kubeadm_dns: Value::Null,
            deleted_meanwhile: Ok(false),
            finalizer: true,
            broken: Vec::new(),
            unlinked: None,
            last_status: Value::Null,
            trust: Authorities::default(),
            counter: 0,
        }
    }

    /// A world at rest with that many Machines.
    pub(crate) fn settled(replicas: i32) -> Self {
        let mut world = Self::new(replicas);
        world.run();
        world
    }

    pub(crate) fn facts(&self) -> Facts {
        let secret = || {
            if self.certificates {
                Seen::Found(SecretFacts {
                    generated: true,
                    ..SecretFacts::default()
                })
            } else {
                Seen::NotFound
            }
        };
        Facts {
            control_plane: self.control_plane.clone(),
            cluster: self.cluster.clone(),
            machines: self.machines.values().cloned().map(Arc::new).collect(),
            unowned: Vec::new(),
            workers: self.workers.clone(),
            pools: self.pools.clone(),
            template: Seen::Found(self.template.clone()),
            certificates: Purpose::CONTROL_PLANE
                .into_iter()
                .map(|purpose| Certificate {
                    purpose,
                    can_generate: true,
                    secret: secret(),
                })
                .collect(),
            kubeconfig: match &self.kubeconfig {
                Some((certificate, server)) => Kubeconfig::Found {
                    secret: SecretFacts::default(),
                    expires: Some(certificate.not_after()),
                    server: Some(server.clone()),
                },
                None => Kubeconfig::Missing,
            },
            rotation: self.trust.facts(&self.control_plane),
            workload: self.workload(),
            answers: Answers::default(),
            suffix: format!("{:05}", self.counter),
        }
    }

    /// What is planned now.
    pub(crate) fn plan(&self) -> Plan {
        self.plan_at(&Moment::at(self.now))
    }

    /// What is planned, with the answers to what the plan asks.
    pub(crate) fn plan_at(&self, now: &Moment) -> Plan {
        let mut facts = self.facts();
        // As often as the driver answers.
        for _ in 0..2 {
            let question = match plan(&facts, now) {
                Decision::Plan(plan) => return plan,
                Decision::Ask(question) => question,
            };
            let expiry: Timestamp = "2027-11-21T10:00:00Z".parse().unwrap();
            let nodes = question.certificates.into_iter();
            let answers = &mut facts.answers;
            answers.certificates.extend(nodes.map(|(node, _)| (node, Ok(expiry))));
            if question.deleted {
                answers.deleted = Some(self.deleted_meanwhile.clone());
            }
            if question.in_place.is_some() {
                answers.in_place = Some(self.in_place.clone());
            }
            if question.kube_proxy {
                answers.kube_proxy = Some(Seen::Found(self.kube_proxy.clone()));
            }
            if question.cluster_info {
                answers.cluster_info = Some(Seen::Found(self.trust.cluster_info.clone()));
            }
            if question.extension_authorities {
                answers.extension_authorities = Some(self.trust.extension_authorities());
            }
            if question.core_dns {
                answers.core_dns = Some(seen(self.core_dns.as_ref()));
            }
            if question.unfinished_core_dns {
                let unfinished = self.core_dns.as_ref().filter(|found| found.is_unfinished());
                answers.core_dns = Some(seen(unfinished));
            }
            if question.core_dns_objects {
                let objects = self.core_dns.clone().zip(self.corefile.clone());
                let objects = objects.map(|(deployment, corefile)| CoreDnsObjects { deployment, corefile });
                answers.core_dns_objects = Some(seen(objects.as_ref()));
            }
        }
        match plan(&facts, now) {
            Decision::Plan(plan) => plan,
            Decision::Ask(question) => panic!("still asks for {question:?}"),
        }
    }

    fn workload(&self) -> Workload<Reached> {
        let up = self.progress.values().any(|p| *p >= 3);
        if !up && self.reachable {
            return Workload::NotTried("no attempt was made yet".into());
        }
        if !self.reachable {
            let Some((since, last_success)) = self.outage else {
                return Workload::NotTried("no attempt was made yet".into());
            };
            return Workload::Down(Outage {
                since,
                last_success,
                why: "no answer".into(),
                grace: GracePeriods::default(),
            });
        }
        Workload::Up(Reached {
            kubeadm_config: Ok(true),
            nodes: Ok(self.nodes()),
            pods: Ok(self.pods()),
            etcd: Etcd::Members {
                members: self.members.clone(),
                alarms: self.alarms.clone(),
                leader: self.leader,
            },
        })
    }

    fn nodes(&self) -> Vec<NodeFacts> {
        let nodes = self.machines.values().filter_map(|m| m.node.clone());
        let nodes = nodes.chain(self.unlinked.clone());
        nodes
            .map(|name| NodeFacts {
                provider_id: Some(format!("sim://{name}")),
                role_label: true,
                role_taint: true,
                ready: Some("True".into()),
                created: Some(start()),
                name,
                ..NodeFacts::default()
            })
            .collect()
    }

    fn pods(&self) -> BTreeMap<String, PodFacts> {
        let mut pods = BTreeMap::new();
        for (name, progress) in &self.progress {
            if *progress < 3 {
                continue;
            }
            for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"] {
                let ready = !self.broken.contains(name);
                pods.insert(
                    format!("{component}-{name}"),
                    PodFacts {
                        phase: "Running".into(),
                        true_conditions: ready.then(|| "Ready".to_owned()).into_iter().collect(),
                        ..PodFacts::default()
                    },
                );
            }
        }
        pods
    }

    /// One reconcile; `limit` actions are done before it is interrupted. Says what was planned.
    pub(crate) fn reconcile(&mut self, limit: usize) -> Plan {
        let facts = self.facts();
        let planned = self.plan();
        let disruptive = planned.actions.iter().filter(|a| a.disruptive()).count();
        assert!(disruptive <= 1, "{:?}", planned.actions);
        for action in planned.actions.iter().take(limit) {
            self.act(action);
            self.check();
        }
        if limit >= planned.actions.len() {
            let status = status(&facts, &planned, &Done::default(), &Moment::at(self.now));
            self.control_plane.initialized = status["initialization"]["controlPlaneInitialized"] == true;
            self.control_plane.conditions = serde_json::from_value(status["conditions"].clone()).unwrap();
            self.control_plane.legacy_conditions =
                serde_json::from_value(status["deprecated"]["v1beta1"]["conditions"].clone()).unwrap();
            self.last_status = status;
        }
        planned
    }

    pub(crate) fn write_kubeconfig(&mut self, server: &str) {
        let request = LeafRequest::administrator();
        let leaf = self.authority.issue(&request, self.authority.key(), self.now).unwrap();
        self.kubeconfig = Some((leaf, server.to_owned()));
    }

    pub(crate) fn act(&mut self, action: &Action) {
        match action {
            Action::OwnTemplate { .. }
            | Action::OwnSecret { .. }
            | Action::Workload(WorkloadChange::KubeadmConfig { .. } | WorkloadChange::Rbac { .. })
            | Action::ChangeMetadata { .. } => {}
            Action::CreateCertificate { .. } => self.certificates = true,
            Action::WriteKubeconfig { server, .. } => self.write_kubeconfig(server),
            Action::ApplyMachine { name, object } => {
                let machine = self.machines.get_mut(name).unwrap();
                // Others own the marks of an update.
                let marks = [UPDATE_IN_PROGRESS, PENDING_HOOKS].map(|key| machine.annotations.remove_entry(key));
                machine.annotations = serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap();
                machine.annotations.extend(marks.into_iter().flatten());
                machine.deletion = object["spec"]["deletion"].clone();
            }
            Action::PatchMachine { name, patch } => {
                let machine = self.machines.get_mut(name).unwrap();
                if patch["metadata"]["ownerReferences"].is_array() {
                    machine.owners = serde_json::from_value(patch["metadata"]["ownerReferences"].clone()).unwrap();
                    machine.control = Control::Ours;
                } else {
                    let limits = machine.deletion.as_object_mut().unwrap();
                    limits.extend(patch["spec"]["deletion"].as_object().unwrap().clone());
                    limits.retain(|_, limit| !limit.is_null());
                }
            }
            Action::CreateMachine(new) => self.create(new),
            Action::BeginUpdate(update) => self.begin_update(update),
            Action::SetMachineConditions { name, conditions, .. } => {
                let machine = self.machines.get_mut(name).unwrap();
                machine
                    .conditions
                    .retain(|old| !conditions.iter().any(|new| new.type_ == old.type_));
                machine.conditions.extend(conditions.iter().cloned());
            }
            Action::DeleteMachine { name, leader, .. } => {
                self.move_leader(leader.as_ref().map(|l| l.to[0].0));
                let node = self.machines[name].node.clone();
                let leads = self
                    .members
                    .iter()
                    .any(|m| m.id == self.leader && Some(&m.name) == node.as_ref());
                assert!(!leads, "{name} is deleted while its member leads");
                self.machines.get_mut(name).unwrap().deleted = Some(self.now);
            }
            Action::ReleaseMachine { name, leader, member } => {
                self.move_leader(leader.as_ref().map(|l| l.to[0].0));
                if let Some(leaving) = member {
                    assert_ne!(self.leader, leaving.id, "the leader is removed");
                    assert!(!leaving.through.contains(&leaving.name));
                    self.members.retain(|m| m.id != leaving.id);
                }
                let machine = self.machines.get_mut(name).unwrap();
                machine.annotations.remove(PRE_TERMINATE_HOOK);
            }
            Action::RemoveMember(leaving) => self.members.retain(|m| m.id != leaving.id),
            Action::TearDownMachine { name, .. } => {
                let machine = self.machines.get_mut(name).unwrap();
                machine.annotations.remove(PRE_TERMINATE_HOOK);
                machine.deleted = machine.deleted.or(Some(self.now));
            }
            Action::Annotate { key, value } => {
                match value {
                    Some(value) => self.control_plane.annotations.insert((*key).into(), value.clone()),
                    None => self.control_plane.annotations.remove(*key),
                };
            }
            Action::Workload(WorkloadChange::KubeProxyImage { image }) => self.kube_proxy.clone_from(image),
            Action::Workload(WorkloadChange::KubeadmDns { dns, .. }) => self.kubeadm_dns.clone_from(dns),
            Action::Workload(WorkloadChange::CoreDns(change)) => self.change_core_dns(change),
            Action::RecordExpiry { config, .. } => {
                if let Seen::Found(object) = &mut self.machines.get_mut(config).unwrap().config {
                    object["metadata"]["annotations"]["machine.cluster.x-k8s.io/certificates-expiry"] = json!("2027");
                }
            }
            Action::StageAuthority(_)
            | Action::MarkWorkers { .. }
            | Action::Workload(WorkloadChange::ClusterInfo { .. } | WorkloadChange::DropExtensionAuthorities { .. })
            | Action::RotateKubeconfig(_)
            | Action::RollOut { .. } => self.trust.act(action),
            Action::RemoveFinalizer => self.finalizer = false,
        }
    }

    fn change_core_dns(&mut self, change: &CoreDnsChange) {
        match change {
            CoreDnsChange::Corefile { data, resource_version } => {
                let corefile = self.corefile.as_mut().unwrap();
                assert_eq!(corefile.resource_version, *resource_version);
                corefile.resource_version.push('+');
                for (key, text) in data {
                    let text = Some(text.clone());
                    match *key {
                        COREFILE => corefile.text = text,
                        BACKUP => corefile.backup = text,
                        other => panic!("{other}"),
                    }
                }
            }
            CoreDnsChange::Deployment {
                resource_version,
                image,
                items,
            } => {
                let found = self.core_dns.as_mut().unwrap();
                assert_eq!(found.resource_version, *resource_version);
                found.resource_version.push('+');
                found.image = image.clone().unwrap_or_else(|| found.image.clone());
                found.items = items.clone().unwrap_or_else(|| found.items.clone());
            }
        }
    }

    /// The marks stay until a test ends the update.
    fn begin_update(&mut self, update: &Update) {
        let machine = self.machines.get_mut(&update.name).unwrap();
        update.machine["spec"]["version"]
            .as_str()
            .unwrap()
            .clone_into(&mut machine.version);
        machine.infra = Seen::Found(update.infra.clone());
        machine.config = Seen::Found(update.config.clone());
        for patch in update.mark.iter().chain([&update.hook]) {
            let new = patch["metadata"]["annotations"].as_object().unwrap().clone();
            let new = new
                .into_iter()
                .map(|(key, value)| (key, value.as_str().unwrap().to_owned()));
            machine.annotations.extend(new);
        }
    }

    /// The extension has made the changes, and the Machine's controller takes the marks away.
    pub(crate) fn end_updates(&mut self) {
        for machine in self.machines.values_mut() {
            machine.annotations.remove(UPDATE_IN_PROGRESS);
            machine.annotations.remove(PENDING_HOOKS);
            machine.kubelet_version = machine.node.as_ref().map(|_| machine.version.clone());
        }
    }

    fn move_leader(&mut self, to: Option<MemberId>) {
        if let Some(to) = to {
            assert!(self.members.iter().any(|m| m.id == to), "the new leader is no member");
            self.leader = to;
        }
    }

    fn create(&mut self, new: &NewMachine) {
        self.counter += 1;
        let name = new.name.clone();
        if let Some(object) = &new.machine {
            let spec = &object["spec"];
            let machine = CpMachine {
                name: name.clone(),
                uid: format!("{name}-uid"),
                resource_version: String::new(),
                control: Control::Ours,
                owners: Vec::new(),
                generation: 1,
                created: self.now,
                deleted: None,
                labels: serde_json::from_value(object["metadata"]["labels"].clone()).unwrap(),
                annotations: serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap(),
                has_finalizer: true,
                version: spec["version"].as_str().unwrap().into(),
                failure_domain: spec["failureDomain"].as_str().map(str::to_owned),
                provider_id: None,
                infra_ref: spec["infrastructureRef"].clone(),
                config_ref: spec["bootstrap"]["configRef"].clone(),
                deletion: spec["deletion"].clone(),
                taints: Value::Null,
                node: None,
                kubelet_version: None,
                conditions: Vec::new(),
                legacy_ready: None,
                certificates_expiry: None,
                infrastructure_provisioned: false,
                bootstrap_created: false,
                conditions_age: None,
                config: Seen::NotFound,
                infra: Seen::NotFound,
            };
            assert!(
                self.machines.insert(name.clone(), machine).is_none(),
                "{name} made twice"
            );
            self.progress.insert(name.clone(), 0);
            self.trust.join(&name, true, self.now);
        }
        let machine = self.machines.get_mut(&name).unwrap();
        if let Some(config) = &new.config {
            machine.config = Seen::Found(config.clone());
        }
        if let Some(infra) = &new.infra {
            machine.infra = Seen::Found(infra.clone());
        }
    }

    /// Moves one Machine one step on; false when it rests.
    pub(crate) fn advance(&mut self, name: &str) -> bool {
        let machine = self.machines.get_mut(name).unwrap();
        if machine.deleted.is_some() {
            if machine.annotations.contains_key(PRE_TERMINATE_HOOK) {
                return set(
                    &mut machine.conditions,
                    "Deleting",
                    "True",
                    "WaitingForPreTerminateHook",
                    self.now,
                );
            }
            self.machines.remove(name);
            self.progress.remove(name);
            self.trust.leave(name);
            return true;
        }
        if machine.config.is_not_found() || machine.infra.is_not_found() {
            return false;
        }
        let progress = self.progress.get_mut(name).unwrap();
        match *progress {
            0 => {
                machine.provider_id = Some(format!("sim://{name}"));
                machine.infrastructure_provisioned = true;
                machine.bootstrap_created = true;
            }
            1 => {
                machine.node = Some(name.to_owned());
                machine.kubelet_version = Some(machine.version.clone());
                self.counter += 1;
                let id = MemberId(self.counter);
                self.members.push(Member {
                    id,
                    name: name.to_owned(),
                    ..Member::default()
                });
                if self.members.len() == 1 {
                    self.leader = id;
                }
            }
            2 => {
                set(&mut machine.conditions, "Ready", "True", "Ready", self.now);
                set(&mut machine.conditions, "Available", "True", "Available", self.now);
            }
            _ => return false,
        }
        *progress += 1;
        true
    }

    /// etcd keeps its quorum: members of Machines that are gone count as dead.
    pub(crate) fn check(&self) {
        self.trust.check(has_local_kubelets(&self.control_plane));
        let alive = |m: &&Member| self.machines.contains_key(&m.name) && !self.broken.contains(&m.name);
        let healthy = self.members.iter().filter(alive).count();
        let voters = self.members.len();
        if voters > 0 && !self.control_plane.deleting {
            assert!(
                quorum::holds(voters, healthy),
                "quorum lost: {:?}, Machines {:?}",
                self.members,
                self.machines.keys()
            );
        }
    }

    /// Until nothing moves any more. Returns the number of reconciles.
    pub(crate) fn run(&mut self) -> usize {
        for round in 1..200 {
            self.now += SignedDuration::from_secs(1);
            let before = format!("{self:?}");
            self.reconcile(usize::MAX);
            let names: Vec<String> = self.machines.keys().cloned().collect();
            for name in names {
                self.advance(&name);
                self.check();
            }
            let after = format!("{self:?}");
            if before == after {
                return round;
            }
        }
        panic!("never rests: {:?}", self.plan().actions);
    }

    pub(crate) fn versions(&self) -> Vec<&str> {
        self.machines.values().map(|m| m.version.as_str()).collect()
    }
}

pub(crate) fn set(conditions: &mut Vec<Condition>, kind: &str, status: &str, reason: &str, now: Timestamp) -> bool {
    let new = Condition {
        type_: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: Time(now),
        observed_generation: None,
    };
    match conditions.iter_mut().find(|c| c.type_ == kind) {
        Some(old) if old.status == status && old.reason == reason => false,
        Some(old) => {
            *old = new;
            true
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

fn seen<T: Clone>(found: Option<&T>) -> Seen<T> {
    found.map_or(Seen::NotFound, |found| Seen::Found(found.clone()))
}
