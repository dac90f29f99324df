//! Bootstrap data as a machine takes it: by an interpreter of cloud-config, by Ignition's validator, and by the real kubeadm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod cloud_configs;
mod corefiles;
mod files;
mod ignition;
mod kubeadm;
mod machine;
mod samples;
mod stored;
