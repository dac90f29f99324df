//! The rotation of a cluster's authorities: what is known of one that is asked for or under way.
//!
//! A user names the rotation in an annotation of the control plane. Its state is in the Secrets of the authorities, which a backup and
//! `clusterctl move` take along; see [`windlass_pki::rotation`] for the stages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use windlass_gocompat::duration;
use windlass_pki::rotation::{held, mark, worker_stage};
use windlass_pki::{Purpose, RotationStage};

use crate::facts::{ControlPlane, CpMachine};

/// On the control plane, by a user: begin the rotation with this name.
pub const ROTATE: &str = "windlass.dev/rotate-authorities";
/// On the control plane, by a user: the rotation with this name may go on, as all clients have the new authorities.
pub const COMPLETE: &str = "windlass.dev/complete-rotation";
/// On the control plane: the last rotation that ended.
pub const ROTATED: &str = "windlass.dev/rotated-authorities";
/// On the control plane, by a user: how long tokens of service accounts live that are signed with the old key. A duration as `2h`.
pub const TOKEN_LIFETIME: &str = "windlass.dev/token-lifetime";
/// On a MachinePool, by a user: its instances were replaced for `NAME/STAGE` of a rotation.
pub const REPLACED_FOR: &str = "windlass.dev/replaced-for";

/// The lifetime of tokens in pods. Kubelets ask for new ones before they end.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_mins(61);

/// What is known of a rotation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rotation {
    /// The Secrets that control plane machines are made of, in the order of their files.
    pub authorities: Vec<Authority>,
    /// The mark on the administrator's kubeconfig.
    pub kubeconfig: Option<String>,
    /// The bootstrap data of each control plane Machine.
    pub machines: BTreeMap<String, Data>,
    /// Machines that are no control plane Machines.
    pub workers: Vec<Worker>,
    /// MachineDeployments of the Cluster, and the time before which their Machines are to be replaced.
    pub deployments: BTreeMap<String, Option<Timestamp>>,
    /// MachinePools of the Cluster, and [`REPLACED_FOR`].
    pub pools: BTreeMap<String, Option<String>>,
    /// When the Nodes of Machines were registered, by name. A Machine is younger than its host after a restore or a move.
    pub joined: BTreeMap<String, Timestamp>,
    /// Why that is not known.
    pub unread: Option<String>,
    /// The administrator's kubeconfig, where another than the control plane keeps it.
    pub foreign_kubeconfig: Option<ForeignKubeconfig>,
}

/// An authority. Its keys stay in the Secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Authority {
    /// What it is for.
    pub purpose: Purpose,
    /// False for one that another system brings, as that of an external etcd: it stays as it is.
    pub rotates: bool,
    /// Identity of the Secret.
    pub uid: String,
    /// Version of the Secret.
    pub resource_version: String,
    /// The control plane controls the Secret, and may make new keys.
    pub is_ours: bool,
    /// The rotation and stage on the Secret.
    pub state: Option<State>,
    /// Certificates or public keys that are trusted, PEM; the first one signs.
    pub trusted: Vec<String>,
    /// The next certificate, while both are trusted and the old one signs; or as a user brings it.
    pub next: Option<String>,
    /// Fingerprints of the certificates that were dropped, in the last stage.
    pub dropped: BTreeSet<String>,
    /// Why its pair cannot be used.
    pub broken: Option<String>,
    /// [`held`] of what its stage put into the Secret. A user who takes the annotation off accepts what is there.
    pub holds: Option<String>,
}

impl Authority {
    /// All that is trusted, as one text.
    pub fn bundle(&self) -> String {
        self.trusted.concat()
    }

    /// How the Secret differs from what its stage put there, if it does: a pair that does not fit, or certificates that nothing knows.
    pub fn altered(&self) -> Option<String> {
        let state = self.state.as_ref()?;
        if let Some(why) = &self.broken {
            return Some(why.clone());
        }
        let is_another = self
            .holds
            .as_ref()
            .map(|holds| *holds != held(self.purpose, &self.bundle()));
        let count = if state.stage == RotationStage::Dropping { 1 } else { 2 };
        if is_another.unwrap_or(self.trusted.len() != count) {
            return Some("tls.crt does not hold what the rotation put there".to_owned());
        }
        let is_next = state.stage != RotationStage::Preparing || self.next.as_ref() == self.trusted.get(1);
        (!is_next).then(|| "next.crt is not the second certificate of tls.crt any more".to_owned())
    }

    /// What signs.
    pub fn signer(&self) -> &str {
        self.trusted.first().map_or("", String::as_str)
    }
}

/// The state of a rotation, as the Secret of an authority has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Name of the rotation.
    pub name: String,
    /// How far it is.
    pub stage: RotationStage,
    /// When the stage began.
    pub since: Timestamp,
    /// Workers made before are replaced in this stage.
    pub workers: Option<Timestamp>,
}

/// A Machine that is no control plane Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// Its Node.
    pub node: Option<String>,
    /// Its MachineDeployment, as its label names it.
    pub deployment: Option<String>,
    /// Its bootstrap data.
    pub data: Data,
}

/// A kubeconfig that another than the control plane keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKubeconfig {
    /// What it trusts, PEM.
    pub trusts: String,
    /// Its client certificate is older than the authority that signs, which cannot have signed it.
    pub is_older: bool,
}

/// What is known of the bootstrap data of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// It is still to be made, of what there is then.
    Coming,
    /// Of a KubeadmConfig, with the mark of what it was made of.
    Marked(String),
    /// Of a KubeadmConfig, without a mark: it is older than the rotation, or another program made it.
    Unmarked,
    /// Nothing tells: it is gone, or of another provider, or of a user.
    Unknown,
}

impl Rotation {
    /// The furthest stage of all authorities.
    pub fn state(&self) -> Option<&State> {
        let states = self.authorities.iter().filter_map(|authority| authority.state.as_ref());
        // That of the cluster's authority among equals: it has the times.
        states.rev().max_by_key(|state| state.stage)
    }

    /// An authority.
    pub fn authority(&self, purpose: Purpose) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.purpose == purpose)
    }

    /// The mark of what is made now.
    pub fn mark(&self) -> String {
        let bundles: Vec<_> = self.authorities.iter().map(|one| (one.purpose, one.bundle())).collect();
        let stage = self.state().map_or("", |state| state.stage.as_str());
        mark(
            stage,
            bundles.iter().map(|(purpose, bundle)| (*purpose, bundle.as_str())),
        )
    }

    /// Whether the cluster has an old and a new authority, also where a user put both there or ended a rotation half-way.
    pub fn trusts_both(&self) -> bool {
        self.authority(Purpose::ClusterCa)
            .is_some_and(|authority| authority.trusted.len() > 1)
    }

    /// Whether a control plane Machine was made of other authorities than there are now. Where no mark tells, its age does.
    pub fn is_outdated(&self, machine: &CpMachine) -> bool {
        let Some(state) = self.state() else {
            return false;
        };
        let begun = self.begun(machine.created, machine.node.as_deref());
        match self.machines.get(&machine.name) {
            Some(Data::Marked(mark)) => *mark != self.mark(),
            Some(Data::Coming) => false,
            // Times are whole seconds, and one of the same second may be from before: it is replaced once in vain rather than kept.
            Some(Data::Unmarked | Data::Unknown) => begun <= state.since,
            // A new Machine is not read yet.
            None => begun < state.since,
        }
    }

    /// Whether a control plane Machine of this stage has data of which nothing tells what it was made of: another program made it. To
    /// replace the Machine would only make another such one.
    pub fn is_unmarked(&self, machine: &CpMachine) -> bool {
        self.machines.get(&machine.name) == Some(&Data::Unmarked) && !self.is_outdated(machine)
    }

    /// The mark of workers that join now.
    pub fn worker_mark(&self) -> String {
        let authority = self.authority(Purpose::ClusterCa);
        let state = authority.and_then(|authority| authority.state.as_ref());
        let (stage, workers) = state.map_or(("", None), |state| (state.stage.as_str(), state.workers));
        let workers = workers.map(|workers| workers.to_string());
        let bundle = authority.map(Authority::bundle).unwrap_or_default();
        mark(
            &worker_stage(stage, workers.as_deref()),
            [(Purpose::ClusterCa, bundle.as_str())],
        )
    }

    /// Whether a worker is to be replaced: it joined before all were called to be.
    pub fn precedes(&self, worker: &Worker, time: Timestamp) -> bool {
        match &worker.data {
            Data::Coming => false,
            // The data of a Machine whose token has vanished is made again, also where the host is up.
            Data::Marked(mark) => *mark != self.worker_mark() || worker.created < time,
            Data::Unmarked => true,
            Data::Unknown => self.is_older(worker, time),
        }
    }

    /// Whether a worker or its host was there before a time.
    pub fn is_older(&self, worker: &Worker, time: Timestamp) -> bool {
        self.begun(worker.created, worker.node.as_deref()) < time
    }

    /// Workers of which nothing tells when they joined.
    pub fn ageless(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| {
            let node = worker.node.as_ref();
            worker.data == Data::Unknown && node.is_none_or(|node| !self.joined.contains_key(node))
        })
    }

    /// When a Machine or its host began, whichever was first.
    fn begun(&self, created: Timestamp, node: Option<&str>) -> Timestamp {
        let joined = node.and_then(|node| self.joined.get(node));
        joined.map_or(created, |joined| created.min(*joined))
    }
}

impl ControlPlane {
    /// The rotation that a user asks for, unless it has ended.
    pub fn rotation_asked(&self) -> Option<&str> {
        let named = self.annotations.get(ROTATE).filter(|name| !name.is_empty())?;
        (self.annotations.get(ROTATED) != Some(named)).then_some(named)
    }

    /// Whether a rotation goes on under way: it cannot be taken back once the new authorities sign.
    pub fn keeps(&self, state: &State) -> bool {
        state.stage > RotationStage::Preparing && !self.has_ended(state) || self.rotation_asked() == Some(&state.name)
    }

    /// Whether a rotation has ended, and only its traces are left.
    pub fn has_ended(&self, state: &State) -> bool {
        self.annotations.get(ROTATED) == Some(&state.name)
    }

    /// How long tokens live that the old key signed, or why that is not known.
    pub fn token_lifetime(&self) -> Result<Duration, String> {
        let Some(text) = self.annotations.get(TOKEN_LIFETIME) else {
            return Ok(DEFAULT_TOKEN_LIFETIME);
        };
        let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok());
        nanos
            .map(Duration::from_nanos)
            .ok_or_else(|| format!("Annotation {TOKEN_LIFETIME} is {text:?}: a duration as 2h or 90m is expected"))
    }
}
