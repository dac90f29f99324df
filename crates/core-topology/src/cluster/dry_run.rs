//! Dry runs: the API server's answer to a trial. Nothing is stored.

use windlass_controller_runtime::{Cx, ErrorKind};
use windlass_topology::keys;
use windlass_topology::trial::{Trial, Verdict};

use super::memory::Memory;

/// Tries an intent, unless its answer is known.
pub(super) async fn verdict(cx: &Cx, trial: &Trial, memory: &Memory) -> Result<Verdict, String> {
    if memory.is_same(trial) {
        return Ok(Verdict::Same);
    }
    let mut sides = Vec::with_capacity(2);
    for side in [&trial.want, &trial.have] {
        match cx.writer().try_apply_value(keys::FIELD_MANAGER, side).await {
            Ok(object) => sides.push(object),
            // No object has this uid any more.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => {
                return Ok(Verdict::Gone);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let verdict = Verdict::of(&sides[1], &sides[0]);
    if verdict == Verdict::Same {
        memory.found_same(trial);
    }
    Ok(verdict)
}
