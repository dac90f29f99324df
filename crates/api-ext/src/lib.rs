//! Types outside the core: the dev infrastructure provider, and the Helm add-on provider ([`addons`]).

pub mod addons;
pub mod annotations;
pub mod conditions;
pub mod finalizers;
pub mod infrastructure;
pub mod reasons;
pub mod v1beta1;
