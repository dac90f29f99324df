//! The whole program in one process: what `windlass up` runs, with clusters from creation to deletion.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod addon_providers;
mod admission;
mod admission_cases;
mod admission_network;
mod bad_input;
mod class_changes;
mod class_life;
mod class_waves;
mod deployments;
mod diagnostics;
mod example_extension;
mod extension_faults;
mod extensions;
mod external_core;
mod external_life;
mod external_machines;
mod external_modes;
mod external_patches;
mod external_switch;
mod faults;
mod foreign_class;
mod helm_addons;
mod helm_pages;
mod in_place;
mod ip_pools;
mod kubeadm;
mod life;
mod lifecycle_hooks;
mod machine_pools;
mod manager_role;
mod operator_alone;
mod operator_input;
mod operator_pages;
mod plan;
mod provider_operator;
mod resource_sets;
mod rights;
mod safety;
mod scope;
mod settled;
mod standalone;
mod taints;
mod tenants;
mod wrong_references;
