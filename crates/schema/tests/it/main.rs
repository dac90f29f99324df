//! Schemas against recorded cases, properties, and tables.

mod cases;
mod laws;
mod tables;
