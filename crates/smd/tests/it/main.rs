//! Structured merge against recorded sequences, laws, and tables.

mod vectors;
