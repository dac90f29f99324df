//! Deleting: what a release lacks, what is not wanted, and everything.

use k8s_openapi::api::core::v1::Secret;
use windlass_api_operator::finalizers;
use windlass_controller_runtime::Seen;

use super::{Run, refused, unread};
use crate::awaited::Awaited;
use crate::kept;
use crate::names::{MANAGER, reasons};
use crate::objects::{OWN, ObjectRef, own_groups};
use crate::provider::blocked::{Blocked, Stage};

impl Run<'_> {
    /// Deletes what the next release lacks of the current one, and of what attempts and other programs left.
    pub(super) async fn prune(&mut self) -> Result<(), Blocked> {
        let Some(next) = self.kept.next.clone() else {
            return Ok(());
        };
        if let Some(current) = &self.kept.current {
            self.delete_all(&current.beyond(&next)).await?;
        }
        self.delete_all(&next.leftovers).await
    }

    /// Deletes what a release brought that is no longer wanted, and forgets it.
    pub(super) async fn discard(&mut self) -> Result<(), Blocked> {
        let (Some(current), Some(next)) = (self.kept.current.clone(), self.kept.next.clone()) else {
            return Ok(());
        };
        self.operator.0.tracker.doubt(&self.whose);
        self.stop_all_but(&current, &next.index).await?;
        self.delete_all(&next.beyond(&current)).await?;
        self.repair(None).await?;
        self.drop_secrets(&next.secrets).await?;
        self.kept.next = None;
        self.drop_vouched().await
    }

    /// Deletes objects; definitions and namespaces are never among them.
    pub(super) async fn delete_all(&self, objects: &[ObjectRef]) -> Result<(), Blocked> {
        for object in objects.iter().filter(|object| !object.is_kept_for_users()) {
            self.delete_one(object, false).await?;
        }
        Ok(())
    }

    /// Deletes everything that is installed, and what is `lost`, so that nothing is asked that is gone already: objects of the
    /// provider's own kinds while its controllers still look after them, webhooks before what answers them, and what runs before what
    /// it needs.
    pub(super) async fn remove(&mut self, lost: &[ObjectRef]) -> Result<(), Blocked> {
        self.operator.0.tracker.forget(&self.whose);
        let kept = &self.kept;
        let releases = kept.current.iter().chain(&kept.next).chain(&kept.previous);
        let mut objects: Vec<_> = releases
            .flat_map(|release| release.index.iter().chain(&release.leftovers))
            .chain(lost)
            .cloned()
            .collect();
        objects.sort();
        objects.dedup_by_key(|object| object.identity());
        self.delete_in_turn(objects).await
    }

    /// Deletes objects in the order of removal, and reports those that finalizers hold. Definitions and namespaces stay.
    pub(super) async fn delete_in_turn(&self, mut objects: Vec<ObjectRef>) -> Result<(), Blocked> {
        let groups = own_groups(&objects);
        objects.retain(|object| !object.is_kept_for_users());
        objects.sort_by_key(|object| removal_rank(object.rank(&groups)));
        let own: Vec<_> = objects
            .iter()
            .filter(|object| object.rank(&groups) == OWN)
            .cloned()
            .collect();
        // Their finalizers are removed by controllers that the next deletions end.
        self.delete_all(&own).await?;
        self.wait_for(&own).await?;
        self.delete_all(&objects).await?;
        self.wait_for(&objects).await
    }

    /// Whether none of these objects is still being deleted.
    async fn wait_for(&self, objects: &[ObjectRef]) -> Result<(), Blocked> {
        for object in objects {
            let left = match self.cx.read_value(&object.gvk(), &object.key()).await {
                Seen::Found(left) => left,
                Seen::NotFound => continue,
                // It may be there: what is kept of the provider stays until that is known.
                Seen::Failed(why) => return Err(unread(why)),
            };
            if left["metadata"]["deletionTimestamp"].is_string() {
                let message = format!("{object} is being deleted, and finalizers hold it");
                let blocked = Blocked::new(Stage::Remove, reasons::REMOVING, message);
                let object = Awaited::one(&object.api_version, &object.kind, &object.key());
                return Err(blocked.awaiting([object]));
            }
        }
        Ok(())
    }

    /// Deletes the Secrets with what was installed, also those that another process has written since.
    pub(super) async fn drop_kept(&self) -> Result<(), Blocked> {
        let selector = kept::selector(self.whose.type_, &self.whose.key.name);
        let secrets = match self.cx.list::<Secret>(&self.whose.key.namespace, &selector).await {
            Seen::Found(secrets) => secrets,
            Seen::NotFound => Vec::new(),
            Seen::Failed(why) => return Err(unread(why)),
        };
        for secret in secrets {
            let deleted = self.cx.writer().delete(&secret).await;
            deleted.map_err(|error| refused(&error, "Secret with what was installed"))?;
        }
        Ok(())
    }

    /// Forgets what was kept, and lets the declaration go.
    pub(super) async fn forget(&mut self) -> Result<(), Blocked> {
        let kept = &self.kept;
        let mine = kept.current.is_some() || kept.next.is_some() || !kept.strange.is_empty();
        if mine {
            self.drop_kept().await?;
            self.operator.0.tracker.forget(&self.whose);
        }
        let released = self
            .cx
            .writer()
            .remove_finalizer_value(MANAGER, &self.declaration.object, finalizers::PROVIDER)
            .await;
        released.map_err(|error| refused(&error, "the declaration"))?;
        self.done.released = true;
        self.kept = kept::Kept::default();
        Ok(())
    }
}

/// The place in the order of removal, by the [rank](ObjectRef::rank) of an object.
fn removal_rank(rank: u8) -> u8 {
    match rank {
        // Objects of the provider's kinds and of others, webhooks, workloads.
        OWN => 0,
        9 => 1,
        10 => 2,
        11 => 3,
        // The inventory, so that an interrupted removal still shows.
        13 => 20,
        rank => 16 - rank,
    }
}
