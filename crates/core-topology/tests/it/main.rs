//! The topology controllers against an API server in this process, with providers that nobody implements.

mod env;
mod faults;
mod life;
