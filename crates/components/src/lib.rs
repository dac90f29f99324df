//! What a provider's files say and what is made of them. Pure: texts and objects in, objects out.
//!
//! The way of a release's component file to the objects that are applied:
//!
//! 1. [`envsubst`] replaces the variables of the text;
//! 2. [`manifest`] reads its objects;
//! 3. [`images`] takes images from other places;
//! 4. [`assemble`] puts everything into one namespace, labels and checks it;
//! 5. [`customize`] and [`args`] apply the settings of the provider object, [`patch`] its patches;
//! 6. [`certificates`] stands in for cert-manager where there is none.
//!
//! [`metadata`] says which contract a release has, [`version`] which release is the latest, [`table`] where the releases of the
//! providers that everybody knows are.

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
