//! `cargo xtask etcd`: generates the messages of the etcd API from our trimmed protocol file.
//!
//! The generator is a separate workspace (`tools/etcd-messages`), so that the main build compiles no protobuf compiler.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo;

const GENERATOR: &str = "tools/etcd-messages/Cargo.toml";
const FOLDER: &str = "crates/etcd/proto";
const PROTOCOL: &str = "etcd.proto";
const MESSAGES: &str = "etcdserverpb.rs";

/// The first line of the generated file; the generator writes the rest.
const HEADER: &str = "// Generated from etcd.proto by `cargo xtask etcd`; `cargo xtask etcd --check` compares.\n";

/// Generates the file and writes it; with `check`, only compares. Returns the path of a file that was stale.
pub(crate) fn run(root: &Path, check: bool) -> Result<Option<PathBuf>, String> {
    let path = PathBuf::from(FOLDER).join(MESSAGES);
    let want = generate(root)?;
    let file = root.join(&path);
    if fs::read_to_string(&file).is_ok_and(|have| have == want) {
        return Ok(None);
    }
    if !check {
        fs::write(&file, want).map_err(|error| format!("{}: cannot be written: {error}", path.display()))?;
    }
    Ok(Some(path))
}

fn generate(root: &Path) -> Result<String, String> {
    let output = cargo::target(root).join("etcd-messages");
    fs::create_dir_all(&output).map_err(|error| format!("{}: cannot be created: {error}", output.display()))?;
    let mut generator = cargo::cargo(
        root,
        &["run", "--quiet", "--locked", "--manifest-path", GENERATOR, "--"],
    );
    generator
        .arg(root.join(FOLDER).join(PROTOCOL))
        .arg(&output)
        .env("CARGO_TARGET_DIR", cargo::target(root));
    if !cargo::run(&mut generator)? {
        return Err(format!("{GENERATOR}: the generator failed"));
    }
    let file = output.join(MESSAGES);
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
    Ok(format!("{HEADER}{text}"))
}
