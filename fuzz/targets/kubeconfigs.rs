//! The kubeconfig of a workload cluster.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_fuzz_targets::kubeconfigs::run(data));
