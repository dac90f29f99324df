//! Control plane machines, as the simulated cloud starts them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Authorities, Endpoint};

/// What a control plane machine did before this process started, which had another simulated etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It is a new machine.
    Nothing,
    /// It joined: kubeadm does not run on it again.
    Joined,
    /// It joined, and its etcd member was removed as the machine is being deleted. A member that is removed never comes back: nothing would
    /// remove it a second time before the machine goes, and its vote would be missing.
    Left,
}

/// A control plane machine to put behind the address of its cluster.
pub(crate) struct Member<'a> {
    /// The machine's name.
    pub(crate) name: &'a str,
    /// Its Kubernetes version.
    pub(crate) version: &'a str,
    /// What it did before this process started.
    pub(crate) before: Before,
    /// Where the Cluster says that its API server is.
    pub(crate) endpoint: &'a Endpoint,
    /// Since when the machine is there.
    pub(crate) since: Timestamp,
    /// The authorities that it came with.
    pub(crate) authorities: &'a Authorities,
    /// Its bootstrap data names an etcd that runs elsewhere.
    pub(crate) external_etcd: bool,
    /// The public keys of authorities that kubeadm accepts on it; any without pins.
    pub(crate) pins: &'a [String],
    /// kubeadm's administrator trusts all authorities on it, not only the one that signs, as its bootstrap data prepares `admin.conf`.
    pub(crate) prepared: bool,
    /// The machines of the cluster that had joined before this process started. Only the first control plane machine of a cluster is asked.
    pub(crate) others: &'a BTreeSet<String>,
}

impl Member<'_> {
    /// Whether a cluster that this machine makes has its etcd elsewhere. One that it made before, without a key for a member, had.
    pub(super) fn brings_external_etcd(&self) -> bool {
        self.external_etcd || self.before != Before::Nothing && self.authorities.etcd.is_none()
    }
}
