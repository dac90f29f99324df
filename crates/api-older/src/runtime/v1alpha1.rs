//! Version v1alpha1 of the group of runtime extensions.

mod extension_config;

pub use extension_config::*;
