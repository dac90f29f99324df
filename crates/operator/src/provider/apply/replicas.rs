//! Pausing: Deployments without replicas, which remember what they had.

use windlass_controller_runtime::Seen;
use windlass_provider_components::customize::pause;

use super::{Run, unread};
use crate::objects::ObjectRef;
use crate::provider::blocked::Blocked;

impl Run<'_> {
    /// Scales down. What Deployments had is kept before anything is changed, once.
    pub(super) async fn hold(&mut self) -> Result<(), Blocked> {
        let Some(mut current) = self.kept.current.clone() else {
            return Ok(());
        };
        current.replicas.clear();
        for object in scaled(&current.index) {
            match self.cx.read_value(&object.gvk(), &object.key()).await {
                Seen::Found(live) => {
                    // One that does not say what it had gets what is declared.
                    if let Some(had) = pause::had(&live) {
                        current.replicas.insert(object.name.clone(), had);
                    }
                }
                Seen::NotFound => {}
                Seen::Failed(why) => return Err(unread(why)),
            }
        }
        current.paused = true;
        self.kept.current = Some(current);
        self.rescale().await
    }

    /// Scales up again.
    pub(super) async fn restore(&mut self) -> Result<(), Blocked> {
        if let Some(current) = &mut self.kept.current {
            current.paused = false;
        }
        self.rescale().await
    }

    async fn rescale(&mut self) -> Result<(), Blocked> {
        // Should this be cut off, everything is applied again.
        self.operator.0.tracker.doubt(&self.whose);
        if let Some(current) = &mut self.kept.current {
            current.left = Vec::new();
        }
        self.update_current().await?;
        self.repair(None).await
    }
}

/// What has replicas.
fn scaled(index: &[ObjectRef]) -> impl Iterator<Item = &ObjectRef> {
    index
        .iter()
        .filter(|object| object.is_workload() && object.kind != "DaemonSet")
}
