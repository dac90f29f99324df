//! Names of the v1beta1 generation of conditions, which v1.14 still keeps up in `status.deprecated.v1beta1`.

pub mod conditions;
pub mod reasons;
