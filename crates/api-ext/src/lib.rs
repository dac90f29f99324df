//! Types outside the core: the dev infrastructure provider.

pub mod infrastructure;
