//! `cargo xtask vectors`: computes the test vectors of schemas, patches and applies with Kubernetes' own libraries, and those of Corefiles with
//! the migration library of CoreDNS.
//!
//! A vector is a JSON value per line, with its result. For a new vector, add a line without the result, and this task adds it.
//! The tests of `cel`, `smd` and `kubeadm` compare our code with the vectors; this task compares the vectors with the libraries, at the
//! versions of `tools/go.mod` and `tools/corefiles/go.mod`.

use std::fs;
use std::path::Path;

use windlass_envtest::missing;

use crate::tools::{Go, ask};

/// The module and the words by which Go runs the program of each type of vectors, and the file with them.
const SORTS: [(&str, &[&str], &str); 4] = [
    (KUBERNETES, &["./vectors", "schemas"], "crates/cel/tests/it/cases.jsonl"),
    (
        KUBERNETES,
        &["./vectors", "patches"],
        "crates/smd/tests/it/patches.jsonl",
    ),
    (
        KUBERNETES,
        &["./vectors", "sequences"],
        "crates/smd/tests/it/sequences.jsonl",
    ),
    // Kubernetes has an older version of this library.
    (COREDNS, &["."], "crates/kubeadm/tests/it/corefiles.jsonl"),
];
const KUBERNETES: &str = "tools";
const COREDNS: &str = "tools/corefiles";

/// Runs the libraries, and writes their results, or only compares them with `check`. Returns the files that differ;
/// without Go, a check succeeds.
pub(crate) fn run(root: &Path, check: bool) -> Result<Option<Vec<&'static str>>, String> {
    let modules = [(KUBERNETES, "the test vectors"), (COREDNS, "the test vectors")];
    if let Err(why) = Go::find(root, modules) {
        if !check {
            return Err(why);
        }
        missing::left_out("comparing the test vectors with what the libraries give", &why)?;
        return Ok(None);
    }
    let mut stale = Vec::new();
    for (module, program, file) in SORTS {
        let path = root.join(file);
        let have = fs::read_to_string(&path).map_err(|error| format!("{file}: cannot be read: {error}"))?;
        let words = [&["run"], program].concat();
        let want = ask(&root.join(module), &words, have.clone())?;
        if want == have {
            continue;
        }
        stale.push(file);
        if !check {
            fs::write(&path, want).map_err(|error| format!("{file}: cannot be written: {error}"))?;
        }
    }
    Ok(Some(stale))
}
