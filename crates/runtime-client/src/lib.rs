//! Calls of Runtime SDK extensions.
//!
//! The handlers of all extensions are in the status of the ExtensionConfigs: each call reads them from the cache, so a process that has just
//! started knows as much as the one before it, and nothing has to be registered. [`Extensions`] calls them, one after the other:
//!
//! - Failures to get an answer are ignored if the handler says so (`failurePolicy: Ignore`). A handler that answers with a failure is never
//!   ignored, and neither is an answer that is not one.
//! - The answer of a handler that blocks is kept until it wants to be asked again, or what it was asked about changes.
//! - A call takes no longer than the handler allows, an answer is no larger than 20 MiB, and no extension has more than a few calls at once.
//! - What an extension can do, it is asked once: the answer counts for ten minutes, as long as the question is the same.
//!
//! [`discovery`] checks what an extension says about itself. [`in_place`] reads what it promises to change without a replacement, and [`marks`]
//! are the annotations of such changes.

mod address;
mod answers;
mod call;
pub mod clusters;
pub mod discovery;
mod extensions;
mod handlers;
pub mod in_place;
pub mod marks;
mod metrics;

pub use answers::CallError;
pub use call::ClientIdentity;
pub use extensions::{About, Callable, Extensions};
pub use handlers::Handler;
pub use metrics::METRICS;
