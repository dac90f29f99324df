//! The answers of a registry with the files of a provider.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::registries::run(data));
