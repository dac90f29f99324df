//! Version v1alpha1.

mod helm_chart_proxy;
mod helm_release_proxy;
mod options;
mod schema;

pub use helm_chart_proxy::*;
pub use helm_release_proxy::*;
pub use options::*;
