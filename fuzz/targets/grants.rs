//! Rules that a tenant puts into a role.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::grants::run(data));
