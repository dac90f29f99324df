//! A release of Helm, as a workload cluster keeps it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::releases::run(data));
