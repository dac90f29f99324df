//! The answers of a workload cluster to an informer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::frames::run(data));
