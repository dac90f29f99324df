//! A document and a patch, both JSON, separated by a zero byte: JSON patch, merge patch, strategic merge patch.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::patch::run(data));
