//! `docs/provider-operator.md` and `docs/provider-repositories.md`: their examples are accepted, and their lists are complete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api_operator::{ProviderObject, management, operator};
use windlass_manager::Selection;
use windlass_testkit::{MANAGER, Server};

const PAGE: &str = include_str!("../../../../../docs/provider-operator.md");
const SOURCES: &str = include_str!("../../../../../docs/provider-repositories.md");

/// All blocks of YAML, object by object.
fn examples() -> Vec<Value> {
    let blocks = [PAGE, SOURCES].map(|page| {
        page.split("```yaml\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
    });
    let objects = blocks.into_iter().flatten().flat_map(|block| {
        let found: Vec<Value> = serde_saphyr::from_multiple(block).unwrap_or_else(|error| panic!("{error} in {block}"));
        found
    });
    objects.collect()
}

/// Decodes a declaration.
fn declared<P: ProviderObject>(object: &Value) {
    let read = P::from_json(object).unwrap();
    let declared = read.declared();
    assert!(declared.is_ok(), "{object}: {declared:?}");
}

#[tokio::test]
async fn every_example_is_accepted_and_can_be_acted_on() {
    let server = Server::start().await;
    server
        .define(&Selection::of(&["operator/coreprovider"]).unwrap().definitions())
        .await;
    let client = server.client("admin");
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let apply = async |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let namespace = text(&object["metadata"]["namespace"]);
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), &namespace, &resource)
        };
        let sent = api
            .patch(&text(&object["metadata"]["name"]), &parameters, &Patch::Apply(object))
            .await;
        sent.unwrap_or_else(|error| panic!("{object}: {error}"));
    };
    let examples = examples();
    assert!(examples.len() >= 8, "{}", examples.len());
    for object in &examples {
        let namespace = object["metadata"]["namespace"].as_str().unwrap();
        apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
        apply(object).await;
        match (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()) {
            (_, "Secret") => {}
            ("management.cluster.x-k8s.io/v1alpha1", "InfrastructureProvider") => {
                declared::<management::InfrastructureProvider>(object);
            }
            (_, "InfrastructureProvider") => declared::<operator::InfrastructureProvider>(object),
            (_, "IPAMProvider") => declared::<operator::IPAMProvider>(object),
            (_, "AddonProvider") => declared::<operator::AddonProvider>(object),
            other => panic!("{other:?} is not looked at"),
        }
    }
    server.stop().await;
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates")
}

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The constants of a file, by name.
fn constants(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("pub const "));
    let pairs = lines.filter_map(|line| {
        let (name, rest) = line.split_once(": &str = \"")?;
        Some((name.to_owned(), rest.strip_suffix("\";")?.to_owned()))
    });
    pairs.collect()
}

/// The first cells of the table with this header.
fn first_cells(header: &str) -> String {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let cells = rows
        .take_while(|line| line.starts_with('|'))
        .map(|row| row.split('|').nth(1).unwrap());
    cells.collect::<Vec<_>>().join(", ")
}

// OP-137: no reason has two meanings, and each is documented.
#[test]
fn every_reason_of_a_condition_is_explained() {
    let mut code = String::new();
    sources(&crates().join("operator/src"), &mut code);
    sources(&crates().join("api-operator/src/declared"), &mut code);
    let names = std::fs::read_to_string(crates().join("operator/src/names.rs")).unwrap();
    let own = constants(names.split("pub mod reasons").nth(1).unwrap());
    assert!(own.len() > 15);
    let known = std::fs::read_to_string(crates().join("api-operator/src/reasons.rs")).unwrap();
    let used = constants(&known)
        .into_iter()
        .filter(|(name, _)| code.contains(&format!("known::{name}")) || code.contains(&format!("reasons::{name}")));
    let all: Vec<String> = own.into_iter().chain(used).map(|(_, value)| value).collect();
    let there: BTreeSet<&String> = all.iter().collect();
    assert_eq!(there.len(), all.len(), "two have the same name");
    let told = first_cells("| reason |");
    let told: BTreeSet<String> = told.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let there: BTreeSet<String> = there.into_iter().cloned().collect();
    assert_eq!(told, there);

    let types = std::fs::read_to_string(crates().join("api-operator/src/conditions.rs")).unwrap();
    let told = first_cells("| type |");
    for (_, type_) in constants(&types) {
        assert!(told.contains(&type_), "{type_}");
    }
    for type_ in ["Ready", "Deleting", "Paused"] {
        assert!(told.contains(type_), "{type_}");
    }
}

// Distinguishes words from addresses: the words that a message may begin with.
#[test]
fn every_word_of_a_failed_fetch_is_explained() {
    let code = std::fs::read_to_string(crates().join("provider-repository/src/error.rs")).unwrap();
    let body = code
        .split("pub fn reason(&self)")
        .nth(1)
        .unwrap()
        .split("\n    }\n")
        .next()
        .unwrap();
    let words: Vec<&str> = body.split('"').skip(1).step_by(2).collect();
    assert!(words.len() > 20);
    for word in words {
        // Invalid addresses have a separate reason; folders are for command lines.
        if !["InvalidFetchURL", "Unreadable"].contains(&word) {
            assert!(SOURCES.contains(&format!("`{word}`")), "{word}");
        }
    }
}

/// The text below a heading, in one line.
fn section(heading: &str) -> String {
    let begin = PAGE
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    let below = &PAGE[begin + heading.len() + 2..];
    let rank = heading.chars().take_while(|c| *c == '#').count();
    let ends = (1..=rank).filter_map(|rank| below.find(&format!("\n{} ", "#".repeat(rank))));
    let text = &below[..ends.min().unwrap_or(below.len())];
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_says_what_it_has_to_say() {
    let check = |heading: &str, words: &[&str]| {
        let text = section(heading);
        for word in words {
            assert!(text.contains(word), "{heading}: no {word:?} in {text}");
        }
    };
    // OP-127, OP-167, OP-228
    check(
        "## Where it runs",
        &[
            "delete the providers first",
            "finalizer `provider.cluster.x-k8s.io`",
            "an image that the nodes can reach, named in one place",
            "rights of `cluster-admin`",
        ],
    );
    // OP-223
    check(
        "### Changing",
        &["To rotate credentials, make a Secret with another name"],
    );
    // OP-132, OP-194, OP-195, OP-196, OP-197, OP-199, OP-200
    check(
        "## Comparison with clusterctl",
        &[
            "one provider at a time",
            "configuration file of the user",
            "`upgrade apply --contract` finds them",
            "not supported: edit the Deployment",
            "errors | at once",
            "inventory object `Provider`",
            "templates | other engines",
            "`azure` and `myazure`",
        ],
    );
    // OP-070, OP-141, OP-225
    check(
        "## Variables",
        &[
            "only where `--provider-variables` names it",
            "Every user who may create provider objects can read the value",
            "reported for all of them at once",
        ],
    );
    // OP-227
    check(
        "### Flags of the manager",
        &["A lock elsewhere (`resourceName`, `resourceNamespace`, `resourceLock`) needs a Role that allows it"],
    );
}
