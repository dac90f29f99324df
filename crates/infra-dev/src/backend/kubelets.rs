//! Kubelets and API servers as clients of each other: who trusts whom is found out by handshakes.
//!
//! A kubelet has a client certificate of the authority that signed when it registered, and trusts the authorities that it found then, as
//! servers and as clients. It never looks again.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::{ClientConfig, ServerConfig};
use windlass_meta::KubernetesVersion;
use windlass_pki::LeafRequest;

use super::authority::{Authority, Bundle};
use super::nodes::{Kubelet as Report, NodeSpec, kubeadm_version};
use super::station::Station;
use super::tls;

/// Why a kubelet and an API server do not get on, and what the Node shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What is to be seen.
    pub(super) report: Report,
    /// The reason, without key material.
    pub(super) why: String,
}

/// The set-ups of a kubelet, as a client and as a server.
type Sides = (Arc<ClientConfig>, Arc<ServerConfig>);

/// One kubelet.
#[derive(Debug)]
pub(super) struct Kubelet {
    name: String,
    /// Whether it talks to the API server of its own machine only, as those of control plane machines since v1.31.
    is_local: bool,
    signer: Arc<Authority>,
    trust: Arc<Bundle>,
    issued: Timestamp,
    /// Its set-ups as a client and as a server. They are made when they are needed first.
    tls: OnceLock<Result<Sides, String>>,
    known: Mutex<Known>,
}

/// What is known of a kubelet.
#[derive(Debug, Default)]
struct Known {
    /// The handshakes with machines.
    checked: Vec<(Weak<Station>, Option<Refusal>)>,
    /// What its Node shows.
    shown: Report,
}

impl Kubelet {
    /// A kubelet whose certificate is signed by `signer`, and that trusts a bundle.
    pub(super) fn new(node: &NodeSpec, signer: Arc<Authority>, trust: Arc<Bundle>, now: Timestamp) -> Self {
        let version = KubernetesVersion::parse_tolerant(kubeadm_version(&node.version));
        Self {
            name: node.name.clone(),
            is_local: node.control_plane && version.is_ok_and(|version| version.at_least_minor(1, 31)),
            signer,
            trust,
            issued: now,
            tls: OnceLock::new(),
            known: Mutex::default(),
        }
    }

    /// The Node's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What the Node shows.
    fn shown(&self) -> Report {
        self.known.lock().shown
    }

    /// The Node shows this from now on.
    pub(super) fn show(&self, report: Report) {
        self.known.lock().shown = report;
    }

    /// Whether kubelet and machine get on, by handshakes that are made once for each pair.
    async fn check(&self, station: &Arc<Station>, host: &str) -> Option<Refusal> {
        let same = self.signer.is_same(station.authority());
        if same && station.authority().is_all_of(&self.trust, self.issued) {
            return None;
        }
        let of_station = Arc::downgrade(station);
        {
            let mut known = self.known.lock();
            known.checked.retain(|(other, _)| other.strong_count() > 0);
            let found = known.checked.iter().find(|(other, _)| other.ptr_eq(&of_station));
            if let Some((_, verdict)) = found {
                return verdict.clone();
            }
        }
        let verdict = self.talk(station, host).err();
        self.known.lock().checked.push((of_station, verdict.clone()));
        // Many handshakes in a row leave no time for others.
        tokio::task::yield_now().await;
        verdict
    }

    /// The handshakes in both directions.
    fn talk(&self, station: &Station, host: &str) -> Result<(), Refusal> {
        let refused = |report: Report, what: &str| {
            let what = what.to_owned();
            move |why: String| Refusal {
                report,
                why: format!("{what} machine {}: {why}", station.name()),
            }
        };
        let made = self.tls.get_or_init(|| {
            let user = LeafRequest::client(format!("system:node:{}", self.name), "system:nodes");
            let client = tls::client(Some(&self.trust), Some((&self.signer, &user, self.issued)))?;
            Ok((client, tls::kubelet(&self.name, &self.trust, self.issued)?))
        });
        let own = made.as_ref().map_err(Clone::clone);
        let (client, server) = own.map_err(refused(Report::Silent, "the certificates for"))?;
        if !self.is_local || station.name() == self.name {
            tls::handshake(client, host, station.api_server())
                .map_err(refused(Report::Silent, "the kubelet does not reach the API server of"))?;
        }
        let of_api_server = station.to_kubelets();
        of_api_server
            .and_then(|client| tls::handshake(client, &self.name, server))
            .map_err(refused(
                Report::Unreached,
                "the kubelet is not reached by the API server of",
            ))
    }
}

/// The kubelets of a cluster, by the names of their Nodes.
#[derive(Debug, Default)]
pub(super) struct Kubelets(Mutex<BTreeMap<String, Arc<Kubelet>>>);

impl Kubelets {
    /// Adds a kubelet, whose Node is well.
    pub(super) fn add(&self, kubelet: Kubelet) {
        self.0.lock().insert(kubelet.name.clone(), Arc::new(kubelet));
    }

    /// Removes a kubelet.
    pub(super) fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// What a Node shows of its connections.
    pub(super) fn report(&self, name: &str) -> Report {
        let kubelet = self.0.lock().get(name).cloned();
        kubelet.map_or(Report::Well, |kubelet| kubelet.shown())
    }

    /// Checks every kubelet against every machine that runs. Returns those whose Nodes are to show something else than they do. API servers
    /// are reached by `host`.
    pub(super) async fn changed(&self, running: &[Arc<Station>], host: &str) -> Vec<(Arc<Kubelet>, Option<Refusal>)> {
        let all: Vec<Arc<Kubelet>> = self.0.lock().values().cloned().collect();
        let mut changed = Vec::new();
        for kubelet in all {
            let mut worst: Option<Refusal> = None;
            for station in running {
                let refusal = kubelet.check(station, host).await;
                let is_worse = |refusal: &Refusal| worst.as_ref().is_none_or(|known| known.report < refusal.report);
                if let Some(refusal) = refusal.filter(is_worse) {
                    worst = Some(refusal);
                }
            }
            let report = worst.as_ref().map_or(Report::Well, |refusal| refusal.report);
            if report != kubelet.shown() {
                changed.push((kubelet, worst));
            }
        }
        changed
    }
}
