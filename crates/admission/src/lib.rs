//! Admission: what is completed and checked before an object is stored.
//!
//! A [`Rule`] completes and checks writes of one kind by pure functions of the request and of a read-only [`View`] of other objects. The
//! embedded API server calls it in process; crate `webhook` serves it to others. The rules are those of Cluster API v1.14, with its
//! fields and words.

pub mod addons;
mod changes;
mod common;
pub mod core;
#[cfg(test)]
mod cost;
mod decoded;
pub mod defaults;
pub mod dev;
mod field;
mod forgiven;
pub mod ipam;
pub mod kubeadm;
pub mod operator;
mod rights;
pub mod rollouts;
mod rule;
pub mod runtime;
pub mod view;

pub use decoded::Decode;
pub use field::Field;
pub use rights::{Asker, Part, Reference, Refers, Refusal, Right, USE, decide};
pub use rule::{Admission, Change, Check, CheckScale, Closed, Complete, Hook, Operation, Rule, Verdict, WRITES};
pub use view::{Found, Read, Unread, View};
