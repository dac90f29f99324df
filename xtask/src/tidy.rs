//! `cargo xtask tidy`: the rules that keep the workspace in shape, checked from its own files.
//!
//! Layers come from the table in ARCHITECTURE.md, so that the page cannot drift from the code. Purity, sizes and headers are
//! read from the sources, avoided words in `words`. The checks also run as a test of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{entries, read, test_files, without_tests};
use crate::{pipeline, words};

/// A violated rule, with its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the workspace root, with a line number if useful.
    pub(crate) place: String,
    /// The problem and the remedy.
    pub(crate) what: String,
}

/// Allowed dependencies within a layer (from, to).
const WITHIN_A_LAYER: &[(&str, &str)] = &[
    ("meta", "gocompat"),
    ("api-kubeadm", "api"),
    ("api-ext", "api"),
    ("api-older", "api"),
    ("api-older", "api-ext"),
    ("api-older", "api-kubeadm"),
    ("api-operator", "api"),
    ("cel", "schema"),
    ("smd", "schema"),
    ("objects", "schema"),
    ("rbac", "objects"),
    ("rbac", "schema"),
    ("builtin-kinds", "objects"),
    ("builtin-kinds", "rbac"),
    ("builtin-kinds", "schema"),
    ("addon-values", "gotemplate"),
    ("kubeadm", "gotemplate"),
    ("admission", "contract"),
    ("admission", "gotemplate"),
    ("admission", "kubeadm"),
    ("admission", "objects"),
    ("admission", "schema"),
    ("admission", "topology"),
    ("topology", "objects"),
    ("topology", "cel"),
    ("topology", "gotemplate"),
    ("topology", "schema"),
    ("topology", "smd"),
    ("topology", "conditions"),
    ("provider-components", "contract"),
    ("provider-components", "smd"),
    ("provider-components", "pki"),
    ("class-check", "admission"),
    ("class-check", "builtin-kinds"),
    ("class-check", "cel"),
    ("class-check", "contract"),
    ("class-check", "gotemplate"),
    ("class-check", "objects"),
    ("class-check", "schema"),
    ("class-check", "smd"),
    ("class-check", "topology"),
    ("http-server", "http-client"),
    ("controller-runtime", "http-client"),
    ("controller-runtime", "http-server"),
    ("cluster-cache", "http-client"),
    ("cluster-cache", "controller-runtime"),
    ("webhook", "controller-runtime"),
    ("webhook", "http-client"),
    ("webhook", "http-server"),
    ("apiserver", "http-client"),
    ("apiserver", "store"),
    ("provider-repository", "http-client"),
    ("cli", "demo"),
    ("cli", "preview"),
    ("runtime-client", "controller-runtime"),
    ("runtime-client", "http-client"),
    ("runtime-extension", "http-client"),
    ("runtime-extension", "http-server"),
];

/// The folder of the product crates.
const PRODUCT: &str = "crates";
/// The folder of the test support crates.
const TEST_SUPPORT: &str = "tests/support";

/// Dependencies that are forbidden although their layer would allow them: (crate, forbidden, why).
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("apiserver", "api", "the API server knows no Cluster API kind"),
    ("apiserver", "api-kubeadm", "the API server knows no Cluster API kind"),
    ("apiserver", "api-ext", "the API server knows no Cluster API kind"),
    ("apiserver", "api-operator", "the API server knows no Cluster API kind"),
    ("store", "api", "the store knows no kind"),
    ("store", "schema", "the store never decodes an object"),
    (
        "controller-runtime",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "cluster-cache",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
];

/// External crates that pure layers (L0 to L2) must not use.
const IMPURE: &[&str] = &[
    "tokio",
    "kube",
    "hyper",
    "hyper-util",
    "hyper-rustls",
    "reqwest",
    "axum",
    "tonic",
];

/// Crates whose generated stubs need a crate that pure layers must not use. They open no connection.
const STUBS: &[(&str, &str)] = &[("etcd", "tonic")];

/// Public functions of the product that only tests and examples may call: (name, why).
const FOR_TESTS: &[(&str, &str)] = &[
    ("condition_of", "reads what the others write"),
    ("contract_version", "for authors of providers"),
    ("disconnect", "faults of the network are simulated with it"),
    ("reconnect", "faults of the network are simulated with it"),
    ("recover", "failing machines are simulated with it"),
    ("trouble_next", "failing machines are simulated with it"),
];

/// The feature crate that runs API servers: those of simulated workload clusters.
const SIMULATION: &str = "infra-dev";

/// The layer of the feature crates.
const FEATURES: u8 = 4;

/// The limit of lines in a source file, without its test module.
const MAX_LINES: usize = 600;

/// Runs every check on the workspace at `root`.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let page = read(&root.join("ARCHITECTURE.md"))?;
    let table = Table {
        layers: layers(&page),
        support: support(&page),
    };
    let allow = allowances(&fs::read_to_string(root.join("tidy.tsv")).unwrap_or_default());
    let mut product = Vec::new();
    let mut rules = pipeline::Rulebook::new();
    let mut sideways: BTreeSet<&(&str, &str)> = BTreeSet::new();
    let mut findings = words::check(root, false)?;
    for (folder, name) in crates(root)? {
        let dir = root.join(folder).join(&name);
        let manifest = read(&dir.join("Cargo.toml"))?;
        findings.extend(check_layers(folder, &name, &manifest, &table));
        let needed = dependencies(&manifest);
        let row = |(from, to): &&(&str, &str)| {
            *from == name && needed.iter().any(|other| other.strip_prefix("windlass-") == Some(to))
        };
        sideways.extend(WITHIN_A_LAYER.iter().filter(row));
        let mut whole = String::new();
        let mut files = Vec::new();
        for file in sources(&dir)? {
            let place = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            files.push((place, read(&file)?));
        }
        let for_tests: BTreeSet<String> = files.iter().flat_map(|(place, text)| test_files(place, text)).collect();
        for (place, text) in files {
            let body = without_tests(&text);
            findings.extend(check_source(&place, &text, &body, allow.contains_key(&place)));
            if for_tests.contains(&place) {
                continue;
            }
            findings.extend(rules.check(&place, &body, table.features()));
            whole.push_str(&text);
            product.push((place, text));
        }
        // Code generated by a build script may use dependencies that no file mentions, and a crate without code is only a
        // placeholder.
        let has_code = whole.lines().any(|line| !line.is_empty() && !line.starts_with("//"));
        if has_code && !dir.join("build.rs").is_file() {
            findings.extend(check_use(folder, &name, &manifest, &whole));
        }
    }
    for folder in ["xtask", "tests/bench", "tests/parity"] {
        // This file names what only tests call.
        for file in sources(&root.join(folder))?
            .into_iter()
            .filter(|file| !file.ends_with("xtask/src/tidy.rs"))
        {
            product.push((file.display().to_string(), read(&file)?));
        }
    }
    for file in entries(&root.join("fuzz/targets"))? {
        product.push((file.display().to_string(), read(&file)?));
    }
    findings.extend(check_unused(&product, FOR_TESTS));
    findings.extend(rules.stale());
    let stale = WITHIN_A_LAYER.iter().filter(|row| !sideways.contains(*row));
    findings.extend(stale.map(|(from, to)| stale_row(&format!("{from} does not depend on {to}"))));
    Ok(findings)
}

/// The crates that ARCHITECTURE.md lists.
#[derive(Debug, Default)]
struct Table {
    /// Layer by crate of the product.
    layers: BTreeMap<String, u8>,
    /// The crates of the test support.
    support: BTreeSet<String>,
}

impl Table {
    /// The feature crates: those with controllers.
    fn features(&self) -> impl Iterator<Item = &str> {
        self.layers
            .iter()
            .filter(|(_, layer)| **layer == FEATURES)
            .map(|(name, _)| name.as_str())
    }
}

/// Layer by crate, from the table of ARCHITECTURE.md (`| L2 | `smd` | …`).
fn layers(page: &str) -> BTreeMap<String, u8> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| L")?.split('|');
            let layer = cells.next()?.trim().parse().ok()?;
            let name = cells.next()?.trim().trim_matches('`').to_owned();
            Some((name, layer))
        })
        .collect()
}

/// The crates of the test support, from the table of ARCHITECTURE.md (`| test | `testkit` | …`).
fn support(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| {
            let name = line.strip_prefix("| test |")?.split('|').next()?;
            Some(name.trim().trim_matches('`').to_owned())
        })
        .collect()
}

/// Files that may be longer than the limit: path and reason, separated by a tab.
fn allowances(table: &str) -> BTreeMap<String, String> {
    table
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(path, why)| (path.to_owned(), why.to_owned()))
        .collect()
}

/// The dependencies of a manifest that are part of the program, also those of single platforms.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inside = table == "dependencies" || table.starts_with("target.") && table.ends_with(".dependencies");
            if let Some((before, name)) = table.rsplit_once('.')
                && before.ends_with("dependencies")
                && !before.ends_with("-dependencies")
            {
                found.push(name.to_owned());
            }
        } else if inside && let Some(end) = line.find(['.', ' ', '=']) {
            found.push(line[..end].to_owned());
        }
    }
    found
}

/// Public functions whose name occurs only once in all sources except tests: they have no callers.
fn check_unused(files: &[(String, String)], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut defined = Vec::new();
    for (place, text) in files {
        let body = without_tests(text);
        for line in body.lines().map(|line| line.split("//").next().unwrap_or_default()) {
            for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
            let after = ["pub fn ", "pub async fn ", "pub const fn "]
                .iter()
                .find_map(|start| line.trim_start().strip_prefix(start));
            if let Some(name) = after.and_then(|rest| rest.split(['(', '<']).next())
                && place.starts_with("crates/")
            {
                defined.push((place, name.to_owned()));
            }
        }
    }
    let unused: BTreeSet<&str> = defined
        .iter()
        .map(|(_, name)| name.as_str())
        .filter(|name| counts.get(*name) == Some(&1))
        .collect();
    let known = |name: &str| allowed.iter().any(|(known, _)| *known == name);
    let mut findings: Vec<Finding> = defined
        .iter()
        .filter(|(_, name)| unused.contains(name.as_str()) && !known(name))
        .map(|(place, name)| Finding {
            place: (*place).clone(),
            what: format!("only tests call {name}: remove it with its tests, or name it in FOR_TESTS with the reason"),
        })
        .collect();
    let stale = allowed.iter().filter(|(name, _)| !unused.contains(name));
    findings.extend(stale.map(|(name, _)| stale_row(&format!("FOR_TESTS names {name}, which is gone or has callers"))));
    findings
}

/// A row of this file's tables that nothing needs.
fn stale_row(what: &str) -> Finding {
    Finding {
        place: "xtask/src/tidy.rs".to_owned(),
        what: format!("{what}: remove the row"),
    }
}

fn check_layers(folder: &str, name: &str, manifest: &str, table: &Table) -> Vec<Finding> {
    let place = format!("{folder}/{name}/Cargo.toml");
    let finding = |what: String| Finding {
        place: place.clone(),
        what,
    };
    // Test support may use everything; only its users are checked.
    if folder == TEST_SUPPORT {
        let is_listed = table.support.contains(name);
        let missing =
            format!("test support {name} is missing in the table of ARCHITECTURE.md: add `| test | `{name}` |`");
        return (!is_listed).then(|| finding(missing)).into_iter().collect();
    }
    let Some(&own) = table.layers.get(name) else {
        return vec![finding(format!(
            "crate {name} is missing in the table of ARCHITECTURE.md: add its layer and purpose"
        ))];
    };
    let mut findings = Vec::new();
    for dependency in dependencies(manifest) {
        if let Some(other) = dependency.strip_prefix("windlass-") {
            if table.support.contains(other) {
                findings.push(finding(format!(
                    "{name} is part of the program and may have the test support {other} as a dev-dependency only"
                )));
                continue;
            }
            let theirs = table.layers.get(other).copied().unwrap_or(u8::MAX);
            let sideways = own == theirs && !WITHIN_A_LAYER.contains(&(name, other));
            if theirs > own || sideways {
                findings.push(finding(format!(
                    "{name} (L{own}) may not depend on {other} (L{theirs}): move what both need downward"
                )));
            }
            if own == FEATURES && name != SIMULATION && ["apiserver", "store"].contains(&other) {
                findings.push(finding(format!(
                    "{name} may not depend on {other}: nothing in a controller may know which server it talks to"
                )));
            }
            if let Some((.., why)) = FORBIDDEN.iter().find(|(from, to, _)| (*from, *to) == (name, other)) {
                findings.push(finding(format!("{name} may not depend on {other}: {why}")));
            }
        } else if own <= 2 && IMPURE.contains(&dependency.as_str()) && !STUBS.contains(&(name, dependency.as_str())) {
            findings.push(finding(format!(
                "{name} (L{own}) is pure and may not depend on {dependency}"
            )));
        }
    }
    findings
}

/// Checks that every dependency is mentioned in the crate's own files.
fn check_use(folder: &str, name: &str, manifest: &str, sources: &str) -> Vec<Finding> {
    dependencies(manifest)
        .into_iter()
        .filter(|dependency| !sources.contains(&dependency.replace('-', "_")))
        .map(|dependency| Finding {
            place: format!("{folder}/{name}/Cargo.toml"),
            what: format!(
                "no file mentions {dependency}: remove it, or make it a dev-dependency if only tests need it"
            ),
        })
        .collect()
}

fn check_source(place: &str, text: &str, body: &str, may_be_long: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding {
            place: place.to_owned(),
            what: "starts without a `//!` header: say what the file does and what it may not do".to_owned(),
        });
    }
    let lines = body.trim_end().lines().count();
    if (lines > MAX_LINES) != may_be_long {
        let remedy = if may_be_long {
            "remove its line in tidy.tsv"
        } else {
            "split it by purpose, or give the reason in tidy.tsv"
        };
        findings.push(Finding {
            place: place.to_owned(),
            what: format!("has {lines} lines without tests, {MAX_LINES} at most: {remedy}"),
        });
    }
    findings
}

/// All crates of the product and of the test support: parent folder and name.
fn crates(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let mut found = Vec::new();
    for folder in [PRODUCT, TEST_SUPPORT] {
        for entry in entries(&root.join(folder))? {
            if entry.join("Cargo.toml").is_file()
                && let Some(name) = entry.file_name().and_then(|n| n.to_str())
            {
                found.push((folder, name.to_owned()));
            }
        }
    }
    Ok(found)
}

/// All Rust files below the crate's `src`, without separate files of test modules.
fn sources(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut open = vec![dir.join("src")];
    while let Some(next) = open.pop() {
        for entry in entries(&next)? {
            let name = entry
                .file_name()
                .and_then(|n| n.to_str())
                .unwrap_or_default()
                .to_owned();
            if entry.is_dir() {
                if name != "tests" && name != "testdata" {
                    open.push(entry);
                }
            } else if entry.extension().is_some_and(|found| found == "rs") && name != "tests.rs" {
                found.push(entry);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    // CL-008: providers are crates of one layer, which do not depend on the core controllers.
    #[test]
    fn the_workspace_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let findings = check(root).unwrap();
        let text: Vec<_> = findings.iter().map(|f| format!("{}: {}", f.place, f.what)).collect();
        assert!(text.is_empty(), "{}", text.join("\n"));
    }

    fn table(page: &str) -> Table {
        Table {
            layers: layers(page),
            support: support(page),
        }
    }

    #[test]
    fn an_upward_dependency_is_found() {
        let table = table("| L0 | `meta` | x |\n| L3 | `controller-runtime` | x |\n");
        let found = check_layers(
            PRODUCT,
            "meta",
            "[dependencies]\nwindlass-controller-runtime.workspace = true\n",
            &table,
        );
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn test_support_in_the_program_is_found_and_in_tests_it_is_not() {
        let table = table("| L6 | `cli` | x |\n| test | `testkit` | x |\n| test | `envtest` | x |\n");
        let found = |folder, name, section| {
            let manifest = format!("[{section}]\nwindlass-testkit.workspace = true\n");
            check_layers(folder, name, &manifest, &table).len()
        };
        assert_eq!(found(PRODUCT, "cli", "dependencies"), 1);
        assert_eq!(found(PRODUCT, "cli", "dev-dependencies"), 0);
        assert_eq!(found(TEST_SUPPORT, "envtest", "dependencies"), 0);
        assert_eq!(found(TEST_SUPPORT, "other", "dependencies"), 1, "not in the table");
    }

    #[test]
    fn an_unused_dependency_is_found() {
        let manifest = "[dependencies]\nserde-saphyr.workspace = true\nbytes.workspace = true\n";
        let found = check_use(PRODUCT, "smd", manifest, "use bytes::Bytes;");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("serde-saphyr"));
    }

    #[test]
    fn a_function_that_only_tests_call_is_found() {
        let files = |user: &str| {
            let file = |place: &str, text: &str| (place.to_owned(), text.to_owned());
            [
                file(
                    "crates/a/src/lib.rs",
                    "//! A.\npub fn alone() {}\n\n#[cfg(test)]\nmod tests {\nfn f() { alone() }\n}\n",
                ),
                file("crates/b/src/lib.rs", user),
            ]
        };
        let check = |user: &str, allowed: &[(&str, &str)]| check_unused(&files(user), allowed).len();
        assert_eq!(check("// alone", &[]), 1);
        assert_eq!(check("// alone", &[("alone", "a reason")]), 0);
        assert_eq!(check("fn g() { a::alone() }", &[]), 0);
        assert_eq!(check("fn g() { a::alone() }", &[("alone", "a reason")]), 1);
    }

    #[test]
    fn an_async_runtime_in_a_pure_crate_is_found() {
        let table = table("| L2 | `smd` | x |\n");
        assert_eq!(
            check_layers(PRODUCT, "smd", "[dependencies]\ntokio.workspace = true\n", &table).len(),
            1
        );
    }
}
