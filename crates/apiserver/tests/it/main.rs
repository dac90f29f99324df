//! The server through a `kube` client, within the process.

mod collect;
mod crds;
mod edge;
mod objects;
mod support;
mod views;
mod watching;
