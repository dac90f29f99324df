//! Calls for single machines: their start, their end, and what they register.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::net::TcpListener;
use windlass_controller_runtime::ObjectKey;
use windlass_kubeadm::stored;

use super::endpoint::Endpoint;
use super::nodes::{self, NodeSpec};
use super::port::Reserved;
use super::site::{Door, VmState};
use super::trouble::Trouble;
use super::workload::Workload;
use super::{Before, Call, Cloud, CloudError, Member, reserved};

/// Calls for single machines. They need nothing that only the controller of the infrastructure cluster makes.
impl Cloud {
    /// Starts a virtual machine; one that is there goes on.
    pub(crate) async fn start_vm(&self, key: &ObjectKey, name: &str, started: Timestamp) -> Result<(), CloudError> {
        self.enter(Call::StartMachine, key).await?;
        let is_troubled = {
            let mut sites = self.inner.sites.lock();
            sites.entry(key.clone()).or_default().start(name, started)
        };
        if is_troubled {
            self.changed(key);
        }
        Ok(())
    }

    pub(super) fn note(&self, key: &ObjectKey, name: &str, note: impl FnOnce(&mut VmState)) {
        let mut sites = self.inner.sites.lock();
        if let Some(vm) = sites.get_mut(key).and_then(|site| site.vms.get_mut(name)) {
            note(vm);
        }
    }

    pub(super) fn workload(&self, key: &ObjectKey) -> Result<Workload, CloudError> {
        let sites = self.inner.sites.lock();
        sites
            .get(key)
            .and_then(|site| site.workload.clone())
            .ok_or_else(|| CloudError::NotServing(key.clone()))
    }

    /// Starts the etcd member and the API server of a control plane machine and puts it behind the address of the cluster. The
    /// first one of a cluster makes the server.
    pub(crate) async fn start_control_plane(
        &self,
        key: &ObjectKey,
        member: &Member<'_>,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        self.enter(Call::RegisterMember, key).await?;
        self.check_kubeadm(key, member.name)?;
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        let troubles = self.troubles(key, member.name);
        let running = self.workload(key).ok();
        let elsewhere = running.as_ref().map_or_else(
            || member.brings_external_etcd(),
            |workload| workload.etcd().is_elsewhere(),
        );
        if !elsewhere && member.authorities.etcd.is_none() {
            return Err(CloudError::Kubeadm {
                machine: member.name.to_owned(),
                why: "the machine has no key of the authority of etcd, which its etcd member needs".to_owned(),
            });
        }
        let workload = match running {
            Some(workload) => workload,
            None => self.found(key, member, &troubles, now).await?,
        };
        if member.before == Before::Nothing {
            if !workload.is_founded_by(member.name) {
                workload.discover(member.name, member.pins, false).await?;
                workload.check_administrator(member, now)?;
                workload.check_peers(member, now)?;
            }
            workload.read_configuration(member.name, member.version).await?;
        }
        workload.join(member, &troubles, now).await?;
        self.settle(key, &workload).await?;
        self.note(key, member.name, |vm| vm.api_server = true);
        self.changed(key);
        Ok(())
    }

    /// Makes the API server of a cluster with its first control plane machine.
    async fn found(
        &self,
        key: &ObjectKey,
        member: &Member<'_>,
        troubles: &BTreeSet<Trouble>,
        now: Timestamp,
    ) -> Result<Workload, CloudError> {
        let listener = self.open(key, member.endpoint)?;
        let configuration = {
            let version = nodes::kubeadm_version(member.version);
            stored::initial(&key.name, &member.endpoint.to_string(), version)
        };
        let workload = match configuration {
            Ok(configuration) => Workload::start(key, listener, member, troubles, &configuration, now).await,
            Err(error) => Err(CloudError::Kubeadm {
                machine: member.name.to_owned(),
                why: error.to_string(),
            }),
        };
        let mut sites = self.inner.sites.lock();
        let site = sites.entry(key.clone()).or_default();
        match &workload {
            Ok(workload) => site.workload = Some(workload.clone()),
            Err(_) => site.door.leave(),
        }
        drop(sites);
        workload
    }

    /// Listens at the cluster's load balancer, or at the endpoint itself when it has none.
    fn open(&self, key: &ObjectKey, endpoint: &Endpoint) -> Result<TcpListener, CloudError> {
        let failed = |why: String| CloudError::Endpoint {
            cluster: key.clone(),
            endpoint: endpoint.to_string(),
            why,
        };
        let mut sites = self.inner.sites.lock();
        if let Some(Door::Balancer(held)) = sites.get(key).map(|site| &site.door) {
            return held.listen().map_err(|error| CloudError::Address {
                cluster: key.clone(),
                address: held.address(),
                why: error.to_string(),
            });
        }
        let address = endpoint.address();
        let address =
            address.ok_or_else(|| failed("it is no loopback address, and there is no load balancer".into()))?;
        let listen = |held: Reserved| Ok((held.listen().map_err(|error| error.to_string())?, held));
        let (listener, held) = reserved(&sites, address).and_then(listen).map_err(failed)?;
        sites.entry(key.clone()).or_default().door = Door::Machines(held);
        Ok(listener)
    }

    /// Registers a Node.
    pub(crate) async fn register_node(
        &self,
        key: &ObjectKey,
        node: &NodeSpec,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        self.enter(Call::RegisterNode, key).await?;
        self.check_kubeadm(key, &node.name)?;
        let workload = self.workload(key)?;
        workload.register(node, now).await?;
        self.settle(key, &workload).await?;
        self.note(key, &node.name, |vm| vm.node = true);
        Ok(())
    }

    /// Switches a machine off and removes what it registered. The last control plane machine takes the API server with it, and
    /// frees an address that no load balancer holds.
    pub(crate) async fn delete_vm(&self, key: &ObjectKey, name: &str) -> Result<(), CloudError> {
        let is_member = self.vm(key, name).is_some_and(|vm| vm.api_server);
        if is_member {
            self.enter(Call::DeregisterMember, key).await?;
        }
        self.enter(Call::DeleteMachine, key).await?;
        let turn = self.turn(key);
        let _turn = turn.lock().await;
        let (vm, last, workload) = {
            let sites = self.inner.sites.lock();
            let Some(site) = sites.get(key) else { return Ok(()) };
            (site.vms.get(name).cloned(), site.is_last(name), site.workload.clone())
        };
        if let (Some(vm), Some(workload)) = (vm, workload) {
            if vm.api_server && last {
                workload.ended().await;
                if let Some(site) = self.inner.sites.lock().get_mut(key) {
                    site.workload = None;
                    site.door.leave();
                }
            } else {
                workload.leave(name, vm.api_server).await?;
                self.settle(key, &workload).await?;
            }
        }
        let mut sites = self.inner.sites.lock();
        if let Some(site) = sites.get_mut(key) {
            site.vms.remove(name);
            if site.is_empty() {
                sites.remove(key);
            }
        }
        Ok(())
    }
}
