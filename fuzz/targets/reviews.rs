//! A review that is sent to the webhook server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::reviews::run(data));
