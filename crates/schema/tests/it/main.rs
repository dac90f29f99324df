//! Schemas against laws and tables.

mod laws;
mod tables;
