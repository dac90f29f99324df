//! Every seed of every fuzz target is replayed, and every target has seeds.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use windlass_fuzz_targets::{apply, bodies, cel, envsubst, manifests, patch, queries, settings, values};

/// A target by the name of its folder of seeds.
type Target = (&'static str, fn(&[u8]));

fn text(seed: &[u8]) -> &str {
    std::str::from_utf8(seed).expect("the seeds of this target are texts")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let stem = |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| stem(entry.unwrap())).collect()
}

#[test]
fn no_seed_makes_a_target_panic() {
    let targets: [Target; 9] = [
        ("apply", apply::run),
        ("bodies", bodies::run),
        ("cel", cel::run),
        ("envsubst", |seed| envsubst::run(text(seed))),
        ("manifests", |seed| manifests::run(text(seed))),
        ("patch", patch::run),
        ("queries", queries::run),
        ("settings", |seed| settings::run(text(seed))),
        ("values", values::run),
    ];
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz");
    let known: BTreeSet<String> = targets.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(known, names(&fuzz.join("targets")), "targets of cargo-fuzz");
    assert_eq!(known, names(&fuzz.join("seeds")), "folders of seeds");
    for (name, run) in targets {
        let mut seeds = 0;
        for entry in fs::read_dir(fuzz.join("seeds").join(name)).unwrap() {
            run(&fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 0, "{name} has no seeds");
        run(&[]);
    }
}
