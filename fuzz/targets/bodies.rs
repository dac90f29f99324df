//! Bodies of requests in every form that is read.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::bodies::run(data));
