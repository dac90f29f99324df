//! The store through its public face: history, durability, damage.

mod durable;
mod history;
mod killed;
mod support;
