//! `cargo xtask dist`: the program as it is shipped, with a list of what is in it and checksums.
//!
//! The list is a CycloneDX document: each crate with version, license, and the checksum of `Cargo.lock`. It has neither a time nor a
//! serial number, so equal sources give an equal list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cargo;

/// The folder below the target folder.
const DIR: &str = "dist-files";

/// Options of `dist`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// The profile of the build
    #[arg(long, default_value = "dist", conflicts_with = "program")]
    profile: String,
    /// Take this program instead of building it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// A crate in the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    license: String,
    /// Whether it comes from this repository.
    is_own: bool,
}

/// Builds the program and writes the files. Returns their folder.
pub(crate) fn run(root: &Path, options: &Options) -> Result<PathBuf, String> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => built(root, &options.profile)?,
    };
    let program = fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    let tree = [
        "tree",
        "--locked",
        "--package",
        "windlass",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}|{l}",
    ];
    let parts = parts(&output(root, &tree)?)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let host = host(&output(root, &["--version", "--verbose"])?)?;
    let own = parts
        .iter()
        .find(|part| part.name == "windlass")
        .ok_or("cargo tree does not name windlass")?;
    let name = format!("windlass-{}-{host}", own.version);
    let list = list(&parts, own, &checksums(&lock), &hex(&Sha256::digest(&program)));
    let list = serde_json::to_vec_pretty(&list).map_err(|error| error.to_string())?;
    let dir = cargo::target(root).join(DIR);
    let files = [(name.clone(), program), (format!("{name}.cdx.json"), list)];
    write(&dir, &files).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

/// Builds the program in a profile.
fn built(root: &Path, profile: &str) -> Result<PathBuf, String> {
    let words = ["build", "--locked", "--bin", "windlass", "--profile", profile];
    if !cargo::run(&mut cargo::cargo(root, &words))? {
        return Err("the program cannot be built".to_owned());
    }
    // The only profile whose folder has another name.
    let folder = match profile {
        "dev" => "debug",
        other => other,
    };
    Ok(cargo::target(root).join(folder).join("windlass"))
}

fn write(dir: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let mut sums = String::new();
    for (index, (name, content)) in files.iter().enumerate() {
        let path = dir.join(name);
        fs::write(&path, content)?;
        #[cfg(unix)]
        if index == 0 {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        let _ = writeln!(sums, "{}  {name}", hex(&Sha256::digest(content)));
    }
    fs::write(dir.join("SHA256SUMS"), sums)
}

fn output(root: &Path, args: &[&str]) -> Result<String, String> {
    let out = cargo::cargo(root, args).output();
    let out = out.map_err(|error| format!("cannot run cargo: {error}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(format!(
        "cargo {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&out.stderr)
    ))
}

/// The platform that cargo builds for, from `cargo --version --verbose`.
fn host(version: &str) -> Result<String, String> {
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "cargo does not say its host".to_owned())
}

/// The crates in the output of `cargo tree`: `name v1.2.3 (path)|license`, and ` (*)` where one comes again.
fn parts(tree: &str) -> Result<BTreeSet<Part>, String> {
    let lines = tree.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (package, license) = line.split_once('|').ok_or_else(|| format!("cargo tree says: {line}"))?;
            let mut words = package.split(' ');
            let name = words.next().unwrap_or_default();
            let version = words.next().and_then(|word| word.strip_prefix('v'));
            Ok(Part {
                name: name.to_owned(),
                version: version.ok_or_else(|| format!("cargo tree says: {line}"))?.to_owned(),
                license: license.trim_end_matches(" (*)").trim().to_owned(),
                is_own: words.next().is_some_and(|word| word.starts_with("(/")),
            })
        })
        .collect()
}

/// The checksum of each `name version` in a `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |block: &str, key: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.map(|line| line.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| {
            let name = format!("{} {}", value(block, "name")?, value(block, "version")?);
            Some((name, value(block, "checksum")?))
        })
        .collect()
}

/// The document.
fn list(parts: &BTreeSet<Part>, own: &Part, checksums: &BTreeMap<String, String>, program: &str) -> Value {
    let component = |part: &Part| {
        let mut component = json!({
            "type": "library",
            "bom-ref": format!("pkg:cargo/{}@{}", part.name, part.version),
            "name": part.name,
            "version": part.version,
            "licenses": [{ "expression": part.license.replace('/', " OR ") }],
        });
        if part.license.is_empty() {
            component.as_object_mut().map(|fields| fields.remove("licenses"));
        }
        if !part.is_own {
            component["purl"] = component["bom-ref"].clone();
        }
        if let Some(checksum) = checksums.get(&format!("{} {}", part.name, part.version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let mut subject = component(own);
    subject["type"] = "application".into();
    subject["hashes"] = json!([{ "alg": "SHA-256", "content": program }]);
    let others: Vec<Value> = parts.iter().filter(|part| *part != own).map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": subject },
        "components": others,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "windlass v0.1.0 (/w/crates/cli)|Apache-2.0\n\nahash v0.8.12|MIT OR Apache-2.0\nderive v1.0.0 (proc-macro)|MIT/Apache-2.0\nahash v0.8.12|MIT OR Apache-2.0 (*)\n";

    #[test]
    fn each_crate_is_listed_once_with_its_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"ahash\"\nversion = \"0.8.12\"\nchecksum = \"5a15\"\ndependencies = [\n \"cfg-if\",\n]\n\n[[package]]\nname = \"windlass\"\nversion = \"0.1.0\"\n";
        let parts = parts(TREE).unwrap();
        let own = parts.iter().find(|part| part.is_own).unwrap();
        let list = list(&parts, own, &checksums(lock), "00ff");
        assert_eq!(
            list["metadata"]["component"],
            json!({
                "type": "application", "bom-ref": "pkg:cargo/windlass@0.1.0", "name": "windlass", "version": "0.1.0",
                "licenses": [{ "expression": "Apache-2.0" }], "hashes": [{ "alg": "SHA-256", "content": "00ff" }],
            })
        );
        let others = list["components"].as_array().unwrap();
        assert_eq!(others.len(), 2);
        assert_eq!(others[0]["hashes"][0]["content"], "5a15");
        assert_eq!(others[0]["purl"], "pkg:cargo/ahash@0.8.12");
        assert_eq!(others[1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(others[1].get("hashes"), None);
    }

    #[test]
    fn what_cargo_does_not_say_is_an_error() {
        assert!(super::parts("windlass|MIT").is_err());
        assert!(host("cargo 1.95.0\n").is_err());
        assert_eq!(
            host("cargo 1.95.0\nhost: x86_64-unknown-linux-gnu\n").unwrap(),
            "x86_64-unknown-linux-gnu"
        );
    }
}
