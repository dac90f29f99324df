//! Version v1beta2 of ExtensionConfigs.

mod extension_config;

pub use extension_config::*;
