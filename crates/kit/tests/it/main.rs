//! The driver against the embedded API server, with faults in between.

mod cache;
mod driver;
mod dynamic;
mod gadget;
mod harness;
mod writer;
