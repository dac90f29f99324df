//! Admission over HTTPS.
//!
//! A [`Rule`] is a pure function that checks writes of one kind. API servers in the same process call [`Rule::judge`] themselves.
//! For others, [`start`] serves AdmissionReviews and maintains the ValidatingWebhookConfiguration with the address of the server.
//! The certificates are generated and stored in a Secret that several processes share, or come from the user's files. Both are
//! replaced at run time.

mod certified;
mod configuration;
mod error;
mod files;
mod keeper;
mod material;
mod review;
mod reviewer;
mod rights;
mod rule;
mod secret;
mod server;
mod start;
mod target;
#[cfg(test)]
mod testing;

pub use configuration::{FIELD_MANAGER, NAME};
pub use error::WebhookError;
pub use rights::{Asker, Part, Reference, Refers, Refusal, Right, USE, decide};
pub use rule::{Change, Check, Operation, Rule, Verdict};
pub use secret::SECRET_NAME;
pub use start::{Certificates, Options, Webhooks, start, withdraw};
pub use target::Target;
