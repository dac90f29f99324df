//! The one program, `windlass`.
fn main() {}
