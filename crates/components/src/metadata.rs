//! Which contract a release has.
