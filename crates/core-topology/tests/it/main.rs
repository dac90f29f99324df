//! The topology controllers against an API server of each test's own, with providers that no controller implements.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::large_futures,
    reason = "a test stops where something is not as it says"
)]

mod attributes;
mod changes;
mod env;
mod external;
mod faults;
mod founding;
mod founding_variables;
mod guards;
mod health;
mod identity;
mod life;
mod lost_fields;
mod patches;
mod refusals;
mod rotation;
mod settled;
mod shapes;
mod templates;
mod upgrade;
mod variables;
mod versions;
mod waves;
