//! API versions before the hub versions, as types, and their conversion.
//!
//! - [`core`]: v1beta1 of `cluster.x-k8s.io`, one kind per file.
//! - [`addons`], [`infrastructure`], [`ipam`], [`runtime`]: older versions of the other groups, the same way. [`common`] has what they share.
//! - [`bootstrap`], [`controlplane`]: v1beta1 of the kubeadm kinds.
//! - [`convert()`]: an object in another version of its kind. Every conversion goes through the hub version.
//! - [`OLDER`]: all older versions, as data: their names, their part of the CRD, their conversions.
//! - [`Spoke`]: what a type of an older version implements.
//!
//! Rules of all conversions, which are those of Cluster API v1.14:
//!
//! - An object in an older version carries its whole hub form in the annotation [`DATA`]. On the way back, what the older version cannot
//!   express comes from there. Everything that the older version can express comes from its own fields, so changes there win.
//! - A reference of the hub has no version. In an older version it names the version that the CRD of the kind says by its contract label:
//!   see [`References`].
//! - Conversions are total and deterministic: an object that fits the schema of its version has one result, or one error that names a field.

pub mod addons;
pub mod bootstrap;
pub mod common;
pub mod controlplane;
mod convert;
pub mod core;
mod gaps;
mod head;
pub mod infrastructure;
pub mod ipam;
mod list;
mod parts;
mod position;
pub mod runtime;
mod words;

pub use convert::{ConversionError, DATA, OlderVersion, References, Spoke, convert};
pub use list::{OLDER, knows, older};
pub use words::{failure, undefined, without_contract};
