//! Versioned storage of encoded objects: memory and durable.
//!
//! A [`Store`] holds the encoded form of every object under (resource, namespace, name), gives each change the next number of
//! one global revision, and keeps a bounded log of changes per resource for watches. It never decodes an object: what it must
//! know (uid, labels, owners, finalizers) travels in a [`Header`].
//!
//! All reads are served from memory. The durable variant answers a write only after the frame that holds it was synced to
//! disk, and shows it to readers and watchers only then, so no reader sees a change that a crash could undo. It keeps a
//! log of changes and, from time to time, a base that says what they led to (`log`, `load`); [`snapshot`] copies all that into
//! one file.

mod base;
mod codec;
mod durable;
mod error;
mod files;
mod folder;
mod load;
mod log;
mod memory;
#[cfg(test)]
mod power;
mod record;
pub mod snapshot;
mod store;
mod watcher;

pub use error::{CommitError, OpenError, SnapshotError, StorageError};
pub use record::{Change, Draft, Event, Expect, Header, Key, OwnerLink, Record, Write};
pub use store::{Limits, ListQuery, Page, Store};
pub use watcher::{Expired, Watcher};
