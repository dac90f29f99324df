//! The topology controllers against an API server of each test's own, with providers that no controller implements.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::large_futures,
    reason = "a test stops where something is not as it says"
)]

mod env;
mod external;
mod faults;
mod founding;
mod life;
mod lost_fields;
mod refusals;
mod rotation;
mod templates;
mod variables;
mod versions;
