//! A whole request of a tenant.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::requests::run(data));
