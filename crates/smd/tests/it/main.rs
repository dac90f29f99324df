//! Structured merge against recorded sequences, properties, and tables.

mod laws;
mod patches;
mod reference;
mod tables;
mod vectors;
mod versions;
