//! What a client sends over SPDY.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::streams::run(data));
