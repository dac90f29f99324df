//! What exists, as data: kinds, CRDs, controllers.

pub mod controllers;
pub mod crds;
pub mod install;
pub mod kinds;
