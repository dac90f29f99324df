//! The planner of kubeadm control planes: cases, and a small world in which it runs until it rests.

mod cases;
mod sim;
mod status;
mod world;
