//! Schemas with rules: recorded cases, and rules of bad schemas.

mod cases;
mod rules;
