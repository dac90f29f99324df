//! A text with variables: parsed, listed, and rendered with nothing set and with everything set.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| windlass_fuzz_targets::envsubst::run(text));
