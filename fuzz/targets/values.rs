//! A template of values and a Cluster, separated by a zero byte: read, asked what it refers to, and rendered twice.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::values::run(data));
