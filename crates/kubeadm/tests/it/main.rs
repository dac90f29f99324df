//! Bootstrap data as a machine takes it: by an interpreter of cloud-config, and by the real kubeadm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod files;
mod kubeadm;
mod machine;
mod samples;
