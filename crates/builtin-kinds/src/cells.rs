//! Table cells of the built-in kinds: for each kind its cells, in the order of its columns.

pub(crate) mod core;
pub(crate) mod others;
pub(crate) mod pods;
mod text;
pub(crate) mod workloads;

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";
const UNKNOWN: &str = "<unknown>";
