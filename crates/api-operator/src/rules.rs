//! The patterns and CEL rules that the schemas carry.

use serde_json::{Value, json};

/// A semantic version with a leading v.
pub(crate) const VERSION: &str = concat!(
    r"^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)",
    r"(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?",
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$"
);
/// A duration as Go writes it, without a sign.
pub(crate) const DURATION: &str = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$";
/// A duration as Go writes it.
pub(crate) const SIGNED_DURATION: &str = r"^-?(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$";

/// Exactly one source of the provider's files is set.
pub(crate) fn one_source(fields: &[&str]) -> Value {
    let has: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    json!([{
        "rule": format!("[{}].exists_one(x, x)", has.join(", ")),
        "message": format!("set exactly one of {}; leave fetchConfig out for a provider that is known by its name", fields.join(", ")),
    }])
}

/// manifestPatches and patches are mutually exclusive.
pub(crate) fn one_sort_of_patches() -> Value {
    json!([{
        "rule": "!(has(self.manifestPatches) && has(self.patches))",
        "message": "set either patches or manifestPatches, and not both",
    }])
}

/// While debug is set, the other manager settings are immutable. The write that clears debug may change them.
pub(crate) fn debug_locks() -> Value {
    json!([{
        "rule": "!(has(self.debug) && self.debug && has(oldSelf.debug) && oldSelf.debug) || self == oldSelf",
        "message": "while debug is true the other fields of manager cannot be changed; set debug to false first, or in the same write",
    }])
}

/// renewDeadline is at most leaseDuration.
pub(crate) fn renew_within_lease() -> Value {
    json!([{
        "rule": concat!(
            "!has(self.leaseDuration) || !has(self.renewDeadline)",
            " || duration(self.leaseDuration) == duration('0s')",
            " || duration(self.renewDeadline) <= duration(self.leaseDuration)",
        ),
        "message": "renewDeadline must not be longer than leaseDuration",
    }])
}
