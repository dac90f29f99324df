//! What helm prints: Chart.yaml, the result of an installation, an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::charts::run(data));
