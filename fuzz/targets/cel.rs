//! A CEL rule and a value, separated by a zero byte: compiled with a definition, then asked about the value.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::cel::run(data));
