//! What can go wrong with the machines of the simulated cloud, for tests: the kubelet, the host, the join, etcd, and certificates.
//!
//! A trouble lasts until [`Cloud::recover`] ends it or the machine is deleted. Connections to whole clusters are cut by
//! [`Cloud::disconnect`], calls to the cloud are slowed down by [`Cloud::delay`]. Budgets refuse evictions and volumes stay attached without
//! help: the API server of a workload cluster enforces the former, and no controller there detaches the latter.

use std::collections::BTreeSet;

use jiff::Timestamp;
use windlass_controller_runtime::ObjectKey;
use windlass_etcd::proto::AlarmType;

use super::etcd::EtcdState;
use super::nodes::Kubelet;
use super::workload::Workload;
use super::{Cloud, CloudError};

/// What goes wrong with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// It never finishes to boot.
    SlowBoot,
    /// kubeadm fails on it.
    JoinFails,
    /// kubeadm does not end on it.
    JoinHangs,
    /// Its etcd member joins, but is never promoted.
    StaysLearner,
    /// The serving certificate of its API server expires then. It counts when its API server starts.
    CertificateExpires(Timestamp),
    /// Its kubelet reports that the Node is not ready.
    NotReady,
    /// Its kubelet reports no more, so that its Node counts as unreachable. Its containers run on.
    Silent,
    /// It is off: kubelet, etcd member and API server are silent.
    Dead,
    /// The database of its etcd member is full.
    AlarmNoSpace,
    /// The database of its etcd member is corrupt.
    AlarmCorrupt,
}

impl Trouble {
    /// What its kubelet reports meanwhile.
    pub(super) fn kubelet(self) -> Option<Kubelet> {
        match self {
            Self::NotReady => Some(Kubelet::NotReady),
            Self::Silent | Self::Dead => Some(Kubelet::Silent),
            _ => None,
        }
    }

    /// The alarm of its etcd member.
    fn alarm(self) -> Option<AlarmType> {
        match self {
            Self::AlarmNoSpace => Some(AlarmType::Nospace),
            Self::AlarmCorrupt => Some(AlarmType::Corrupt),
            _ => None,
        }
    }
}

impl Cloud {
    /// Something goes wrong with a machine that runs, or that starts.
    pub async fn trouble(&self, cluster: &ObjectKey, machine: &str, trouble: Trouble) -> Result<(), CloudError> {
        self.note(cluster, machine, |vm| {
            vm.troubles.insert(trouble);
        });
        let turn = self.turn(cluster);
        let _turn = turn.lock().await;
        if let Ok(workload) = self.workload(cluster) {
            if trouble == Trouble::Dead {
                workload.etcd().stop(machine);
            }
            if let Some(alarm) = trouble.alarm() {
                workload.etcd().alarm(machine, alarm, true);
            }
            if let Some(kubelet) = trouble.kubelet() {
                let shown = kubelet.max(workload.kubelets().report(machine));
                workload.report(machine, shown, trouble == Trouble::Dead).await?;
            }
            if trouble == Trouble::Dead {
                self.settle(cluster, &workload).await?;
            }
        }
        Ok(())
    }

    /// The machine that is started next has this trouble. Several calls are for as many machines.
    pub fn trouble_next(&self, cluster: &ObjectKey, trouble: Trouble) {
        let mut sites = self.inner.sites.lock();
        sites.entry(cluster.clone()).or_default().coming.push_back(trouble);
    }

    /// What is wrong with a machine, or will be with one that has not started.
    pub(crate) fn troubles(&self, cluster: &ObjectKey, machine: &str) -> BTreeSet<Trouble> {
        let sites = self.inner.sites.lock();
        let Some(site) = sites.get(cluster) else {
            return BTreeSet::new();
        };
        match site.vms.get(machine) {
            Some(vm) => vm.troubles.clone(),
            None => site.coming.front().copied().into_iter().collect(),
        }
    }

    /// Ends all troubles of a machine. A certificate stays as it is.
    pub async fn recover(&self, cluster: &ObjectKey, machine: &str) -> Result<(), CloudError> {
        let mut ended = BTreeSet::new();
        self.note(cluster, machine, |vm| ended = std::mem::take(&mut vm.troubles));
        {
            let turn = self.turn(cluster);
            let _turn = turn.lock().await;
            if let Ok(workload) = self.workload(cluster) {
                let etcd = workload.etcd();
                etcd.promote(machine);
                if ended.contains(&Trouble::Dead) {
                    etcd.start(machine);
                }
                for alarm in ended.iter().filter_map(|trouble| trouble.alarm()) {
                    etcd.alarm(machine, alarm, false);
                }
                let was_off = ended.contains(&Trouble::Dead);
                if was_off {
                    self.settle(cluster, &workload).await?;
                }
                if ended.iter().any(|trouble| trouble.kubelet().is_some()) {
                    let shown = workload.kubelets().report(machine);
                    workload.report(machine, shown, was_off).await?;
                }
            }
        }
        self.changed(cluster);
        Ok(())
    }

    /// Lets the Nodes of a cluster show which kubelets and API servers get on. To call whenever a control plane machine starts or stops to run,
    /// and when a kubelet registers.
    pub(super) async fn settle(&self, cluster: &ObjectKey, workload: &Workload) -> Result<(), CloudError> {
        let settling = workload.settling();
        let _settling = settling.lock().await;
        for (kubelet, refusal) in workload.changed_kubelets().await {
            let (node, report) = (
                kubelet.name(),
                refusal.as_ref().map_or(Kubelet::Well, |known| known.report),
            );
            if let Some(refusal) = &refusal {
                tracing::warn!(%cluster, node, "a simulated node is cut off: {}", refusal.why);
            } else {
                tracing::info!(%cluster, node, "a simulated node that was cut off is well again");
            }
            let troubles = self.troubles(cluster, node);
            let troubles = troubles.iter().filter_map(|trouble| trouble.kubelet());
            workload
                .report(node, troubles.fold(report, Kubelet::max), false)
                .await?;
            kubelet.show(report);
        }
        Ok(())
    }

    /// The etcd of a cluster, if its API server runs.
    pub fn etcd(&self, cluster: &ObjectKey) -> Option<EtcdState> {
        self.workload(cluster).ok().map(|workload| workload.etcd().state())
    }

    /// The machines of a cluster with troubles.
    pub fn troubled(&self, cluster: &ObjectKey) -> BTreeSet<String> {
        let sites = self.inner.sites.lock();
        let vms = sites.get(cluster).into_iter().flat_map(|site| &site.vms);
        let troubled = vms.filter(|(_, vm)| !vm.troubles.is_empty());
        troubled.map(|(name, _)| name.clone()).collect()
    }

    /// Whether kubeadm fails on a machine.
    pub(super) fn check_kubeadm(&self, cluster: &ObjectKey, machine: &str) -> Result<(), CloudError> {
        if self.troubles(cluster, machine).contains(&Trouble::JoinFails) {
            return Err(CloudError::Kubeadm {
                machine: machine.to_owned(),
                why: "error execution phase preflight: the machine is in trouble".to_owned(),
            });
        }
        Ok(())
    }
}
