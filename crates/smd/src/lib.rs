//! Structured merge: field sets, managed fields, server-side apply, ownership after updates, patches, and whether an apply would
//! change anything.

mod apply;
mod builtin;
mod depth;
mod differs;
mod error;
mod field_set;
mod json_patch;
mod last_applied;
mod managed;
mod merge_patch;
mod ownership;
mod request;
mod scale;
mod scope;
mod strategic;
mod strategic_lists;
mod typed;

pub use apply::{Applied, apply};
pub use depth::deeper_than;
pub use differs::{ListKeys, differs, differs_with};
pub use error::{ApplyError, Conflict, Conflicts, PatchError};
pub use field_set::{Elem, FieldSet};
pub use json_patch::{Edit, edit, json_patch};
pub use managed::{Entry, ManagedFields, Operation};
pub use merge_patch::merge_patch;
pub use ownership::update;
pub use request::Request;
pub use scale::{object_managers, scale_managers};
pub use scope::{Scope, Versions};
pub use strategic::strategic_merge_patch;
pub use typed::{go_text, go_type};
