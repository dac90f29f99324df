//! `cargo xtask vectors`: computes the test vectors of schemas, patches and applies with Kubernetes' own libraries.
//!
//! A vector is a JSON value per line, with its result. For a new vector, add a line without the result, and this task adds it.
//! The tests of `schema` and `smd` compare our code with the vectors; this task compares the vectors with the libraries, at the
//! versions of `tools/go.mod`.

use std::fs;
use std::path::Path;

use windlass_envtest::missing;

use crate::tools::{Go, ask};

/// The program's name of each type of vectors, and the file with them.
const SORTS: [(&str, &str); 3] = [
    ("schemas", "crates/cel/tests/it/cases.jsonl"),
    ("patches", "crates/smd/tests/it/patches.jsonl"),
    ("sequences", "crates/smd/tests/it/sequences.jsonl"),
];
const MODULE: &str = "tools";

/// Runs Kubernetes' libraries, and writes their results, or only compares them with `check`. Returns the files that differ;
/// without Go, a check succeeds.
pub(crate) fn run(root: &Path, check: bool) -> Result<Option<Vec<&'static str>>, String> {
    if let Err(why) = Go::find(root, [(MODULE, "the test vectors")]) {
        if !check {
            return Err(why);
        }
        missing::left_out("comparing the test vectors with what Kubernetes' libraries give", &why)?;
        return Ok(None);
    }
    let mut stale = Vec::new();
    for (sort, file) in SORTS {
        let path = root.join(file);
        let have = fs::read_to_string(&path).map_err(|error| format!("{file}: cannot be read: {error}"))?;
        let want = ask(&root.join(MODULE), &["run", "./vectors", sort], have.clone())?;
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
