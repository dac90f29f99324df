//! The controller driver: caches, queue, own-writes guard, apply, status, events, metrics, health.
//!
//! A controller implements [`Controller`]: `observe` (the only reader), `plan` (pure), `apply` (the only writer) and `status`
//! (pure). Everything else is here: shared watches, the work queue with backoff per object, and the handling of finalizer and
//! pause. The driver does not reconcile an object again before the caches have seen the writes of its last reconcile. The writer
//! does not send a write that would change nothing.

mod api_client;
mod backoff;
mod budget;
mod cache;
mod controller;
mod cx;
mod driver;
mod election;
mod error;
mod events;
mod failing;
mod guard;
mod health;
mod journal;
mod later;
mod metadata;
mod metrics;
mod object;
pub mod owner;
mod pace;
mod pause;
mod plan;
mod queue;
mod reader;
mod request;
mod resync;
mod runtime;
mod scope;
mod seen;
mod tasks;
mod term;
mod tracking;
pub mod transport;
mod watch;
mod watch_events;
mod writer;

pub use api_client::{ApiClient, ListQuery, PatchKind};
pub use backoff::Backoff;
pub use budget::Budget;
pub use cache::{Cache, Change, Crd, CrdNames, CrdSpec, CrdVersion, DynCache, StaleList};
pub use controller::{Controller, Outcome};
pub use cx::Cx;
pub use driver::ControllerEntry;
pub use election::{Candidate, Lost, Timing};
pub use error::{ErrorKind, ReconcileError, RuntimeError, Triage, WriteError, with_causes};
pub use events::{EventSubject, EventType};
pub use failing::Failing;
pub use jiff::Timestamp;
pub use later::Later;
pub use metadata::{KeptMetadata, MetadataChange};
pub use metrics::{
    ControllerLoad, CountedHost, DurationMetric, Durations, METRICS, MetricInfo, MetricKind, Metrics, Row, Table,
};
pub use object::{Dynamic, GroupKind, Gvk, Object, ObjectKey, gvk_from, gvk_of, key_of};
pub use pace::StatusPace;
pub use plan::{Blocked, Decision, Done, NoQuestion, Note, NoteEvent, Plan, Until};
pub use queue::Queue;
pub use reader::{Resource, Selection};
pub use request::{Cause, RequestError};
pub use runtime::{Runtime, RuntimeBuilder};
pub use scope::Scope;
pub use seen::Seen;
pub use serde_json::Value;
pub use tasks::{Panicked, Tasks};
pub use term::Term;
pub use watch::{Wake, Watch, refers_to};
pub use watch_events::watch_events;
pub use windlass_api::codec::{Codec, Part, Stored};
pub use windlass_meta::repeats::Repeats;
pub use windlass_meta::{Clock, Moment, NameSource, SystemClock, SystemNames};
pub use writer::{Applied, Deleted, Propagation, Write, Writer};
