//! Schemas against recorded cases, laws, and tables.

mod cases;
mod laws;
mod tables;
