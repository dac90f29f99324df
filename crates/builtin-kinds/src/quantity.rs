//! Amounts of resources, as Kubernetes reads and writes them.

pub(crate) use windlass_gocompat::quantity::{Quantity, WRONG};
