//! Carries out the plan, in order; the first failure ends the attempt.

mod members;
mod secrets;

use serde_json::json;
use windlass_api::Condition;
use windlass_api::core::v1beta2::{Machine, MachineDeployment};
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::{Cx, EventType, ObjectKey, ReconcileError, StatusPace, Write, WriteError};
use windlass_pki::KeyPool;

use crate::desired;
use crate::names::{
    CERTIFICATES_EXPIRY, FINALIZER, MACHINE_STATUS_MANAGER, MANAGER, METADATA_MANAGER, PRE_TERMINATE_HOOK,
};
use crate::observe::Observed;
use crate::plan::in_place::Update;
use crate::plan::{Action, NewMachine, Plan, WorkloadChange};
use crate::status::Done;
use crate::workload::WorkloadCluster;

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// The management cluster refused or did not answer.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A key or certificate could not be made.
    #[error(transparent)]
    Pki(#[from] windlass_pki::PkiError),
    /// The workload cluster refused or did not answer.
    #[error("workload cluster: {0}")]
    Workload(String),
    /// Something that was observed is not there any more.
    #[error("{0}")]
    Gone(String),
}

impl ApplyError {
    /// The reason in metrics and events.
    fn reason(&self) -> &'static str {
        match self {
            Self::Write(_) => "WriteFailed",
            Self::Pki(_) => "CertificateFailed",
            Self::Workload(_) => "WorkloadClusterFailed",
            Self::Gone(_) => "Gone",
        }
    }
}

/// Carries out the plan.
pub(crate) async fn apply(cx: &Cx, keys: &KeyPool, pace: &StatusPace, seen: &Observed, plan: &Plan) -> Done {
    let mut applier = Applier {
        cx,
        seen,
        secrets: secrets::Maker::new(cx, keys, seen, plan),
        pace,
    };
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = applier.carry_out(action).await {
            if matches!(action, Action::TearDownMachine { .. }) {
                let meta = &seen.control_plane.metadata;
                let cluster = seen.facts.as_ref().map(|facts| facts.cluster.name.as_str());
                let message = format!(
                    "Failed to delete control plane Machines for cluster {}/{} control plane: {error}",
                    meta.namespace.as_deref().unwrap_or_default(),
                    cluster.unwrap_or_default(),
                );
                cx.event(&*seen.control_plane, EventType::Warning, "FailedDelete", message);
            }
            done.certificates_failed = matches!(action, Action::CreateCertificate { .. } | Action::OwnSecret { .. });
            done.failed = Some(ReconcileError::new(error.reason(), error.to_string()));
            break;
        }
    }
    done
}

struct Applier<'a> {
    cx: &'a Cx,
    seen: &'a Observed,
    secrets: secrets::Maker<'a>,
    /// Remembers when the conditions of Machines were written.
    pace: &'a StatusPace,
}

impl Applier<'_> {
    async fn carry_out(&mut self, action: &Action) -> Result<(), ApplyError> {
        let writer = self.cx.writer();
        match action {
            Action::CreateCertificate { purpose } => self.secrets.create(*purpose).await,
            Action::OwnSecret { purpose, patch } => self.secrets.own(*purpose, patch).await,
            Action::WriteKubeconfig { server, replace } => self.secrets.write_kubeconfig(server, *replace).await,
            Action::OwnTemplate { object } | Action::ApplyMachine { object, .. } => {
                writer.apply_value(MANAGER, object).await?;
                Ok(())
            }
            Action::PatchMachine { name, patch } => {
                let key = self.key(name);
                writer
                    .merge_patch::<Machine>(MANAGER, &key, patch)
                    .await
                    .map(drop)
                    .or_else(unless_gone)
            }
            Action::ChangeMetadata { object, change } => {
                writer
                    .change_metadata(MANAGER, METADATA_MANAGER, object, change)
                    .await?;
                Ok(())
            }
            Action::CreateMachine(new) => self.create_machine(new).await,
            Action::BeginUpdate(update) => self.begin_update(update).await,
            Action::SetMachineConditions { name, conditions } => self.set_conditions(name, conditions).await,
            Action::DeleteMachine { name, leader, why } => {
                if let Some(leader) = leader {
                    members::move_leader(self.connection()?, leader).await?;
                }
                writer.delete(self.machine(name)?).await?;
                tracing::info!(machine = %name, reason = why, "deleting Machine");
                Ok(())
            }
            Action::ReleaseMachine { name, leader, member } => {
                if let Some(leader) = leader {
                    members::move_leader(self.connection()?, leader).await?;
                }
                if let Some(member) = member {
                    members::remove(self.connection()?, member).await?;
                }
                self.drop_hook(name).await
            }
            Action::RemoveMember(member) => members::remove(self.connection()?, member).await,
            Action::TearDownMachine { name, hooked, deleting } => {
                if *hooked {
                    self.drop_hook(name).await?;
                }
                if !deleting {
                    writer.delete(self.machine(name)?).await?;
                }
                Ok(())
            }
            Action::Annotate { key, value } => {
                let patch = json!({ "metadata": { "annotations": { *key: value } } });
                let own = self.own_key();
                writer.merge_patch::<KubeadmControlPlane>(MANAGER, &own, &patch).await?;
                Ok(())
            }
            Action::RemoveFinalizer => {
                let object = &*self.seen.control_plane;
                writer.remove_finalizer(MANAGER, object, FINALIZER).await?;
                Ok(())
            }
            Action::Workload(change) => self.change_workload(change).await,
            Action::StageAuthority(change) => self.secrets.stage(change).await,
            Action::MarkWorkers {
                uid,
                resource_version,
                before,
            } => self.secrets.mark_workers(uid, resource_version, *before).await,
            Action::RotateKubeconfig(rotated) => self.secrets.rotate_kubeconfig(rotated).await,
            Action::RollOut { deployment, after } => {
                let key = self.key(deployment);
                let patch = json!({ "spec": { "rollout": { "after": after.to_string() } } });
                let changed = writer.merge_patch::<MachineDeployment>(MANAGER, &key, &patch).await;
                changed.map(drop).or_else(unless_gone)
            }
            Action::RecordExpiry { config, expiry } => {
                let annotations = json!({ CERTIFICATES_EXPIRY: expiry.to_string() });
                let patch = json!({ "metadata": { "annotations": annotations } });
                let key = self.key(config);
                writer
                    .merge_patch::<KubeadmConfig>(MANAGER, &key, &patch)
                    .await
                    .map(drop)
                    .or_else(unless_gone)
            }
        }
    }

    async fn change_workload(&self, change: &WorkloadChange) -> Result<(), ApplyError> {
        let connection = self.connection()?;
        let changed = match change {
            WorkloadChange::KubeadmConfig { configuration, version } => {
                connection.update_kubeadm_config(configuration, version).await
            }
            WorkloadChange::Rbac { version } => connection.ensure_rbac(version).await,
            WorkloadChange::KubeProxyImage { image } => connection.set_kube_proxy_image(image).await,
            WorkloadChange::KubeadmDns { dns, version } => connection.update_kubeadm_dns(dns, version).await,
            WorkloadChange::CoreDns(change) => connection.change_core_dns(change).await,
            WorkloadChange::ClusterInfo { authorities } => connection.update_cluster_info(authorities).await,
            WorkloadChange::DropExtensionAuthorities { fingerprints } => {
                connection.drop_extension_authorities(fingerprints).await
            }
        };
        changed.map_err(ApplyError::Workload)
    }

    /// The Machine first: what belongs to it is owned by it from its first moment, and an interruption leaves nothing
    /// without an owner.
    async fn create_machine(&self, new: &NewMachine) -> Result<(), ApplyError> {
        let writer = self.cx.writer();
        let uid = match (&new.machine, &new.uid) {
            (Some(machine), _) => {
                let applied = writer.apply_value(MANAGER, machine).await?;
                tracing::info!(machine = %new.name, "created Machine");
                applied.object.uid().to_owned()
            }
            (None, Some(uid)) => uid.clone(),
            (None, None) => return Ok(()),
        };
        for object in [&new.infra, &new.config].into_iter().flatten() {
            let mut object = object.clone();
            object["metadata"]["ownerReferences"] = json!([desired::machine_owner(&new.name, &uid)]);
            writer.apply_value(MANAGER, &object).await?;
        }
        Ok(())
    }

    /// Every step can be done again: the mark comes first, and the hook last.
    async fn begin_update(&self, update: &Update) -> Result<(), ApplyError> {
        let machine = self.machine(&update.name)?;
        match self.write_update(update).await {
            Ok(()) => {
                let message = "Machine starting in-place update".to_owned();
                self.cx
                    .event(machine, EventType::Normal, "SuccessfulStartInPlaceUpdate", message);
                Ok(())
            }
            Err(error) => {
                let message = format!(
                    "Failed to start in-place update of Machine {}: {}",
                    update.name,
                    error.message()
                );
                self.cx
                    .event(machine, EventType::Warning, "FailedStartInPlaceUpdate", message);
                Err(error.into())
            }
        }
    }

    async fn write_update(&self, update: &Update) -> Result<(), WriteError> {
        let writer = self.cx.writer();
        let key = self.key(&update.name);
        if let Some(mark) = &update.mark {
            writer.merge_patch::<Machine>(MANAGER, &key, mark).await?;
        }
        for object in [&update.infra, &update.config] {
            writer.release_early(MANAGER, object).await?;
            writer.apply_value(MANAGER, object).await?;
        }
        if update.drops_init {
            // Releases of Cluster API before v1.12 left the field without an owner.
            let config = self.key(update.config["metadata"]["name"].as_str().unwrap_or_default());
            let patch = json!({ "spec": { "initConfiguration": null } });
            writer.merge_patch::<KubeadmConfig>(MANAGER, &config, &patch).await?;
        }
        writer.apply_value(MANAGER, &update.machine).await?;
        writer.merge_patch::<Machine>(MANAGER, &key, &update.hook).await?;
        Ok(())
    }

    async fn set_conditions(&self, name: &str, conditions: &[Condition]) -> Result<(), ApplyError> {
        let machine = self.machine(name)?;
        let key = self.key(name);
        let new = json!({ "conditions": conditions });
        let writer = self.cx.writer();
        match writer.apply_status(MACHINE_STATUS_MANAGER, machine, new).await {
            Ok(applied) if applied.outcome == Write::Changed => self.pace.written(&key),
            Ok(_) => {}
            Err(error) => return unless_gone(error),
        }
        Ok(())
    }

    async fn drop_hook(&self, name: &str) -> Result<(), ApplyError> {
        let patch = json!({ "metadata": { "annotations": { PRE_TERMINATE_HOOK: null } } });
        let key = self.key(name);
        let writer = self.cx.writer();
        writer
            .merge_patch::<Machine>(MANAGER, &key, &patch)
            .await
            .map(drop)
            .or_else(unless_gone)
    }

    fn own_key(&self) -> ObjectKey {
        let meta = &self.seen.control_plane.metadata;
        self.key(meta.name.as_deref().unwrap_or_default())
    }

    fn key(&self, name: &str) -> ObjectKey {
        let namespace = self.seen.control_plane.metadata.namespace.as_deref();
        ObjectKey::new(namespace.unwrap_or_default(), name)
    }

    fn machine(&self, name: &str) -> Result<&Machine, ApplyError> {
        let machine = self.seen.machines.get(name);
        let machine = machine.map(|m| &**m);
        machine.ok_or_else(|| ApplyError::Gone(format!("Machine {name} is gone")))
    }

    fn connection(&self) -> Result<&dyn WorkloadCluster, ApplyError> {
        let connection = self.seen.connection.as_deref();
        connection.ok_or_else(|| ApplyError::Workload("there is no connection".to_owned()))
    }
}

/// An object that is gone needs no change; its deletion is an event of its own.
fn unless_gone(error: WriteError) -> Result<(), ApplyError> {
    if error.is_not_found() {
        return Ok(());
    }
    Err(error.into())
}
