//! Schemas against recorded cases, properties, and tables.

mod laws;
mod tables;
