//! What the Machine-owning controllers of this crate share: pure helpers over API objects.

pub(crate) mod clusters;
pub(crate) mod deletion_order;
pub(crate) mod guards;
pub(crate) mod in_place;
pub(crate) mod keys;
pub(crate) mod legacy;
pub(crate) mod machine_conditions;
pub(crate) mod machines;
pub(crate) mod mirrored;
pub(crate) mod naming;
pub(crate) mod nodes;
pub(crate) mod numbers;
pub(crate) mod owners;
pub(crate) mod preflight;
pub(crate) mod read;
pub(crate) mod status;
pub(crate) mod templates;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
pub(crate) mod testing;
pub(crate) mod wake;
