//! Condition types and reasons: the constants of the API crates with their doc comments.

use std::fmt::Write as _;
use std::path::Path;

use super::{code, table};
use crate::sources;

/// A constant of a source file.
#[derive(Debug, PartialEq, Eq)]
struct Constant {
    value: String,
    doc: String,
}

/// The files and their headings. In files other than `conditions` and `reasons`, the constants are in a named module.
const FILES: &[(&str, &str)] = &[
    ("Core kinds: condition types", "crates/api/src/conditions.rs"),
    ("Core kinds: reasons", "crates/api/src/reasons.rs"),
    ("Resource sets: condition types", "crates/api/src/addons/conditions.rs"),
    ("Resource sets: reasons", "crates/api/src/addons/reasons.rs"),
    ("kubeadm kinds: condition types", "crates/api-kubeadm/src/conditions.rs"),
    ("kubeadm kinds: reasons", "crates/api-kubeadm/src/reasons.rs"),
    (
        "Dev infrastructure kinds: condition types",
        "crates/api-ext/src/conditions.rs",
    ),
    ("Dev infrastructure kinds: reasons", "crates/api-ext/src/reasons.rs"),
    (
        "Provider kinds: condition types",
        "crates/api-operator/src/conditions.rs",
    ),
    ("Provider kinds: reasons", "crates/api-operator/src/reasons.rs"),
    (
        "Provider kinds: reasons of this operator",
        "crates/operator/src/names.rs",
    ),
    (
        "Helm add-on kinds: condition types",
        "crates/api-ext/src/addons/conditions.rs",
    ),
    ("Helm add-on kinds: reasons", "crates/api-ext/src/addons/reasons.rs"),
];

/// The page.
pub(super) fn page(root: &Path) -> Result<String, String> {
    let mut text = "# Conditions and reasons\n\nThe names of `status.conditions` in the API versions that Windlass serves. kubeadm, dev infrastructure, provider and add-on kinds also use those of the core.\n\n".to_owned();
    for (heading, path) in FILES {
        let source = sources::read(&root.join(path))?;
        let source = if path.ends_with("/names.rs") {
            source.split("pub mod reasons").nth(1).unwrap_or_default().to_owned()
        } else {
            source
        };
        let found = constants(&source);
        if found.is_empty() {
            return Err(format!("{path} has no constants: tell the generator where they are"));
        }
        let rows: Vec<Vec<String>> = found
            .into_iter()
            .map(|found| vec![code(&found.value), found.doc])
            .collect();
        let _ = write!(text, "## {heading}\n\n");
        text.push_str(&table(&["name", "meaning"], &rows));
    }
    Ok(text)
}

/// The public text constants with the doc comments before them.
fn constants(source: &str) -> Vec<Constant> {
    let mut found = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if line.starts_with("pub const ") {
            let mut whole = line.to_owned();
            while !whole.ends_with(';') {
                let Some(next) = lines.next() else { break };
                whole.push_str(next);
            }
            if let Some(value) = whole.split('"').nth(1) {
                found.push(Constant {
                    value: value.to_owned(),
                    doc: doc.join(" "),
                });
            }
            doc.clear();
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_come_with_their_comments() {
        let source = "//! Header.\n\n/// On A,\n/// B.\npub const LONG_NAME: &str =\n    \"LongName\";\npub const BARE: &str = \"Bare\";\n";
        let constant = |value: &str, doc: &str| Constant {
            value: value.to_owned(),
            doc: doc.to_owned(),
        };
        assert_eq!(
            constants(source),
            [constant("LongName", "On A, B."), constant("Bare", "")]
        );
    }

    #[test]
    fn every_file_of_reasons_and_conditions_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for place in sources::product(&root).unwrap().keys() {
            let is_api = place.starts_with("crates/api") && !place.contains("v1beta1") && !place.contains("apiserver");
            if is_api && (place.ends_with("/reasons.rs") || place.ends_with("/conditions.rs")) {
                assert!(FILES.iter().any(|(_, path)| path == place), "{place}");
            }
        }
    }
}
