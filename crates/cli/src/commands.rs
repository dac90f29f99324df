//! The short commands.

pub(crate) mod apiserver;
pub(crate) mod crds;
pub(crate) mod demo;
pub(crate) mod manager;
pub(crate) mod plan;
pub(crate) mod up;
