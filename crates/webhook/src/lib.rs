//! Admission over HTTPS.
//!
//! A [`Rule`] is a pure function that judges writes of one kind. API servers in the same process call [`Rule::judge`] themselves;
//! for others [`start`] serves AdmissionReviews and keeps the ValidatingWebhookConfiguration right that names the server. The
//! certificates are its own, kept in a Secret that several processes share, or the user's files; both are replaced while it runs.

mod certified;
mod configuration;
mod error;
mod files;
mod keeper;
mod material;
mod review;
mod rule;
mod secret;
mod server;
mod start;
mod target;
#[cfg(test)]
mod testing;

pub use configuration::{FIELD_MANAGER, NAME};
pub use error::WebhookError;
pub use rule::{Change, Check, Operation, Rule, Verdict};
pub use secret::SECRET_NAME;
pub use start::{Certificates, Options, Webhooks, start, withdraw};
pub use target::Target;
