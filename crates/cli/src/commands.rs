//! The commands that have no folder of their own.

pub(crate) mod apiserver;
pub(crate) mod crds;
pub(crate) mod demo;
pub(crate) mod manager;
pub(crate) mod up;
