//! The HTTP servers of a manager: webhooks, health, diagnostics.
//!
//! Clients that only open connections must not keep others away. So the number of connections is limited, in total and by peer, and one
//! that does nothing, or sends a body slowly, ends after a while, or when a new one needs its place or the bodies take too much memory. What a path answers belongs to the users of this crate. The embedded API server has a
//! listener of its own: it serves watches, upgrades and client certificates.

mod arriving;
mod connections;
mod server;
mod turns;

pub use arriving::Arriving;
pub use server::{Answer, DRAIN, Server, respond, tls};
pub use turns::{Place, Turn, Turns};
