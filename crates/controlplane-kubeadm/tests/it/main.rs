//! The planner of kubeadm control planes: cases, and a small world in which it runs until it rests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod authorities;
mod cases;
mod core_dns;
mod deadlines;
mod extensions;
mod guards;
mod in_place;
mod kept;
mod play;
mod remote;
mod rotation;
mod server;
mod sim;
mod simulation;
mod status;
mod unlinked;
mod world;
mod year;
