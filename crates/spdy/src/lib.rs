//! SPDY/3.1 as Kubernetes uses it: one side of a connection, a server or a client. Nothing here reads or writes: bytes go in, events and
//! bytes come out.
//!
//! The rules are those of <https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/>. What Kubernetes' programs do differently is
//! said where it matters. Credentials and server push are left out, as no client of Kubernetes uses them.

mod frame;
mod headers;
mod session;

pub use frame::{Decoder, Encoder, Frame, Violation, status};
pub use headers::Headers;
pub use session::{Event, Limits, Session, WINDOW};
