//! A write of an object for which there are admission rules.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::admission::run(data));
