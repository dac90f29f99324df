//! The replicas of a set that leaves them out.
//!
//! The cluster autoscaler changes the replicas of a set only within the bounds of the set's annotations. So replicas that are left out
//! become a number within them, and a set that is handed over to the autoscaler keeps its number if it is within them. Without both
//! annotations it is one (Cluster API v1.14, defaulting of MachineDeployments and MachineSets).

use serde_json::Value;
use windlass_api::annotations::{AUTOSCALER_MAX_SIZE, AUTOSCALER_MIN_SIZE};
use windlass_schema::FieldError;

use crate::defaults;
use crate::field::Field;

/// Sets replicas that are left out. `old` is the stored object, or `null`.
pub(crate) fn complete(old: &Value, set: &mut Value) -> Vec<FieldError> {
    if Field::of(set).child("spec.replicas").is_set() {
        return Vec::new();
    }
    match replicas(old, set) {
        Ok(replicas) => {
            defaults::set(set, "spec", "replicas", replicas);
            Vec::new()
        }
        Err(error) => vec![error],
    }
}

fn replicas(old: &Value, set: &Value) -> Result<i32, FieldError> {
    let annotations = Field::of(set).child("metadata.annotations");
    let (least, most) = (
        annotations.entry(AUTOSCALER_MIN_SIZE),
        annotations.entry(AUTOSCALER_MAX_SIZE),
    );
    if least.value().is_null() || most.value().is_null() {
        return Ok(1);
    }
    let number = |field: &Field<'_>| {
        let number = field.text().parse::<i32>();
        number.map_err(|_| field.invalid("the replicas of the object are left out, so this must be a number"))
    };
    let (least, most) = (number(&least)?, number(&most)?);
    let before = Field::of(old).child("spec.replicas").number();
    Ok(match before.and_then(|before| i32::try_from(before).ok()) {
        Some(before) if before >= least && before > most => most,
        Some(before) if before >= least => before,
        _ => least,
    })
}
