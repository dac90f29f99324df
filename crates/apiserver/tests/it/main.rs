//! The server through a `kube` client, within the process.

mod collect;
mod crds;
mod objects;
mod support;
mod watching;
