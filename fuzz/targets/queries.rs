//! The query of a list: selectors, limits, tokens.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::queries::run(data));
