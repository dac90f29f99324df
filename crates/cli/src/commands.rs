//! The short commands.

pub(crate) mod adopt;
pub(crate) mod apiserver;
pub(crate) mod crds;
pub(crate) mod demo;
mod files;
pub(crate) mod lint;
pub(crate) mod manager;
pub(crate) mod plan;
pub(crate) mod test;
pub(crate) mod up;
