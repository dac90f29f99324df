//! Provider components: processing of a provider's files. Pure: texts and objects in, objects out.
//!
//! The steps from a release's components file to the applied objects:
//!
//! 1. [`envsubst`] replaces the variables of the text;
//! 2. [`manifest`] parses its objects;
//! 3. [`images`] replaces images;
//! 4. [`assemble`] moves everything into one namespace, labels and checks it;
//! 5. [`customize`] and [`args`] apply the settings of the provider object, [`patch`] its patches;
//! 6. [`certificates`] replaces cert-manager if it is not installed.
//!
//! [`metadata`] has the contract of a release, [`version`] the choice of the latest release, [`table`] the repositories
//! of the known providers.

pub mod args;
pub mod assemble;
pub mod certificates;
pub mod customize;
pub mod envsubst;
pub mod images;
pub mod manifest;
pub mod metadata;
pub mod object;
pub mod patch;
mod plural;
pub mod table;
pub mod version;
mod yaml;
