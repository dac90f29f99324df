//! `x-kubernetes-validations`: CEL rules of schemas, and conditions of admission webhooks.
//!
//! `windlass-schema` keeps the rules of a schema as they are written. A [`Validator`] is a schema with its rules compiled, once for
//! each CRD version (or ClusterClass variable): it validates values completely. [`review`] says what is wrong with the rules of a new
//! schema, and what they may cost. Expressions are parsed and evaluated by the crate `cel`; types, costs, Kubernetes' libraries and
//! the wording of errors are ours.

mod blame;
mod checker;
mod condition;
mod convert;
mod cost;
mod declared;
mod depth;
mod evaluate;
mod keyed;
mod library;
mod macros;
mod patterns;
mod permissions;
mod program;
mod review;
mod rule;
mod signatures;
mod sizes;
mod typing;
mod validator;
mod values;

pub use condition::{Budget, Condition, Facts};
pub use permissions::{Permission, Permissions, Permitted};
pub use validator::{Validator, review};
