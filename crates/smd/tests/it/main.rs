//! Structured merge against recorded sequences, laws, and tables.

mod laws;
mod patches;
mod tables;
mod vectors;
