//! Parses and formats quantities of resources as Kubernetes does.

pub(crate) use windlass_gocompat::quantity::{Quantity, WRONG};
