//! Outputs of a report.

pub mod adoption;
pub mod data;
pub mod markdown;
pub mod text;
mod words;
