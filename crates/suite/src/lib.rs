//! What exists, as data: kinds, CRDs, controllers, admission.

pub mod admission;
pub mod controllers;
pub mod crds;
pub mod helm;
pub mod install;
pub mod kinds;
