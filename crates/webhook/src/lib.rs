//! Admission and conversion over HTTPS.
//!
//! Rules are those of crate `admission`. API servers in the same process call them themselves. For others, [`start`] serves
//! AdmissionReviews and ConversionReviews, and maintains the webhook configurations and the conversions of our definitions with the address of
//! the server. The certificates are generated and stored in
//! a Secret that several processes share, or come from the user's files. Both are replaced at run time.

mod certified;
mod configuration;
mod conversion;
mod definitions;
mod error;
mod files;
mod keeper;
mod material;
mod patch;
mod queues;
mod reads;
mod review;
mod reviewer;
mod secret;
mod server;
mod start;
mod target;
#[cfg(test)]
mod testing;

pub use configuration::{Configuration, FIELD_MANAGER};
pub use error::WebhookError;
pub use secret::SECRET_NAME;
pub use start::{Certificates, Options, Webhooks, start, withdraw};
pub use target::Target;
