//! Objects of a provider, a patch and arguments: settings and patches applied, certificates found and put into place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| windlass_fuzz_targets::settings::run(text));
