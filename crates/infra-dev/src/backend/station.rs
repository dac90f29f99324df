//! The control plane machines that run in a cluster, each with certificates and trusted authorities of its own.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};
use windlass_pki::LeafRequest;

use super::Authorities;
use super::authority::{Authority, Bundle};
use super::tls;

/// One control plane machine.
#[derive(Debug)]
pub(super) struct Station {
    name: String,
    /// Since when the machine is there.
    since: Timestamp,
    /// When its certificates were issued.
    issued: Timestamp,
    authorities: Authorities,
    api_server: Arc<ServerConfig>,
    /// The set-up with another certificate, for those who ask this very machine.
    shown: Option<Arc<ServerConfig>>,
    /// None where etcd runs elsewhere.
    etcd: Option<Arc<ServerConfig>>,
    /// The client of kubelets. It is made when it is needed first.
    to_kubelets: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Station {
    /// A machine that signs its own certificates, for clients that reach its API server by these hosts. With an expiry it shows a certificate
    /// that expires then.
    pub(super) fn new(
        (name, since): (&str, Timestamp),
        authorities: Authorities,
        hosts: &[String],
        expiry: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, String> {
        let etcd = authorities.etcd.as_deref().map(|authority| tls::etcd(authority, now));
        let shown = expiry.map(|expiry| tls::api_server_until(&authorities.cluster, expiry));
        Ok(Self {
            name: name.to_owned(),
            since,
            issued: now,
            api_server: tls::api_server(&authorities.cluster, hosts, now)?,
            shown: shown.transpose()?,
            etcd: etcd.transpose()?,
            authorities,
            to_kubelets: OnceLock::new(),
        })
    }

    /// The machine's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// When its certificates were issued.
    pub(super) fn issued(&self) -> Timestamp {
        self.issued
    }

    /// The authority of the cluster, as this machine has it.
    pub(super) fn authority(&self) -> &Arc<Authority> {
        &self.authorities.cluster
    }

    /// The authority of etcd, as this machine has it.
    pub(super) fn etcd_authority(&self) -> Option<&Authority> {
        self.authorities.etcd.as_deref()
    }

    /// The API server.
    pub(super) fn api_server(&self) -> &Arc<ServerConfig> {
        &self.api_server
    }

    /// The API server, for those who ask this very machine for its certificate.
    pub(super) fn shown(&self) -> &Arc<ServerConfig> {
        self.shown.as_ref().unwrap_or(&self.api_server)
    }

    /// The etcd member.
    pub(super) fn etcd(&self) -> Option<&Arc<ServerConfig>> {
        self.etcd.as_ref()
    }

    /// The API server as a client of kubelets.
    pub(super) fn to_kubelets(&self) -> Result<&Arc<ClientConfig>, String> {
        let made = self.to_kubelets.get_or_init(|| {
            let request = LeafRequest::client("kube-apiserver-kubelet-client", "system:masters");
            tls::client(None, Some((self.authority(), &request, self.issued)))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// The control plane machines of a cluster, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Roster(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    stations: Vec<Arc<Station>>,
    /// Counts connections to the cluster's address.
    next: usize,
}

impl Roster {
    /// Adds a machine, or replaces one of the same name.
    pub(super) fn add(&self, station: Station) {
        let mut turns = self.0.lock();
        turns.stations.retain(|other| other.name != station.name);
        turns.stations.push(Arc::new(station));
        turns
            .stations
            .sort_by(|one, other| (one.since, &one.name).cmp(&(other.since, &other.name)));
    }

    /// Removes a machine.
    pub(super) fn remove(&self, name: &str) {
        self.0.lock().stations.retain(|station| station.name != name);
    }

    /// The machine with that name.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Station>> {
        self.0
            .lock()
            .stations
            .iter()
            .find(|station| station.name == name)
            .cloned()
    }

    /// The machines that run.
    pub(super) fn running(&self, runs: impl Fn(&str) -> bool) -> Vec<Arc<Station>> {
        let turns = self.0.lock();
        let running = turns.stations.iter().filter(|station| runs(&station.name));
        running.cloned().collect()
    }

    /// The machine whose turn it is to answer at the cluster's address: one of those that run. The simulated API server answers also when
    /// none of them does, with the certificate of any.
    pub(super) fn next(&self, runs: impl Fn(&str) -> bool) -> Option<Arc<Station>> {
        let mut turns = self.0.lock();
        let running = turns.stations.iter().filter(|station| runs(&station.name)).count();
        let of_all = running == 0;
        let number = turns
            .next
            .checked_rem(if of_all { turns.stations.len() } else { running })?;
        turns.next = turns.next.wrapping_add(1);
        let mut able = turns.stations.iter().filter(|station| of_all || runs(&station.name));
        able.nth(number).cloned()
    }

    /// The same authorities, shared with machines that have them already.
    pub(super) fn shared(&self, authorities: &Authorities) -> Authorities {
        let turns = self.0.lock();
        let known = |own: &Arc<Authority>, of: fn(&Authorities) -> Option<&Arc<Authority>>| {
            let mut others = turns.stations.iter().filter_map(|station| of(&station.authorities));
            others.find(|other| other.is_same(own)).unwrap_or(own).clone()
        };
        let etcd = authorities.etcd.as_ref();
        Authorities {
            cluster: known(&authorities.cluster, |all| Some(&all.cluster)),
            etcd: etcd.map(|own| known(own, |all| all.etcd.as_ref())),
        }
    }

    /// The same bundle, shared with a machine that has it already.
    pub(super) fn shared_bundle(&self, bundle: Bundle) -> Arc<Bundle> {
        let turns = self.0.lock();
        let mut known = turns.stations.iter().map(|station| station.authority().trusted());
        let found = known.find(|other| ***other == bundle).map(Arc::clone);
        found.unwrap_or_else(|| Arc::new(bundle))
    }
}
