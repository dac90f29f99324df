//! What exists, as data: kinds, CRDs, controllers.
