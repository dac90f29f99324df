//! Versioned storage of encoded objects: memory and durable.
//!
//! A [`Store`] has the encoded form of every object under (resource, namespace, name). Each change gets the next number of one
//! global revision. A bounded log of changes per resource serves watches. The store never decodes an object: a [`Header`] carries
//! the fields that it needs (uid, labels, owners, finalizers).
//!
//! All reads are served from memory. The durable variant answers a write only after its frame was synced to disk, and publishes
//! it to readers and watchers only then, so that no reader sees a change that a crash could undo. It writes a log of changes and,
//! from time to time, a base with all objects (`log`, `load`); [`snapshot`] copies them into one file.

mod base;
mod codec;
mod durable;
mod error;
mod files;
mod folder;
mod labels;
mod load;
mod log;
mod memory;
#[cfg(test)]
mod power;
mod record;
pub mod snapshot;
mod store;
mod trouble;
mod watcher;

pub use error::{CommitError, OpenError, SnapshotError, StorageError};
pub use record::{Change, Draft, Event, Expect, Header, Key, OwnerLink, Record, Write};
pub use store::{Limits, ListQuery, Page, Sizes, Store};
pub use watcher::{Expired, Watcher};
