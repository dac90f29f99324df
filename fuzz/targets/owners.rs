//! Owner references of an object that is created and changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::owners::run(data));
