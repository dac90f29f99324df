//! `cargo xtask vectors`: what Kubernetes' own libraries make of the test vectors of our schemas, patches and applies.
//!
//! A vector is a JSON value a line with its outcome beside it. A new one is a line without the latter, and this adds it. The tests of
//! `schema` and `smd` hold our code against the vectors; this holds the vectors against the libraries, at the versions of `tools/go.mod`.

use std::fs;
use std::path::Path;

use windlass_envtest::missing;

use crate::tools::{Go, ask};

/// What the program calls a sort of vectors, and the file with them.
const SORTS: [(&str, &str); 3] = [
    ("schemas", "crates/cel/tests/it/cases.jsonl"),
    ("patches", "crates/smd/tests/it/patches.jsonl"),
    ("sequences", "crates/smd/tests/it/sequences.jsonl"),
];
const MODULE: &str = "tools";

/// Asks Kubernetes' libraries, and writes what they give unless only asked to `check`. Returns the files that are not what they give;
/// without Go a check has nothing to say.
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
