//! Types outside the core: the dev infrastructure provider, the Helm add-on provider ([`addons`]), and changes of classes in waves
//! ([`rollouts`]).

pub mod addons;
pub mod annotations;
pub mod conditions;
pub mod finalizers;
pub mod infrastructure;
pub mod reasons;
pub mod rollouts;
pub mod v1beta1;
