//! What a referenced object says of itself, as a condition of the object that refers to it.

use jiff::Timestamp;
use windlass_api::{conditions as types, reasons};
use windlass_conditions::{self as conditions, Draft, Fallback, Mirror, Status};
use windlass_controller_runtime::Dynamic;

/// The provider's own Ready, or what its contract field says when it reports none. `lack` is what that field lacks, if it does.
pub(crate) fn mirrored(object: &Dynamic, lack: Option<String>) -> Draft {
    let list = match conditions::value::conditions_of(object.value()) {
        Ok(list) => list,
        Err(error) => return Draft::unknown(reasons::INVALID_CONDITION_REPORTED, error.to_string()),
    };
    let fallback = Fallback {
        status: Status::from(lack.is_none()),
        reason: if lack.is_none() {
            reasons::READY
        } else {
            reasons::NOT_READY
        },
        message: lack.map_or_else(String::new, |lack| format!("{} {lack}", object.kind())),
    };
    let rule = Mirror {
        source_type: types::READY,
        target_type: types::READY,
        fallback: Some(fallback),
    };
    let source = conditions::get(&list, types::READY);
    let mirror = conditions::mirror(source, &rule, Timestamp::UNIX_EPOCH, None);
    Draft::of(&conditions::named(mirror, reasons::READY))
}
