//! Where the releases of known providers are.
