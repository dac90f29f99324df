//! The page about externally managed infrastructure: its statements are true, and the required ones are present.

mod page;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::core::Cluster;
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::DevMachine;
use windlass_contract::{ContractVersion, infra_cluster};
use windlass_infra_dev::Call;
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, ExternalSystem, NAMESPACE};

use crate::support::run;

use self::page::{blocks, documents, file, links, page, patches, section, table, text};

const FOLDER: &str = "examples/externally-managed";

fn example(name: &str) -> Vec<Value> {
    documents(&text(&format!("{FOLDER}/{name}")))
}

fn examples() -> Vec<Value> {
    let names = [
        "cluster.yaml",
        "clusterclass.yaml",
        "cluster-with-class.yaml",
        "role.yaml",
    ];
    names.into_iter().flat_map(example).collect()
}

/// The text without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

// EX-042, EX-070, CL-005
#[test]
fn the_contract_has_its_four_headings() {
    let page = page();
    let contract = section(&page, "## The contract of the external system");
    let headings: Vec<&str> = contract.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(
        headings,
        [
            "Control plane endpoint",
            "Failure domains",
            "Initialization completed",
            "Terminal failures"
        ]
    );
}

#[test]
fn the_page_says_what_it_has_to_say() {
    let page = page();
    let check = |heading: &str, words: &[&str]| {
        let text = flat(section(&page, heading));
        for word in words {
            assert!(text.contains(word), "{heading}: no {word:?} in {text}");
        }
    };
    // EX-002, EX-003
    let glossary = flat(&page);
    for words in [
        "the network (VPC, subnets, internet gateways, NAT gateways, route tables), security groups, load balancers",
        "a controller, a tool, a pipeline, or a person with `kubectl`",
    ] {
        assert!(glossary.contains(words), "no {words:?}");
    }
    // EX-022, EX-052
    check(
        "# For authors of providers and of external systems",
        &[
            "Every provider that is part of Windlass supports it in full",
            "optional",
        ],
    );
    check("## Pausing", &["`spec.paused`", "`cluster.x-k8s.io/paused`"]);
    // EX-066
    check(
        "## Moving to another management cluster",
        &["status does not", "write the status again"],
    );
    // EX-078, EX-083, EX-087
    check(
        "## The switch goes one way",
        &[
            "Taking it away is refused",
            "infrastructure that it did not make",
            "What cannot be prevented",
            "creating it again without the annotation",
            "no webhook is there",
        ],
    );
    // EX-085
    check(
        "### Converting a live object",
        &[
            "Its finalizer stays behind",
            "until the external system removes it",
            finalizers::DEV_CLUSTER,
        ],
    );
    // EX-075, EX-088, EX-089, EX-090
    check(
        "## Limits, and what may come",
        &[
            "write both `spec` and `status`",
            "by hand",
            "undecided",
            "no second annotation",
            "smaller profiles for externally managed clusters are up to them",
        ],
    );
    // EX-021
    check(
        "## What to write, and in which order",
        &["**with the annotation in its first manifest**"],
    );
    // EX-097
    check(
        "## Going back to an older version",
        &["takes such an object for its own"],
    );
    let changelog = text("CHANGELOG.md");
    assert!(changelog.contains(MANAGED_BY));
    let warning = flat(section(&changelog, "### Before you go back to an older version"));
    assert!(warning.contains("take every such object for its own"), "{warning}");
}

// EX-074, EX-076
#[test]
fn privileges_for_the_infrastructure_of_clusters_are_needed_on_one_side_only() {
    let page = page();
    let choice = table(&page, "| | the provider makes it | you bring it |");
    assert!(
        choice
            .iter()
            .any(|row| row[1].contains("infrastructure of clusters") && row[2] == "for machines only")
    );
    let rows = table(&page, "| privilege | managed | externally managed |");
    for (row, cells) in rows.iter().enumerate() {
        assert!(!cells[1].is_empty(), "{cells:?}");
        // Network, security groups and load balancers first.
        assert_eq!(cells[2].is_empty(), row < 3, "{cells:?}");
    }
    let mut told = Vec::new();
    for cells in table(&page, "| call | managed | externally managed |") {
        let calls: Vec<String> = cells[0].split(", ").map(str::to_owned).collect();
        told.extend(calls.into_iter().map(|call| (call, cells[2].is_empty())));
    }
    let calls = [
        Call::CreateLoadBalancer,
        Call::DeleteLoadBalancer,
        Call::StartMachine,
        Call::DeleteMachine,
        Call::RegisterNode,
        Call::RegisterMember,
        Call::DeregisterMember,
    ];
    assert_eq!(
        told,
        calls.map(|call| (call.name().to_owned(), call.is_cluster_level()))
    );
}

#[test]
fn nothing_is_misspelt_that_must_be_exact() {
    let page = page();
    let mut all = vec![page.clone(), text("CHANGELOG.md"), text("README.md")];
    all.extend(
        ["cluster.yaml", "clusterclass.yaml", "external-system.sh"].map(|name| text(&format!("{FOLDER}/{name}"))),
    );
    for text in all {
        // Backslashes are part of a path for kubectl.
        let text = text
            .replace('\\', "")
            .replace("cluster.x-k8s.io/replicas-managed-by", "");
        for (at, _) in text.match_indices("managed-by") {
            assert!(
                text[..at].ends_with("cluster.x-k8s.io/"),
                "{}",
                &text[at.saturating_sub(60)..at + 10]
            );
        }
    }
    assert!(page.contains(&format!("`{MANAGED_BY}`")));
}

#[test]
fn its_links_lead_somewhere() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "docs/externally-managed-infrastructure.md",
        "docs/provider-operator.md",
        "docs/provider-repositories.md",
    ] {
        let found = links(&text(name));
        assert!(!found.is_empty(), "{name} links nothing");
        let folder = Path::new(name).parent().unwrap();
        for link in found {
            let path = folder.join(&link);
            assert!(file(&path.to_string_lossy()).exists(), "{name}: {link} leads nowhere");
        }
    }
    for name in ["README.md", "CHANGELOG.md"] {
        let link = "docs/externally-managed-infrastructure.md".to_owned();
        assert!(links(&text(name)).contains(&link), "{name} does not name the page");
    }
}

// EX-006
#[test]
fn its_commands_are_kubectl_and_can_be_read() {
    let blocks = blocks(&page(), "sh");
    assert!(blocks.len() > 5);
    for block in blocks {
        let read = Command::new("sh").args(["-n", "-c", &block]).output().unwrap();
        assert!(
            read.status.success(),
            "{block}{}",
            String::from_utf8_lossy(&read.stderr)
        );
        patches(&block);
        let joined = block.replace("\\\n", "");
        for line in joined.lines() {
            let first = line.split([' ', '=']).next().unwrap_or_default();
            let known = ["kubectl", "windlass", "export", "host", "port", "NAME", "KIND"];
            assert!(known.contains(&first) || first.starts_with(FOLDER), "{line}");
        }
    }
}

#[test]
fn the_options_that_it_names_exist() {
    let page = page();
    let folder = tempfile::tempdir().unwrap();
    for (command, option) in [
        ("demo", "--externally-managed"),
        ("up", "--kubeconfig"),
        ("manager", "--webhook-address"),
        ("manager", "--controllers"),
    ] {
        assert!(page.contains(option), "{option}");
        let help = run(folder.path(), &["help", command]);
        assert!(help.stdout.contains(option), "{command} has no {option}");
    }
}

// EX-006, EX-021, EX-053
#[tokio::test]
async fn its_manifests_are_those_of_the_examples_and_are_accepted() {
    let examples = examples();
    let same = |one: &Value, other: &Value| {
        ["/kind", "/metadata/name"]
            .iter()
            .all(|pointer| one.pointer(pointer) == other.pointer(pointer))
    };
    for block in blocks(&page(), "yaml") {
        for document in documents(&block) {
            let example = examples.iter().find(|example| same(example, &document));
            assert_eq!(example, Some(&document));
        }
    }
    let env = Env::builder().without_controllers().start().await;
    for document in &examples {
        assert_eq!(document["metadata"]["namespace"], NAMESPACE, "{document}");
        let annotations = match document["kind"].as_str().unwrap() {
            "DevCluster" => "/metadata/annotations",
            "DevClusterTemplate" => "/spec/template/metadata/annotations",
            "Role" | "RoleBinding" => continue,
            _ => "",
        };
        if !annotations.is_empty() {
            assert_eq!(document.pointer(annotations), Some(&json!({ MANAGED_BY: "terraform" })));
        }
        env.apply(document).await;
    }
    env.stop().await;
}

/// What the rows of the table about conditions are about.
async fn lack(env: &Env, what: &str, name: &str) {
    let cluster = ByHand::new(name, 1, 0);
    let system = ExternalSystem::new(env);
    match what {
        "the InfraCluster" => cluster.apply_rest(env).await,
        "status.initialization.provisioned" => cluster.apply(env).await,
        "only the port was written" => {
            cluster.apply(env).await;
            system
                .merge(name, &json!({"spec": {"controlPlaneEndpoint": {"port": 6443}}}))
                .await;
        }
        "only the host was written" => {
            cluster.apply(env).await;
            system
                .merge(name, &json!({"spec": {"controlPlaneEndpoint": {"host": "127.0.0.1"}}}))
                .await;
        }
        "provisioned, but no endpoint anywhere" => {
            cluster.apply(env).await;
            system.set_provisioned(name).await;
        }
        other => panic!("the table has a row without a test setup: {other}"),
    }
}

// EX-040, EX-042, EX-005
#[tokio::test]
async fn conditions_say_what_its_table_says() {
    let env = Env::start().await;
    for (number, row) in table(&page(), "| what is missing | object, condition |")
        .iter()
        .enumerate()
    {
        let name = format!("lacking-{number}");
        lack(&env, &row[0], &name).await;
        let (object, condition) = row[1].split_once(", ").unwrap();
        assert_eq!(object, "Cluster");
        let words = row[2].replace("external", &name);
        let says = |cluster: &Cluster| {
            let status = cluster.status.as_ref();
            let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
            conditions.any(|found| found.type_ == condition && found.status != "True" && found.message.contains(&words))
        };
        let key = ObjectKey::new(NAMESPACE, &name);
        env.wait_for::<Cluster>(&key, &format!("{condition} says {words}"), says)
            .await;
    }
    env.stop().await;
}

// EX-044, EX-091, CL-005
#[tokio::test]
async fn one_command_by_hand_makes_a_waiting_cluster_go_on() {
    let page = page();
    let by_hand = section(&page, "## Report readiness by hand");
    let [new, old] = &patches(by_hand)[..] else {
        panic!("two commands, one for each contract: {by_hand}")
    };
    assert!(infra_cluster::provisioned(old, ContractVersion::V1Beta1));
    assert!(!infra_cluster::provisioned(old, ContractVersion::V1Beta2));

    let env = Env::start().await;
    let cluster = ByHand::new("by-hand", 1, 1);
    cluster.apply(&env).await;
    let system = ExternalSystem::new(&env);
    let port = windlass_testkit::reserved_port();
    system.set_endpoint(cluster.name(), "127.0.0.1", port).await;
    let waits = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.phase.as_deref() == Some("Provisioning"))
    };
    env.wait_for::<Cluster>(&cluster.key(), "waits", waits).await;
    system.merge_status(cluster.name(), &new["status"]).await;
    cluster.wait_running(&env).await;
    env.stop().await;
}

// EX-040, EX-060, EX-061
#[tokio::test]
async fn machines_say_which_endpoint_they_cannot_use() {
    let page = page();
    let rows = table(&page, "| kind | needs from its InfraCluster |");
    let row = rows.iter().find(|row| row[0] == "DevMachine, control plane").unwrap();
    assert!(row[1].contains("loopback address or localhost"), "{row:?}");

    let env = Env::start().await;
    let cluster = ByHand::new("far", 1, 0);
    cluster.apply(&env).await;
    ExternalSystem::new(&env).provision("far", "192.0.2.1", 6443).await;
    let says = |machine: &DevMachine| {
        let status = machine.status.as_ref();
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|found| {
            found.reason == "WaitingForControlPlaneEndpoint" && found.message.contains("spec.controlPlaneEndpoint.host")
        })
    };
    env.wait_all::<DevMachine>("names the host", |all| all.iter().any(says))
        .await;
    env.stop().await;
}
