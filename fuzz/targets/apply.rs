//! Configurations that managers apply and write one after the other, as JSON documents separated by zero bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::apply::run(data));
