//! The authorities of the small world, and who trusts whom in it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass_controller_runtime::Seen;
use windlass_controlplane_kubeadm::facts::ControlPlane;
use windlass_controlplane_kubeadm::plan::rotation::{Signer, StageChange};
use windlass_controlplane_kubeadm::plan::{Action, WorkloadChange};
use windlass_controlplane_kubeadm::rotation::{Authority, Data, Rotation, State, Worker};
use windlass_pki::rotation::{blocks, fingerprints, held};
use windlass_pki::{Purpose, RotationStage};

/// A PEM text whose content is its name in Base64.
pub(crate) fn pem(name: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
}

/// The authority from the beginning.
pub(crate) fn old() -> String {
    pem("b2xk")
}

/// What the first rotation makes.
pub(crate) fn fresh() -> String {
    pem("bmV3")
}

/// An authority of a user, for clients of their own.
pub(crate) fn foreign() -> String {
    pem("Zm9yZWlnbg==")
}

/// Times of creation are whole seconds.
fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

/// What a machine took along when it was made.
#[derive(Clone, Debug, PartialEq)]
struct Machine {
    /// What it trusts.
    trusts: String,
    /// Who may have signed its client certificate.
    clients: BTreeSet<String>,
    /// What its API server trusts, and who signed the certificate of that.
    api_server: Option<(String, String)>,
}

/// Authorities, and what was made of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Authorities {
    pub(crate) rotation: Rotation,
    pub(crate) cluster_info: String,
    /// What aggregated API servers trust.
    pub(crate) extensions: BTreeSet<String>,
    /// What is answered instead when it is read.
    pub(crate) instead: Option<Seen<BTreeSet<String>>>,
    /// What the administrator's kubeconfig trusts, and who signed its certificate.
    pub(crate) kubeconfig: (String, String),
    machines: BTreeMap<String, Machine>,
}

impl Default for Authorities {
    fn default() -> Self {
        let authority = |purpose| Authority {
            purpose,
            rotates: true,
            uid: String::new(),
            resource_version: String::new(),
            is_ours: true,
            state: None,
            trusted: vec![old()],
            next: None,
            dropped: BTreeSet::new(),
            broken: None,
            holds: None,
        };
        Self {
            rotation: Rotation {
                authorities: Purpose::CONTROL_PLANE.map(authority).into(),
                ..Rotation::default()
            },
            cluster_info: old(),
            extensions: BTreeSet::from([old(), foreign()]),
            instead: None,
            kubeconfig: (old(), old()),
            machines: BTreeMap::new(),
        }
    }
}

impl Authorities {
    /// As the controller reads them.
    pub(crate) fn facts(&self, control_plane: &ControlPlane) -> Option<Rotation> {
        let is_known =
            control_plane.rotation_asked().is_some() || self.rotation.state().is_some() || self.rotation.trusts_both();
        is_known.then(|| self.rotation.clone())
    }

    pub(crate) fn authority(&self, purpose: Purpose) -> &Authority {
        self.rotation.authority(purpose).unwrap()
    }

    fn authority_mut(&mut self, purpose: Purpose) -> &mut Authority {
        let mut all = self.rotation.authorities.iter_mut();
        all.find(|one| one.purpose == purpose).unwrap()
    }

    /// The stage of each authority.
    pub(crate) fn stages(&self) -> Vec<Option<RotationStage>> {
        let all = self.rotation.authorities.iter();
        all.map(|one| one.state.as_ref().map(|state| state.stage)).collect()
    }

    /// A machine joins with the authorities of now.
    pub(crate) fn join(&mut self, name: &str, control_plane: bool, now: Timestamp) {
        self.rotation.joined.insert(name.to_owned(), second(now));
        let signers = self.machines.values().filter_map(|machine| machine.api_server.as_ref());
        let ca = self.authority(Purpose::ClusterCa);
        let own = control_plane.then(|| (ca.bundle(), ca.signer().to_owned()));
        let clients: BTreeSet<String> = signers.chain(&own).map(|(_, signer)| signer.clone()).collect();
        if control_plane {
            let state = ca.state.is_some();
            let mark = if state {
                Data::Marked(self.rotation.mark())
            } else {
                Data::Unmarked
            };
            self.rotation.machines.insert(name.to_owned(), mark);
        }
        let machine = Machine {
            trusts: self.cluster_info.clone(),
            clients,
            api_server: own,
        };
        self.machines.insert(name.to_owned(), machine);
        self.merge();
    }

    /// API servers add what they trust to what aggregated API servers trust.
    fn merge(&mut self) {
        let servers = self.machines.values().filter_map(|machine| machine.api_server.as_ref());
        let known = servers.flat_map(|(known, _)| blocks(known).unwrap());
        self.extensions.extend(known);
    }

    pub(crate) fn extension_authorities(&self) -> Seen<BTreeSet<String>> {
        let all: String = self.extensions.iter().map(String::as_str).collect();
        let found = || Seen::Found(fingerprints(&all).unwrap());
        self.instead.clone().unwrap_or_else(found)
    }

    pub(crate) fn leave(&mut self, name: &str) {
        self.machines.remove(name);
        self.rotation.machines.remove(name);
        self.rotation.joined.remove(name);
        self.rotation.workers.retain(|worker| worker.name != name);
    }

    /// A worker of the MachineDeployment `md`.
    pub(crate) fn add_worker(&mut self, name: &str, now: Timestamp) {
        self.rotation.deployments.entry("md".to_owned()).or_default();
        self.rotation.workers.push(Worker {
            name: name.to_owned(),
            created: second(now),
            node: Some(name.to_owned()),
            deployment: Some("md".to_owned()),
            data: if self.rotation.state().is_some() {
                Data::Marked(self.rotation.worker_mark())
            } else {
                Data::Unmarked
            },
        });
        self.join(name, false, now);
    }

    /// The MachineDeployment replaces one worker, if one is to be replaced.
    pub(crate) fn roll(&mut self, now: Timestamp) {
        let after = self.rotation.deployments.get("md").copied().flatten();
        let Some(after) = after.filter(|after| *after <= now) else {
            return;
        };
        let outdated = self.rotation.workers.iter().find(|worker| worker.created < after);
        if let Some(name) = outdated.map(|worker| worker.name.clone()) {
            self.leave(&name);
            self.add_worker(&format!("{name}+"), now);
        }
    }

    /// The Cluster is moved to another management cluster: all Machines are made again there, and their hosts stay.
    pub(crate) fn moved(&mut self, now: Timestamp) {
        for worker in &mut self.rotation.workers {
            worker.created = second(now);
            // Its Node is found again later.
            worker.node = None;
        }
    }

    /// The Nodes of Machines are found again.
    pub(crate) fn found_again(&mut self) {
        for worker in &mut self.rotation.workers {
            worker.node = Some(worker.name.clone());
        }
    }

    /// Does an action of a rotation.
    pub(crate) fn act(&mut self, action: &Action) {
        match action {
            Action::StageAuthority(change) => self.stage(change),
            Action::MarkWorkers { before, .. } => {
                let state = self.authority_mut(Purpose::ClusterCa).state.as_mut();
                state.unwrap().workers = Some(*before);
            }
            Action::Workload(WorkloadChange::ClusterInfo { authorities }) => self.cluster_info.clone_from(authorities),
            Action::Workload(WorkloadChange::DropExtensionAuthorities { fingerprints: dropped }) => {
                self.extensions
                    .retain(|one| fingerprints(one).unwrap().is_disjoint(dropped));
                self.merge();
            }
            Action::RotateKubeconfig(rotated) => {
                let ca = self.authority(Purpose::ClusterCa);
                let signer = match rotated.signer {
                    Signer::Current => ca.signer().to_owned(),
                    Signer::Next => ca.next.clone().unwrap(),
                };
                self.kubeconfig = (rotated.authorities.clone(), signer);
                self.rotation.kubeconfig = Some(rotated.mark.clone());
            }
            Action::RollOut { deployment, after } => {
                self.rotation.deployments.insert(deployment.clone(), Some(*after));
            }
            other => panic!("{other:?}"),
        }
    }

    fn stage(&mut self, change: &StageChange) {
        let authority = self.authority_mut(change.purpose);
        let signer = authority.signer().to_owned();
        authority.dropped.clear();
        if change.to == Some(RotationStage::Dropping) {
            let others = authority.trusted.iter().skip(1);
            authority.dropped = others.flat_map(|one| fingerprints(one).unwrap()).collect();
        }
        match change.to {
            Some(RotationStage::Preparing) => {
                assert_eq!(change.makes_pair, authority.next.is_none());
                assert!(!change.keeps_next);
                let next = authority.next.clone().unwrap_or_else(fresh);
                authority.trusted = vec![signer, next.clone()];
                authority.next = Some(next);
            }
            Some(RotationStage::Completing) => {
                authority.trusted = vec![authority.next.take().unwrap(), signer];
            }
            Some(RotationStage::Renewing) => {}
            Some(RotationStage::Dropping) | None => {
                authority.trusted = vec![signer];
                authority.next = authority.next.take().filter(|_| change.keeps_next);
            }
        }
        authority.holds = change.to.map(|_| held(change.purpose, &authority.bundle()));
        authority.state = change.to.map(|stage| State {
            name: change.name.clone(),
            stage,
            since: change.since,
            workers: None,
        });
    }

    /// All clients of an API server trust it, and are known there. Kubelets of control plane machines may talk to their own alone.
    pub(crate) fn check(&self, local_kubelets: bool) {
        for (name, machine) in &self.machines {
            let Some((known, signer)) = &machine.api_server else {
                continue;
            };
            let elsewhere = |of: &str, other: &Machine| local_kubelets && other.api_server.is_some() && of != name;
            let kubelets = self.machines.iter().filter(|(of, other)| !elsewhere(of, other));
            for (kubelet, other) in kubelets {
                assert!(
                    other.trusts.contains(signer.as_str()),
                    "{kubelet} does not trust {name}: {self:#?}"
                );
                let clients = other.clients.iter();
                let unknown: Vec<_> = clients.filter(|client| !known.contains(client.as_str())).collect();
                assert!(unknown.is_empty(), "{name} does not know {kubelet}: {self:#?}");
            }
            let (trusted, client) = &self.kubeconfig;
            assert!(
                trusted.contains(signer.as_str()),
                "the administrator does not trust {name}: {self:#?}"
            );
            assert!(
                known.contains(client.as_str()),
                "{name} does not know the administrator: {self:#?}"
            );
        }
    }
}
