//! The rotation of a cluster's authorities: what is known of one that is asked for or under way.
//!
//! A user names the rotation in an annotation of the control plane. Its state is in the Secrets of the authorities, which a backup and
//! `clusterctl move` take along; see [`windlass_pki::rotation`] for the stages.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use windlass_gocompat::duration;
use windlass_pki::rotation::mark;
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
    /// The mark on the bootstrap data of each control plane Machine. One that is not here has no data.
    pub machines: BTreeMap<String, Option<String>>,
    /// Machines that are no control plane Machines.
    pub workers: Vec<Worker>,
    /// MachineDeployments of the Cluster, and the time before which their Machines are to be replaced.
    pub deployments: BTreeMap<String, Option<Timestamp>>,
    /// MachinePools of the Cluster, and [`REPLACED_FOR`].
    pub pools: BTreeMap<String, Option<String>>,
    /// When the Nodes of Machines were registered, by name. A Machine is younger than its host after a restore or a move.
    pub joined: BTreeMap<String, Timestamp>,
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
    /// Why its pair cannot be used.
    pub broken: Option<String>,
}

impl Authority {
    /// All that is trusted, as one text.
    pub fn bundle(&self) -> String {
        self.trusted.concat()
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

    /// Whether the cluster has an old and a new authority.
    pub fn trusts_both(&self) -> bool {
        let authority = self.authority(Purpose::ClusterCa);
        authority.is_some_and(|authority| authority.state.is_some() && authority.trusted.len() > 1)
    }

    /// Whether a control plane Machine was made of other authorities than there are now. Where no mark tells, its age does.
    pub fn is_outdated(&self, machine: &CpMachine) -> bool {
        let Some(state) = self.state() else {
            return false;
        };
        let begun = self.begun(machine.created, machine.node.as_deref());
        match self.machines.get(&machine.name) {
            Some(Some(mark)) => *mark != self.mark(),
            // Times are whole seconds, and one of the same second may be from before: it is replaced once in vain rather than kept.
            Some(None) => begun <= state.since,
            // A new Machine has no data yet.
            None => begun < state.since,
        }
    }

    /// Whether a control plane Machine of this stage has data of which nothing tells what it was made of: another program made it. To
    /// replace the Machine would only make another such one.
    pub fn is_unmarked(&self, machine: &CpMachine) -> bool {
        self.machines.get(&machine.name) == Some(&None) && !self.is_outdated(machine)
    }

    /// Whether a worker joined before a time.
    pub fn precedes(&self, worker: &Worker, time: Timestamp) -> bool {
        self.begun(worker.created, worker.node.as_deref()) < time
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

    /// How long tokens live that the old key signed.
    pub fn token_lifetime(&self) -> Duration {
        let named = self
            .annotations
            .get(TOKEN_LIFETIME)
            .and_then(|text| duration::parse(text));
        let nanos = named.and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map_or(DEFAULT_TOKEN_LIFETIME, Duration::from_nanos)
    }
}
