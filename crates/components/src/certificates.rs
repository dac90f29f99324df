//! What cert-manager would do, done without it.
