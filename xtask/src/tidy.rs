//! `cargo xtask tidy`: the rules that keep the workspace in shape, checked from its own files.
//!
//! Layers come from the table in ARCHITECTURE.md, so that the page cannot drift from the code. Purity, sizes and headers are
//! read from the sources. The checks run as a test of this crate, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A rule that a file breaks, with the place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the workspace root, with a line number where one helps.
    pub(crate) place: String,
    /// What is wrong and what to do.
    pub(crate) what: String,
}

/// Same-layer dependencies that the design allows (from, to).
const WITHIN_A_LAYER: &[(&str, &str)] = &[
    ("meta", "gocompat"),
    ("api-kubeadm", "api"),
    ("api-ext", "api"),
    ("api-operator", "api"),
    ("smd", "schema"),
    ("contract", "smd"),
    ("conditions", "contract"),
    ("contract", "conditions"),
    ("addon-values", "gotemplate"),
    ("kubeadm", "gotemplate"),
    ("topology", "contract"),
    ("topology", "gotemplate"),
    ("topology", "schema"),
    ("topology", "smd"),
    ("topology", "conditions"),
    ("components", "contract"),
    ("components", "smd"),
    ("components", "pki"),
    ("remote", "kit"),
    ("apiserver", "store"),
    ("testkit", "manager"),
    ("demo", "manager"),
    ("cli", "manager"),
    ("cli", "demo"),
];

/// Dependencies that a crate may not have although its layer would allow them: (crate, forbidden, why).
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("apiserver", "api", "the API server knows no Cluster API kind"),
    ("apiserver", "api-kubeadm", "the API server knows no Cluster API kind"),
    ("apiserver", "api-ext", "the API server knows no Cluster API kind"),
    ("apiserver", "api-operator", "the API server knows no Cluster API kind"),
    ("store", "api", "the store knows no kind"),
    ("store", "schema", "the store never decodes an object"),
    (
        "kit",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "remote",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "core",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "core-topology",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "bootstrap-kubeadm",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
    (
        "controlplane-kubeadm",
        "apiserver",
        "nothing in a controller may know which server it talks to",
    ),
];

/// External crates that pure layers (L0 to L2) may not name.
const IMPURE: &[&str] = &[
    "tokio",
    "kube",
    "hyper",
    "hyper-util",
    "hyper-rustls",
    "reqwest",
    "axum",
];

/// What a pure file may not contain, with the reason.
const IMPURE_WORDS: &[(&str, &str)] = &[
    ("async fn", "pure files do not wait"),
    (".await", "pure files do not wait"),
    ("kube::Client", "pure files hold no client"),
    ("Timestamp::now", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("Instant::now", "time is an argument"),
    ("rand::", "randomness is an argument"),
];

/// Crates that only tests and developers' commands use, beside every package below `tests/`: the shipped program does not link them.
const TEST_SUPPORT: &[&str] = &["testkit", "forge", "judge"];

/// The crate of the shipped program.
const PROGRAM: &str = "cli";

/// Public functions of the product that only tests and examples call, and may: (name, why).
const FOR_TESTS: &[(&str, &str)] = &[
    ("apply_status_value", "kit's own tests write statuses"),
    ("check_class_update", "waits for admission of ClusterClasses"),
    ("check_rebase", "waits for admission of Clusters"),
    ("condition_of", "reads what the others write"),
    ("contract_version", "for authors of providers"),
    ("crd_name", "the table of kinds is tested by it"),
    ("create_load_balancer", "the simulated cloud is tested by it"),
    ("is_everything", "the policy for empty selectors is tested by it"),
    ("is_idle", "queues are tested by it"),
    ("is_invalid", "errors of servers are told apart in tests"),
    ("is_local", "any address is tested by it"),
    ("is_release_name_generated", "releases are tested by it"),
    ("patch_json", "kit's own tests write patches"),
    ("renew", "owners after a restore: no controller does it yet"),
    ("simulate", "memory of simulated clusters is measured with it"),
    ("with_concurrency", "tests run with few workers"),
];

/// Lines a source file may have, its test module left out.
const MAX_LINES: usize = 600;

/// Runs every check on the workspace at `root`.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let layers = layers(&read(&root.join("ARCHITECTURE.md"))?);
    let allow = allowances(&fs::read_to_string(root.join("tidy.tsv")).unwrap_or_default());
    let mut findings = Vec::new();
    let (mut needs, mut product) = (BTreeMap::new(), Vec::new());
    for (name, dir) in crates(root)? {
        let manifest = read(&dir.join("Cargo.toml"))?;
        needs.insert(name.clone(), own_dependencies(&manifest));
        findings.extend(check_layers(&name, &manifest, &layers));
        let mut whole = String::new();
        for file in sources(&dir)? {
            let text = read(&file)?;
            let place = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            findings.extend(check_source(&place, &text, allow.contains_key(&place)));
            product.push((place, text.clone()));
            whole.push_str(&text);
        }
        // Code that a build script generates may use what no file mentions, and a crate without code is only a name yet.
        let has_code = whole.lines().any(|line| !line.is_empty() && !line.starts_with("//"));
        if has_code && !dir.join("build.rs").is_file() {
            findings.extend(check_use(&name, &manifest, &whole));
        }
    }
    findings.extend(check_program(&needs));
    for folder in ["xtask", "tests/bench", "tests/parity"] {
        for file in sources(&root.join(folder))? {
            product.push((file.display().to_string(), read(&file)?));
        }
    }
    for file in entries(&root.join("fuzz/targets"))? {
        product.push((file.display().to_string(), read(&file)?));
    }
    findings.extend(check_unused(&product));
    Ok(findings)
}

/// The shipped program reaches no test support over its dependencies: neither what [`TEST_SUPPORT`] names, nor a package that is
/// not below `crates/`.
fn check_program(needs: &BTreeMap<String, Vec<String>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::from([PROGRAM]);
    let mut open = vec![PROGRAM];
    while let Some(name) = open.pop() {
        for need in needs.get(name).into_iter().flatten() {
            if TEST_SUPPORT.contains(&need.as_str()) || !needs.contains_key(need) {
                findings.push(Finding {
                    place: format!("crates/{name}/Cargo.toml"),
                    what: format!("the program links {name}, and {need} is for tests: make it a dev-dependency"),
                });
            } else if seen.insert(need) {
                open.push(need);
            }
        }
    }
    findings
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

/// Files that may be longer than the limit: path and reason, separated by a tab.
fn allowances(table: &str) -> BTreeMap<String, String> {
    table
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(path, why)| (path.to_owned(), why.to_owned()))
        .collect()
}

/// The dependencies that a manifest names in its `[dependencies]` table.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && let Some(end) = line.find(['.', ' ', '=']) {
            found.push(line[..end].to_owned());
        }
    }
    found
}

/// Public functions whose name occurs once in all sources but tests: nothing calls them.
fn check_unused(files: &[(String, String)]) -> Vec<Finding> {
    let is_support = |place: &str| {
        TEST_SUPPORT
            .iter()
            .any(|name| place.starts_with(&format!("crates/{name}/")))
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut defined = Vec::new();
    for (place, text) in files {
        let body = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
        for line in body.lines().map(|line| line.split("//").next().unwrap_or_default()) {
            for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                *counts.entry(word).or_default() += 1;
            }
            let after = ["pub fn ", "pub async fn ", "pub const fn "]
                .iter()
                .find_map(|start| line.trim_start().strip_prefix(start));
            if let Some(name) = after.and_then(|rest| rest.split(['(', '<']).next())
                && place.starts_with("crates/")
                && !is_support(place)
            {
                defined.push((place, name));
            }
        }
    }
    let unused = |name: &str| counts.get(name) == Some(&1) && !FOR_TESTS.iter().any(|(known, _)| *known == name);
    defined
        .into_iter()
        .filter(|(_, name)| unused(name))
        .map(|(place, name)| Finding {
            place: place.clone(),
            what: format!("only tests call {name}: remove it with its tests, or name it in FOR_TESTS with the reason"),
        })
        .collect()
}

/// The crates of this workspace among them.
fn own_dependencies(manifest: &str) -> Vec<String> {
    let all = dependencies(manifest).into_iter();
    all.filter_map(|name| name.strip_prefix("windlass-").map(str::to_owned))
        .collect()
}

fn check_layers(name: &str, manifest: &str, layers: &BTreeMap<String, u8>) -> Vec<Finding> {
    let place = format!("crates/{name}/Cargo.toml");
    let finding = |what: String| Finding {
        place: place.clone(),
        what,
    };
    let Some(&own) = layers.get(name) else {
        return vec![finding(format!(
            "crate {name} is missing in the table of ARCHITECTURE.md: add its layer and purpose"
        ))];
    };
    let mut findings = Vec::new();
    for dependency in dependencies(manifest) {
        if let Some(other) = dependency.strip_prefix("windlass-") {
            let theirs = layers.get(other).copied().unwrap_or(u8::MAX);
            let sideways = own == theirs && !WITHIN_A_LAYER.contains(&(name, other));
            if theirs > own || sideways {
                findings.push(finding(format!(
                    "{name} (L{own}) may not depend on {other} (L{theirs}): move what both need downward"
                )));
            }
            if let Some((.., why)) = FORBIDDEN.iter().find(|(from, to, _)| (*from, *to) == (name, other)) {
                findings.push(finding(format!("{name} may not depend on {other}: {why}")));
            }
        } else if own <= 2 && IMPURE.contains(&dependency.as_str()) {
            findings.push(finding(format!(
                "{name} (L{own}) is pure and may not depend on {dependency}"
            )));
        }
    }
    findings
}

/// Every dependency is mentioned somewhere in the crate's own files.
fn check_use(name: &str, manifest: &str, sources: &str) -> Vec<Finding> {
    dependencies(manifest)
        .into_iter()
        .filter(|dependency| !sources.contains(&dependency.replace('-', "_")))
        .map(|dependency| Finding {
            place: format!("crates/{name}/Cargo.toml"),
            what: format!(
                "no file mentions {dependency}: remove it, or make it a dev-dependency if only tests need it"
            ),
        })
        .collect()
}

fn check_source(place: &str, text: &str, may_be_long: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let body = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    if !text.starts_with("//!") {
        findings.push(Finding {
            place: place.to_owned(),
            what: "starts without a `//!` header: say what the file does and what it may not do".to_owned(),
        });
    }
    let lines = body.lines().count();
    if lines > MAX_LINES && !may_be_long {
        findings.push(Finding {
            place: place.to_owned(),
            what: format!("has {lines} lines without tests, {MAX_LINES} at most: split it by purpose, or give the reason in tidy.tsv"),
        });
    }
    if is_pure(place) {
        for (number, line) in body.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (word, why) in IMPURE_WORDS.iter().filter(|(word, _)| code.contains(word)) {
                findings.push(Finding {
                    place: format!("{place}:{}", number + 1),
                    what: format!("`{word}` in a pure file: {why}"),
                });
            }
        }
    }
    findings
}

/// Whether the name says that the file only decides: `plan`, `desired`, `status`, `convert`, and files in folders so named.
fn is_pure(place: &str) -> bool {
    let Some((_, inner)) = place.split_once("/src/") else {
        return false;
    };
    let in_controller = [
        "crates/core",
        "crates/bootstrap-",
        "crates/controlplane-",
        "crates/infra-",
    ]
    .iter()
    .any(|p| place.starts_with(p));
    in_controller
        && inner.split('/').any(|part| {
            let stem = part.strip_suffix(".rs").unwrap_or(part);
            ["plan", "desired", "status", "convert"]
                .iter()
                .any(|w| stem == *w || stem.strip_prefix(w).is_some_and(|rest| rest.starts_with('_')))
        })
}

/// Crate folders by name.
fn crates(root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    for entry in entries(&root.join("crates"))? {
        if entry.join("Cargo.toml").is_file()
            && let Some(name) = entry.file_name().and_then(|n| n.to_str())
        {
            found.push((name.to_owned(), entry.clone()));
        }
    }
    Ok(found)
}

/// Every Rust file below the crate's `src`, test modules in files of their own left out.
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

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = fs::read_dir(dir)
        .and_then(|all| all.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|e| format!("{}: {e}", dir.display()))?;
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let findings = check(root).unwrap();
        let text: Vec<_> = findings.iter().map(|f| format!("{}: {}", f.place, f.what)).collect();
        assert!(text.is_empty(), "{}", text.join("\n"));
    }

    #[test]
    fn an_upward_dependency_is_found() {
        let layers = layers("| L0 | `meta` | x |\n| L3 | `kit` | x |\n");
        let found = check_layers("meta", "[dependencies]\nwindlass-kit.workspace = true\n", &layers);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_dependency_that_nobody_uses_is_found() {
        let manifest = "[dependencies]\nserde-saphyr.workspace = true\nbytes.workspace = true\n";
        let found = check_use("smd", manifest, "use bytes::Bytes;");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("serde-saphyr"));
    }

    #[test]
    fn a_clock_in_a_plan_is_found() {
        let text = "//! Plan.\nfn f() { let now = jiff::Timestamp::now(); }\n";
        assert_eq!(check_source("crates/core/src/machine/plan.rs", text, false).len(), 1);
        assert!(check_source("crates/core/src/machine/apply.rs", text, false).is_empty());
    }

    #[test]
    fn test_support_in_the_program_is_found() {
        let needs = |inner: &str| {
            let named = |name: &str| vec![name.to_owned()];
            let all = [
                ("cli", named("manager")),
                ("manager", named(inner)),
                ("kit", Vec::new()),
                ("judge", Vec::new()),
            ];
            check_program(&all.into_iter().map(|(name, needs)| (name.to_owned(), needs)).collect())
        };
        assert_eq!(needs("kit"), []);
        assert_eq!(needs("judge").len(), 1);
        // A package that is not among the crates of the product.
        assert_eq!(needs("envtest")[0].place, "crates/manager/Cargo.toml");
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
        assert_eq!(check_unused(&files("// alone")).len(), 1);
        assert_eq!(check_unused(&files("fn g() { a::alone() }")), []);
    }

    #[test]
    fn an_async_runtime_in_a_pure_crate_is_found() {
        let layers = layers("| L2 | `smd` | x |\n");
        assert_eq!(
            check_layers("smd", "[dependencies]\ntokio.workspace = true\n", &layers).len(),
            1
        );
    }
}
