//! What exists, as data: kinds, CRDs, controllers.

pub mod crds;
pub mod kinds;
