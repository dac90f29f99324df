//! Dry runs: the API server's answer to a trial. Nothing is stored.

use windlass_controller_runtime::{Cx, ErrorKind, ObjectKey, Seen, WriteError, gvk_from};
use windlass_topology::keys;
use windlass_topology::model::text;
use windlass_topology::trial::{Trial, Verdict};

use super::memory::Memory;

/// Tries an intent.
pub(super) async fn verdict(cx: &Cx, trial: &Trial, memory: &Memory) -> Verdict {
    let mut sides = Vec::with_capacity(2);
    for side in [&trial.want, &trial.have] {
        match cx.writer().try_apply_value(keys::FIELD_MANAGER, side).await {
            Ok(object) => sides.push(object),
            Err(error) => return failed(cx, trial, &error).await,
        }
    }
    let verdict = Verdict::of(&sides[1], &sides[0]);
    if verdict == Verdict::Same {
        memory.found_same(trial);
    }
    verdict
}

/// A template that is gone is one cause of a failure. Others have the same codes, so it is looked for.
async fn failed(cx: &Cx, trial: &Trial, error: &WriteError) -> Verdict {
    let may_be_gone = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict);
    if may_be_gone && is_gone(cx, trial).await {
        return Verdict::Gone;
    }
    Verdict::Failed(error.message().to_owned())
}

/// Whether no object has the uid of the template any more. Not if that cannot be read.
async fn is_gone(cx: &Cx, trial: &Trial) -> bool {
    let at = |field: &str| text(&trial.have, field);
    let gvk = gvk_from(at("/apiVersion"), at("/kind"));
    let key = ObjectKey::new(at("/metadata/namespace"), at("/metadata/name"));
    match cx.read_value(&gvk, &key).await {
        Seen::Found(object) => text(&object, "/metadata/uid") != trial.uid,
        Seen::NotFound => true,
        Seen::Failed(_) => false,
    }
}
