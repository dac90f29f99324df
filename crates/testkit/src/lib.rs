//! Test support: an API server in process, builders, a fake clock, faults.
