//! Carries out the plan of a definition: the only file of it that writes.

use futures::StreamExt as _;
use serde_json::json;
use windlass_api::annotations::CRD_MIGRATION_OBSERVED_GENERATION;
use windlass_controller_runtime::{Crd, Cx, ErrorKind, ObjectKey, ReconcileError, WriteError};

use super::plan::{Plan, Write};
use crate::shared::keys::managers;

/// Number of objects that are written concurrently.
const AT_A_TIME: usize = 8;

/// Writes the objects, and then what is true of all of them. A failure leaves the definition as it is, so the next attempt goes on.
pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Option<ReconcileError> {
    migrate(cx, plan).await.err()
}

/// Objects that could not be written. The others are.
#[derive(Default)]
struct Failures {
    first: Option<WriteError>,
    more: usize,
}

impl Failures {
    /// Counts one. Fails at once if the server does not answer: it would not for any other object.
    fn add(&mut self, error: WriteError) -> Result<(), ReconcileError> {
        if matches!(error.kind(), ErrorKind::Transport | ErrorKind::TooManyRequests) {
            return Err(error.into());
        }
        match &self.first {
            Some(_) => self.more += 1,
            None => self.first = Some(error),
        }
        Ok(())
    }

    fn done(self) -> Result<(), ReconcileError> {
        let Self { first, more } = self;
        match first {
            None => Ok(()),
            Some(error) if more == 0 => Err(error.into()),
            Some(error) => {
                let message = format!("{error}; {more} more objects of the kind cannot be written either");
                Err(ReconcileError::new(error.kind().reason(), message))
            }
        }
    }
}

async fn migrate(cx: &Cx, plan: &Plan) -> Result<(), ReconcileError> {
    let Some(definition) = &plan.definition else {
        return Ok(());
    };
    let (writer, manager) = (cx.writer(), managers::CRD_MIGRATION);
    let write = async |write: &Write| {
        let (gvk, key, patch) = (&definition.gvk, &write.key, &write.patch);
        let written = if write.of_status {
            writer.touch_status(manager, gvk, key, patch).await
        } else {
            writer.merge_patch_value(manager, gvk, key, patch).await.map(drop)
        };
        match written {
            Err(error) if error.is_not_found() || write.yields && error.is_conflict() => Ok(()),
            other => other,
        }
    };
    let writes: Vec<_> = plan.writes.iter().map(write).collect();
    let mut written = futures::stream::iter(writes).buffer_unordered(AT_A_TIME);
    let mut failures = Failures::default();
    while let Some(written) = written.next().await {
        if let Err(error) = written {
            failures.add(error)?;
        }
    }
    drop(written);
    failures.done()?;
    if definition.is_restored {
        let versions = [definition.gvk.version.as_str()];
        writer.stored_versions(manager, &definition.name, &versions).await?;
    }
    let noted = json!({CRD_MIGRATION_OBSERVED_GENERATION: definition.generation.to_string()});
    let patch = json!({"metadata": {"uid": definition.uid, "annotations": noted}});
    let key = ObjectKey::cluster_scoped(definition.name.as_str());
    writer.merge_patch::<Crd>(manager, &key, &patch).await?;
    Ok(())
}
