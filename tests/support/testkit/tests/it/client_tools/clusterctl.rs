//! What clusterctl shows of a cluster, and the rollouts that it starts, pauses and resumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_api::conditions;
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_api_operator::inventory;
use windlass_meta::ObjectKey;
use windlass_testkit::{CLASS, ClusterOf, Env};

use super::{Clusterctl, hosts, with_inventory};

// TO-037, TO-038
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusterctl_shows_a_cluster_and_rolls_it_out() {
    let Some(clusterctl) = Clusterctl::required() else {
        return;
    };
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("seen", 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let inventory = with_inventory(&env).await;
    env.rest().await;

    describes_it(&clusterctl, &env, &cluster).await;
    let kubeconfig = clusterctl.ok(&env, &["get", "kubeconfig", &cluster.name]).await;
    let secret = env.api::<Secret>().get("seen-kubeconfig").await.unwrap();
    let expect = String::from_utf8(secret.data.unwrap().remove("value").unwrap().0).unwrap();
    assert_eq!(kubeconfig.trim_end(), expect.trim_end());
    plans_upgrades(&clusterctl, &env, &inventory).await;
    makes_another(&clusterctl, &env).await;
    brings_its_class(&clusterctl, &env, &inventory).await;
    rolls_out(&clusterctl, &env, &cluster).await;
    env.stop().await;
}

/// Every Machine and every condition of the Cluster, with the values that are stored.
async fn describes_it(clusterctl: &Clusterctl, env: &Env, cluster: &ClusterOf) {
    let short = clusterctl.ok(env, &["describe", "cluster", &cluster.name]).await;
    let line = |text: &str, part: &str| -> String {
        let found = text.lines().find(|line| line.contains(part));
        let words = found
            .unwrap_or_else(|| panic!("no {part} in\n{text}"))
            .split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let top = line(&short, "Cluster default/seen, v1.35.0 ");
    assert!(top.contains("3/3 3 3 3 True Available"), "{short}");
    for part in [
        "KubeadmControlPlane default/seen-",
        "MachineDeployment default/seen-md-0-",
    ] {
        assert!(line(&short, part).contains("True Available"), "{short}");
    }
    assert!(line(&short, "2 Machines...").contains("2 2 2 True Ready"), "{short}");

    let words = [
        "describe",
        "cluster",
        &cluster.name,
        "--show-conditions",
        "all",
        "--grouping=false",
    ];
    let long = clusterctl.ok(env, &words).await;
    for machine in env.list::<Machine>().await {
        line(
            &long,
            &format!("Machine default/{}, v1.35.0", machine.metadata.name.unwrap()),
        );
    }
    let stored = env.api::<Cluster>().get(&cluster.name).await.unwrap().status.unwrap();
    let top: String = long
        .lines()
        .take(1 + stored.conditions.len() + 1)
        .fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        });
    for condition in &stored.conditions {
        let shown = line(&top, &format!("─{} ", condition.type_));
        let expect = format!("{} {}", condition.status, condition.reason);
        assert!(shown.contains(&expect), "{expect}: {shown}");
    }
}

/// Folders with releases of the built-in providers, in which each is there in its own version and in a newer one.
async fn plans_upgrades(clusterctl: &Clusterctl, env: &Env, inventory: &[inventory::Provider]) {
    let home = clusterctl.home.path();
    let mut settings = "providers:\n".to_owned();
    for provider in inventory {
        let (name, version) = (
            provider.metadata.name.as_deref().unwrap(),
            provider.version.as_deref().unwrap(),
        );
        let (series, _) = version.rsplit_once('.').unwrap();
        let newer = format!("{series}.99");
        for version in [version, &newer] {
            release(&home.join("releases").join(name).join(version), series);
        }
        let file = home.join("releases").join(name).join(&newer).join("components.yaml");
        let (provider, r#type) = (
            provider.provider_name.as_deref().unwrap(),
            provider.r#type.as_deref().unwrap(),
        );
        let _ = writeln!(
            settings,
            "- {{name: {provider}, type: {type}, url: {}}}",
            file.display(),
            r#type = r#type
        );
    }
    let file = home.join("settings.yaml");
    std::fs::write(&file, settings).unwrap();
    let shown = clusterctl
        .ok(env, &["upgrade", "plan", "--config", file.to_str().unwrap()])
        .await;
    for provider in inventory {
        let version = provider.version.as_deref().unwrap();
        let newer = format!("{}.99", version.rsplit_once('.').unwrap().0);
        let name = provider.metadata.name.as_deref().unwrap();
        let line = shown.lines().find(|line| line.starts_with(&format!("{name} ")));
        let words: Vec<&str> = line
            .unwrap_or_else(|| panic!("no {name} in\n{shown}"))
            .split_whitespace()
            .collect();
        let expect = [
            name,
            "windlass-system",
            provider.r#type.as_deref().unwrap(),
            version,
            &newer,
        ];
        assert_eq!(words, expect);
    }
}

fn release(folder: &Path, series: &str) {
    let (major, minor) = series.trim_start_matches('v').split_once('.').unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("components.yaml"), "").unwrap();
    let metadata = format!(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n\
         - {{major: {major}, minor: {minor}, contract: v1beta2}}\n"
    );
    std::fs::write(folder.join("metadata.yaml"), metadata).unwrap();
}

/// A template with variables becomes a running cluster.
async fn makes_another(clusterctl: &Clusterctl, env: &Env) {
    let mut template = ClusterOf::new("${CLUSTER_NAME}", 1, 1)
        .version("${KUBERNETES_VERSION}")
        .object();
    template["metadata"]["namespace"] = "${NAMESPACE}".into();
    let file = clusterctl.home.path().join("template.yaml");
    std::fs::write(&file, template.to_string()).unwrap();
    let words = [
        "generate",
        "cluster",
        "made",
        "--kubernetes-version",
        "v1.35.0",
        "--from",
    ];
    let words: Vec<&str> = words.into_iter().chain([file.to_str().unwrap()]).collect();
    env.apply_yaml(&clusterctl.ok(env, &words).await).await;
    let made = ClusterOf::new("made", 1, 1);
    env.wait_for::<Cluster>(&made.key(), "Available", |cluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| {
            status
                .conditions
                .iter()
                .any(|one| one.type_ == conditions::AVAILABLE && one.status == "True")
        })
    })
    .await;
    env.delete("Cluster", "made").await;
    env.wait_gone("made").await;
}

/// Each command has the effect that its name promises, and refuses what it refuses elsewhere.
async fn rolls_out(clusterctl: &Clusterctl, env: &Env, cluster: &ClusterOf) {
    let deployment = env.list::<MachineDeployment>().await.remove(0).metadata.name.unwrap();
    let control_plane = env.list::<KubeadmControlPlane>().await.remove(0).metadata.name.unwrap();
    let (workers, masters) = (
        format!("machinedeployment/{deployment}"),
        format!("kubeadmcontrolplane/{control_plane}"),
    );
    let rollout = async |what: &str, of: &str| clusterctl.ok(env, &["alpha", "rollout", what, of]).await;
    let refused = async |what: &str, of: &str| clusterctl.refused(env, &["alpha", "rollout", what, of]).await;

    for of in [&workers, &masters] {
        rollout("pause", of).await;
        assert!(refused("pause", of).await.contains("already paused"));
        assert!(refused("restart", of).await.contains("can't restart paused"));
    }
    let key = ObjectKey::new("default", &control_plane);
    let is_paused = |object: &KubeadmControlPlane, expect: &str| {
        let conditions = object.status.iter().flat_map(|status| &status.conditions);
        let mut paused = conditions.filter(|one| one.type_ == conditions::PAUSED);
        paused.any(|one| one.status == expect)
    };
    env.wait_for::<KubeadmControlPlane>(&key, "paused", |object| is_paused(object, "True"))
        .await;
    for of in [&workers, &masters] {
        rollout("resume", of).await;
        assert!(refused("resume", of).await.contains("not currently paused"));
    }
    env.wait_for::<KubeadmControlPlane>(&key, "resumed", |object| is_paused(object, "False"))
        .await;

    let before = hosts(env).await;
    let names = async |control_plane: bool| -> BTreeSet<String> {
        let machines = env.list::<Machine>().await;
        let found = cluster.machines(&machines, control_plane);
        found
            .into_iter()
            .filter_map(|machine| machine.metadata.name.clone())
            .collect()
    };
    let (old_workers, old_masters) = (names(false).await, names(true).await);
    rollout("restart", &workers).await;
    replaced(env, &before, &old_workers).await;
    cluster.wait_running(env).await;
    assert_eq!(names(true).await, old_masters, "the control plane was not restarted");
    let new_workers = names(false).await;
    rollout("restart", &masters).await;
    replaced(env, &before, &old_masters).await;
    cluster.wait_running(env).await;
    assert_eq!(names(false).await, new_workers, "only the control plane was restarted");
}

/// Waits until none of these Machines is left.
async fn replaced(env: &Env, before: &BTreeMap<String, String>, names: &BTreeSet<String>) {
    assert!(names.iter().all(|name| before.contains_key(name)));
    env.wait_all::<Machine>("the old Machines replaced", |machines| {
        machines
            .iter()
            .all(|machine| !names.contains(machine.metadata.name.as_deref().unwrap()))
    })
    .await;
}

/// The class of a template comes with its first Cluster, with the values of the environment, and not with the next one.
async fn brings_its_class(clusterctl: &Clusterctl, env: &Env, inventory: &[inventory::Provider]) {
    let home = clusterctl.home.path();
    let is_infrastructure = |one: &&inventory::Provider| one.provider_name.as_deref() == Some("docker");
    let provider = inventory.iter().find(is_infrastructure).unwrap();
    let (name, version) = (
        provider.metadata.name.as_deref().unwrap(),
        provider.version.as_deref().unwrap(),
    );
    let folder = home.join("releases").join(name).join(version);
    let region = json!({
        "name": "region", "required": false, "schema": {"openAPIV3Schema": {"type": "string", "default": "${REGION}"}},
    });
    // clusterctl refuses templates that are there already.
    let documents: Vec<Value> = serde_saphyr::from_multiple(&CLASS.replace("quick-start", "regional")).unwrap();
    let texts = documents.into_iter().map(|mut document| {
        if document["kind"] == "ClusterClass" {
            match document["spec"]["variables"].as_array_mut() {
                Some(variables) => variables.push(region.clone()),
                None => document["spec"]["variables"] = json!([region]),
            }
        }
        document.to_string()
    });
    let class = texts.collect::<Vec<_>>().join("\n---\n");
    std::fs::write(folder.join("clusterclass-regional.yaml"), class).unwrap();
    let mut template = ClusterOf::new("${CLUSTER_NAME}", 1, 0).object();
    template["metadata"]["namespace"] = "${NAMESPACE}".into();
    template["spec"]["topology"]["classRef"]["name"] = "regional".into();
    std::fs::write(folder.join("cluster-template-regional.yaml"), template.to_string()).unwrap();

    let settings = home.join("settings.yaml");
    let infrastructure = format!("docker:{version}");
    let generate = async |name: &str| -> Vec<Value> {
        let words = ["generate", "cluster", name, "--flavor", "regional"];
        let more = [
            "--infrastructure",
            &infrastructure,
            "--config",
            settings.to_str().unwrap(),
        ];
        let words: Vec<&str> = words.into_iter().chain(more).collect();
        serde_saphyr::from_multiple(&clusterctl.ok(env, &words).await).unwrap()
    };
    let class = |documents: &[Value]| documents.iter().find(|one| one["kind"] == "ClusterClass").cloned();
    let first = generate("first").await;
    let brought = class(&first).unwrap_or_else(|| panic!("no class in {first:?}"));
    let variables = brought["spec"]["variables"].as_array().unwrap();
    let default = &variables.last().unwrap()["schema"]["openAPIV3Schema"]["default"];
    assert_eq!(default, super::REGION);
    for document in &first {
        env.apply(document).await;
    }
    let key = ClusterOf::new("first", 1, 0).key();
    let has_default = |cluster: &Cluster| {
        let topology = cluster.spec.topology.as_ref();
        let mut variables = topology.into_iter().flat_map(|topology| &topology.variables);
        variables.any(|one| one.name == "region" && one.value == super::REGION)
    };
    env.wait_for::<Cluster>(&key, "the default of the environment", has_default)
        .await;
    let second = generate("second").await;
    assert_eq!(class(&second), None, "{second:?}");
    assert!(second.iter().any(|one| one["kind"] == "Cluster"), "{second:?}");
    env.delete("Cluster", "first").await;
    env.wait_gone("first").await;
}
