//! A file of a provider: read, its images replaced, put into a namespace and in order; and read as metadata.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| windlass_fuzz_targets::manifests::run(text));
