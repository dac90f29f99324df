//! How machines join a simulated cluster: what kubeadm checks first, the certificates that they get, and what their kubelets trust.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{Api, DynamicObject};
use windlass_pki::LeafRequest;

use super::{Workload, core};
use crate::backend::authority::{Authority, Bundle};
use crate::backend::kubelets::Kubelet;
use crate::backend::nodes::{self, NodeSpec};
use crate::backend::station::Station;
use crate::backend::trouble::Trouble;
use crate::backend::{CloudError, Member, cluster_info, tls};

/// By which name etcd members reach each other here.
const PEER: &str = "localhost";

/// kubeadm fails on a machine.
fn failed(machine: &str, why: String) -> CloudError {
    CloudError::Kubeadm {
        machine: machine.to_owned(),
        why,
    }
}

impl Workload {
    /// Whether a machine made the cluster: it has no other to learn from.
    pub(in crate::backend) fn is_founded_by(&self, name: &str) -> bool {
        *self.founder == *name && self.roster.named(name).is_some()
    }

    /// The control plane machines that run.
    pub(super) fn running(&self) -> Vec<Arc<Station>> {
        self.roster.running(|name| self.etcd.runs(name))
    }

    /// The authority that signs for new clients: that of the oldest control plane machine that runs.
    fn signer(&self) -> Option<Arc<Authority>> {
        let running = self.running();
        let oldest = running.first().cloned().or_else(|| self.roster.next(|_| true))?;
        Some(Arc::clone(oldest.authority()))
    }

    /// Gives a control plane machine its certificates, unless it has them.
    pub(super) fn enrol(
        &self,
        machine: &Member<'_>,
        troubles: &BTreeSet<Trouble>,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        if self.roster.named(machine.name).is_some() {
            return Ok(());
        }
        let expiry = troubles.iter().find_map(|trouble| match trouble {
            Trouble::CertificateExpires(expiry) => Some(*expiry),
            _ => None,
        });
        let authorities = self.roster.shared(machine.authorities);
        let station = Station::new((machine.name, machine.since), authorities, &self.hosts, expiry, now);
        self.roster.add(station.map_err(|why| CloudError::Certificates {
            cluster: self.key.clone(),
            why,
        })?);
        Ok(())
    }

    async fn read(&self, namespace: &str, name: &str, field: &str) -> Result<String, kube::Error> {
        let maps: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &core("ConfigMap"));
        let map = maps.get(name).await?;
        Ok(map.data["data"][field].as_str().unwrap_or_default().to_owned())
    }

    /// What `kubeadm join` does first: it reads the configuration of the cluster, in the formats that its version knows.
    pub(in crate::backend) async fn read_configuration(&self, name: &str, version: &str) -> Result<(), CloudError> {
        let failed = |why: String| failed(name, why);
        let version = nodes::kubeadm_version(version);
        let document = self
            .read("kube-system", nodes::KUBEADM_CONFIG, nodes::CLUSTER_CONFIGURATION)
            .await
            .map_err(|error| failed(error.to_string()))?;
        windlass_kubeadm::stored::readable(&document, version)
            .map_err(|error| failed(format!("ConfigMap kube-system/{}: {error}", nodes::KUBEADM_CONFIG)))
    }

    /// How `kubeadm join` finds the authorities of the cluster: in a ConfigMap that it reads without trust, and trusts when a pin is that of an
    /// authority there, and an API server shows a certificate of one. A machine that joined before is not asked again.
    pub(in crate::backend) async fn discover(
        &self,
        name: &str,
        pins: &[String],
        joined: bool,
    ) -> Result<Arc<Bundle>, CloudError> {
        let failed = |why: String| {
            let what = "error execution phase preflight: couldn't validate the identity of the API Server";
            failed(name, format!("{what}: {why}"))
        };
        let found = self.published().await;
        if joined {
            let known = found.ok().or_else(|| Some(Arc::clone(self.signer()?.trusted())));
            return known.ok_or_else(|| CloudError::NotServing(self.key.clone()));
        }
        let bundle = found.map_err(failed)?;
        cluster_info::pinned(&bundle, pins).map_err(failed)?;
        let mut refused = None;
        for station in self.running() {
            match self.shows_itself(&station, &bundle) {
                Ok(()) => return Ok(bundle),
                Err(why) => refused = Some(format!("API server of machine {}: {why}", station.name())),
            }
        }
        refused.map_or(Ok(bundle), |why| Err(failed(why)))
    }

    /// The authorities that the cluster publishes for machines that join.
    async fn published(&self) -> Result<Arc<Bundle>, String> {
        let read = self.read(cluster_info::NAMESPACE, cluster_info::NAME, cluster_info::KUBECONFIG);
        let text = read.await.map_err(|error| error.to_string())?;
        let mut last = self.published.lock();
        if let Some((known, bundle)) = &*last
            && *known == text
        {
            return Ok(Arc::clone(bundle));
        }
        let found = cluster_info::authorities(&text);
        let found =
            found.map_err(|why| format!("ConfigMap {}/{}: {why}", cluster_info::NAMESPACE, cluster_info::NAME))?;
        let bundle = self.roster.shared_bundle(found);
        *last = Some((text, Arc::clone(&bundle)));
        Ok(bundle)
    }

    /// Whether the API server of a machine has a certificate of these authorities.
    fn shows_itself(&self, station: &Station, bundle: &Bundle) -> Result<(), String> {
        if station.authority().is_all_of(bundle, station.issued()) {
            return Ok(());
        }
        tls::handshake(&tls::client(Some(bundle), None)?, self.host(), station.api_server())
    }

    /// How `kubeadm join` reaches the cluster as its administrator, to find the members of etcd: by the address of the cluster, where any
    /// API server answers. The `admin.conf` that it makes trusts the first authority of its bundle only, which signs.
    pub(in crate::backend) fn check_administrator(
        &self,
        machine: &Member<'_>,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        let own = &machine.authorities.cluster;
        let first = own.first();
        let trusted = if machine.prepared { own.trusted() } else { &first };
        for station in self.running() {
            let other = station.authority();
            if own.is_same(other) && other.is_all_of(trusted, now) {
                continue;
            }
            let talk = || {
                let user = LeafRequest::administrator();
                let client = tls::client(Some(trusted), Some((own, &user, now)))?;
                tls::handshake(&client, self.host(), station.api_server())
            };
            talk().map_err(|why| {
                let what = "error execution phase check-etcd: could not retrieve the list of etcd endpoints";
                failed(
                    machine.name,
                    format!("{what}: API server of machine {}: {why}", station.name()),
                )
            })?;
        }
        Ok(())
    }

    /// How `kubeadm join` checks etcd before it adds a member: that and the others have to trust each other.
    pub(in crate::backend) fn check_peers(&self, machine: &Member<'_>, now: Timestamp) -> Result<(), CloudError> {
        let Some(own) = &machine.authorities.etcd else {
            return Ok(());
        };
        for station in self.running() {
            let (Some(other), Some(config)) = (station.etcd_authority(), station.etcd()) else {
                continue;
            };
            if own.is_same(other) && other.is_all_of(own.trusted(), now) {
                continue;
            }
            let talk = || {
                let client = |of: &Authority| {
                    let user = LeafRequest::client("kube-etcd-peer", "system:masters");
                    tls::client(Some(of.trusted()), Some((of, &user, now)))
                };
                tls::handshake(&client(own)?, PEER, config)?;
                tls::handshake(&client(other)?, PEER, &tls::etcd(own, now)?)
            };
            talk().map_err(|why| {
                let what = "error execution phase check-etcd: etcd cluster is not healthy";
                let why = format!("{what}: etcd member of machine {}: {why}", station.name());
                failed(machine.name, why)
            })?;
        }
        Ok(())
    }

    /// Registers a Node, whose kubelet gets its certificate and learns which authorities to trust.
    pub(in crate::backend) async fn register(&self, spec: &NodeSpec, now: Timestamp) -> Result<(), CloudError> {
        let station = self.roster.named(&spec.name);
        let trust = match &station {
            Some(own) if self.is_founded_by(&spec.name) => Arc::clone(own.authority().trusted()),
            own => {
                let joined = spec.joined || own.is_some();
                self.discover(&spec.name, &spec.pins, joined).await?
            }
        };
        let signer = self.signer().ok_or_else(|| CloudError::NotServing(self.key.clone()))?;
        self.put(&nodes::node(spec)).await?;
        self.put_status(&nodes::node_status(spec, now)).await?;
        self.kubelets.add(Kubelet::new(spec, signer, trust, now));
        self.returning.settled(&spec.name);
        Ok(())
    }
}
