//! ClusterResourceSets: what is in their Secrets and ConfigMaps comes to the Clusters that they select.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass_api::Condition;
use windlass_api::addons::conditions::RESOURCES_APPLIED;
use windlass_api::addons::{ClusterResourceSet, ClusterResourceSetBinding, RESOURCE_SET_SECRET_TYPE};
use windlass_api::kind::Conditioned as _;
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

use crate::life::workload;

/// The management cluster, and what the tests say to it.
struct Site {
    env: Env,
}

/// A ConfigMap of a workload cluster, as YAML.
fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: extra}}\ndata: {{value: {value}}}\n")
}

impl Site {
    async fn start() -> Self {
        let env = Env::start().await;
        env.apply_yaml(CLASS).await;
        Self { env }
    }

    /// A running Cluster with the label of the sets, and its client.
    async fn cluster(&self, name: &str) -> (ClusterOf, Client) {
        let cluster = ClusterOf::new(name, 1, 0);
        let mut object = cluster.object();
        object["metadata"]["labels"]["cni"] = "yes".into();
        self.env.apply(&object).await;
        cluster.wait_running(&self.env).await;
        let client = workload(&self.env, &cluster).await;
        (cluster, client)
    }

    /// A set for the label, with these resources.
    async fn set(&self, name: &str, strategy: &str, resources: &[(&str, &str)]) {
        let resources: Vec<Value> = resources
            .iter()
            .map(|(kind, name)| json!({ "kind": kind, "name": name }))
            .collect();
        let set = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
            "kind": "ClusterResourceSet",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "clusterSelector": { "matchLabels": { "cni": "yes" } }, "strategy": strategy, "resources": resources },
        });
        self.env.apply(&set).await;
    }

    async fn config_map(&self, name: &str, values: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = values.iter().copied().collect();
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data });
        let maps: Api<ConfigMap> = self.env.api();
        let parameters = PatchParams::apply("test").force();
        maps.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }

    async fn secret(&self, name: &str, type_: &str, value: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "type": type_, "stringData": { "value": value },
        });
        let secrets: Api<Secret> = self.env.api();
        let parameters = PatchParams::apply("test").force();
        secrets.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }

    /// Waits until the condition of a set has a status and a reason, and a message with all these words.
    async fn says(&self, set: &str, status: &str, reason: &str, words: &[&str]) -> Condition {
        let is_so = |all: &[ClusterResourceSet]| {
            all.iter().any(|one| {
                let condition = applied(one);
                condition.is_some_and(|found| {
                    (found.status.as_str(), found.reason.as_str()) == (status, reason)
                        && words.iter().all(|word| found.message.contains(word))
                })
            })
        };
        let found = until::<ClusterResourceSet>(self.env.api(), Some(set), is_so).await;
        if let Some(found) = found {
            return applied(&found[0]).unwrap().clone();
        }
        let now = self.env.api::<ClusterResourceSet>().get(set).await.unwrap();
        panic!("{set} never says {status} {reason} {words:?}, but {:?}", now.status)
    }

    /// The record of a Cluster: the resources of a set that were applied or not.
    async fn record(&self, cluster: &str, set: &str) -> BTreeMap<String, bool> {
        let record = self.env.api::<ClusterResourceSetBinding>().get(cluster).await.unwrap();
        let entry = record.entry(set).cloned().unwrap_or_default();
        let resources = entry.resources.into_iter();
        resources
            .map(|of| (format!("{} {}", of.kind, of.name), of.applied))
            .collect()
    }
}

fn applied(set: &ClusterResourceSet) -> Option<&Condition> {
    set.conditions().iter().find(|one| one.type_ == RESOURCES_APPLIED)
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "extra")
}

/// The value in a ConfigMap of a workload cluster.
async fn value(client: &Client, name: &str) -> Option<String> {
    maps(client).get_opt(name).await.unwrap()?.data?.remove("value")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_its_resources_once() {
    let site = Site::start().await;
    // Objects that others depend on come first, whatever the order; the same object may be there twice.
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n";
    let text = format!(
        "{}---\n{namespace}---\n# nothing\n---\n{namespace}",
        map("one", "first")
    );
    let list = json!([{ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "listed" } }]).to_string();
    site.config_map("plain", &[("a.yaml", &text), ("b.json", &list)]).await;
    site.secret("hidden", RESOURCE_SET_SECRET_TYPE, &map("two", "second"))
        .await;
    site.set("cni", "ApplyOnce", &[("ConfigMap", "plain"), ("Secret", "hidden")])
        .await;
    let (first, client) = site.cluster("first").await;
    site.says("cni", "True", "Applied", &[]).await;
    assert_eq!(value(&client, "one").await.as_deref(), Some("first"));
    assert_eq!(value(&client, "two").await.as_deref(), Some("second"));
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    assert!(accounts.get_opt("listed").await.unwrap().is_some());

    // The record names the Cluster, and the set owns it and the resources.
    let record = site.env.api::<ClusterResourceSetBinding>().get("first").await.unwrap();
    assert_eq!(record.spec.cluster_name, "first");
    let entry = record.entry("cni").unwrap();
    assert!(
        entry
            .resources
            .iter()
            .all(|one| one.applied && one.last_applied_time.is_some())
    );
    assert!(entry.resources[0].hash.as_deref().unwrap().starts_with("sha256:"));
    let set = site.env.api::<ClusterResourceSet>().get("cni").await.unwrap();
    assert_eq!(set.finalizers(), ["addons.cluster.x-k8s.io"]);
    let plain = site.env.api::<ConfigMap>().get("plain").await.unwrap();
    let hidden = site.env.api::<Secret>().get("hidden").await.unwrap();
    for owners in [
        record.owner_references(),
        plain.owner_references(),
        hidden.owner_references(),
    ] {
        assert_eq!(owners.len(), 1);
        assert_eq!(
            (owners[0].kind.as_str(), owners[0].name.as_str()),
            ("ClusterResourceSet", "cni")
        );
        assert_eq!(owners[0].uid, set.uid().unwrap());
        assert_eq!(owners[0].controller, None);
    }

    // What changes later, here or there, stays as it is. A new Cluster gets what there is now.
    maps(&client).delete("two", &DeleteParams::default()).await.unwrap();
    site.config_map(
        "plain",
        &[("a.yaml", &format!("{namespace}---\n{}", map("one", "later")))],
    )
    .await;
    let (_, other) = site.cluster("other").await;
    let found = until::<ConfigMap>(maps(&other), Some("two"), |all| !all.is_empty()).await;
    assert!(found.is_some());
    assert_eq!(value(&other, "one").await.as_deref(), Some("later"));
    site.env.rest().await;
    assert_eq!(value(&client, "one").await.as_deref(), Some("first"));
    assert_eq!(value(&client, "two").await, None);

    // Without its record, a Cluster counts as new.
    site.env.delete("ClusterResourceSetBinding", "first").await;
    let found = until::<ConfigMap>(maps(&client), Some("two"), |all| !all.is_empty()).await;
    assert!(found.is_some());
    assert_eq!(value(&client, "one").await.as_deref(), Some("first"));

    // The record goes with the Cluster.
    site.env.delete("Cluster", "first").await;
    site.env.wait_gone("first").await;
    let gone = site
        .env
        .wait_all::<ClusterResourceSetBinding>("only the record of the other Cluster", |all| all.len() == 1);
    assert_eq!(gone.await[0].spec.cluster_name, "other");
    drop(first);
    site.env.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contents_that_change_are_applied_again() {
    let site = Site::start().await;
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n";
    site.config_map("base", &[("n", namespace)]).await;
    site.config_map("plain", &[("a", &map("one", "first"))]).await;
    site.set(
        "addons",
        "Reconcile",
        &[("ConfigMap", "base"), ("ConfigMap", "plain"), ("ConfigMap", "late")],
    )
    .await;
    let (_, client) = site.cluster("only").await;

    // A resource that is not there keeps no other one waiting.
    let missing = ["ConfigMap late does not exist", "spec.resources"];
    site.says("addons", "False", "InternalError", &missing).await;
    let found = until::<ConfigMap>(maps(&client), Some("one"), |all| !all.is_empty()).await;
    assert!(found.is_some());
    site.config_map("late", &[("a", &map("three", "third"))]).await;
    site.says("addons", "True", "Applied", &[]).await;
    assert_eq!(value(&client, "three").await.as_deref(), Some("third"));

    // Fields of others stay.
    let patch = json!({ "data": { "own": "mine" } });
    let parameters = PatchParams::default();
    maps(&client)
        .patch("one", &parameters, &Patch::Merge(&patch))
        .await
        .unwrap();
    site.config_map("plain", &[("a", &map("one", "second"))]).await;
    let is_second = |all: &[ConfigMap]| {
        let data = all.first().and_then(|map| map.data.clone()).unwrap_or_default();
        data.get("value").map(String::as_str) == Some("second") && data.get("own").map(String::as_str) == Some("mine")
    };
    assert!(until(maps(&client), Some("one"), is_second).await.is_some());

    // A text that cannot be read is reported with its place, and none of it is applied; what was applied stays.
    let broken = format!("{}---\n{}---\nkind: [\n", map("one", "third"), map("four", "fourth"));
    site.config_map("plain", &[("a", &broken)]).await;
    site.config_map("late", &[("a", &map("three", "changed"))]).await;
    site.says(
        "addons",
        "False",
        "NotApplied",
        &["ConfigMap plain: data[a]: document 3"],
    )
    .await;
    let is_changed = |all: &[ConfigMap]| {
        all.first()
            .and_then(|map| map.data.clone())
            .is_some_and(|data| data["value"] == "changed")
    };
    assert!(until(maps(&client), Some("three"), is_changed).await.is_some());
    assert_eq!(value(&client, "one").await.as_deref(), Some("second"));
    assert_eq!(value(&client, "four").await, None);
    assert!(!site.record("only", "addons").await["ConfigMap plain"]);

    // An object that the Cluster refuses is named.
    let foreign = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n";
    site.config_map("plain", &[("a", foreign), ("b", &map("one", "fifth"))])
        .await;
    let words = [
        "ConfigMap plain on Cluster only",
        "Thing x",
        "does not serve Thing in example.com/v1",
    ];
    site.says("addons", "False", "NotApplied", &words).await;
    assert_eq!(value(&client, "one").await.as_deref(), Some("fifth"));
    site.config_map("plain", &[("a", &map("one", "sixth"))]).await;
    site.says("addons", "True", "Applied", &[]).await;
    assert_eq!(value(&client, "one").await.as_deref(), Some("sixth"));
    site.env.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_secrets_of_the_type_have_resources_and_no_text_of_them_is_shown() {
    let site = Site::start().await;
    site.secret("keys", "Opaque", "apiVersion: v1").await;
    site.set("addons", "ApplyOnce", &[("Secret", "keys"), ("Secret", "none")])
        .await;
    let (_, _) = site.cluster("only").await;
    let words = [
        "Secret type of resource keys is not supported: it is Opaque",
        "Secret none does not exist",
    ];
    site.says("addons", "False", "WrongSecretType", &words).await;
    let keys = site.env.api::<Secret>().get("keys").await.unwrap();
    assert!(keys.owner_references().is_empty());

    let secrets: Api<Secret> = site.env.api();
    secrets.delete("keys", &DeleteParams::default()).await.unwrap();
    site.secret("keys", RESOURCE_SET_SECRET_TYPE, "password: [top, {\nsecret-word: *x\n")
        .await;
    site.secret(
        "none",
        RESOURCE_SET_SECRET_TYPE,
        "kind: secret-word\nsecret-word: secret-word\n",
    )
    .await;
    let said = site
        .says(
            "addons",
            "False",
            "NotApplied",
            &["Secret keys: data[value]:", "Secret none: data[value]:"],
        )
        .await;
    assert!(
        !said.message.contains("secret-word") && !said.message.contains("top"),
        "{}",
        said.message
    );
    // The server shows the value that it refuses, and the condition does not.
    let refused = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {password: 73577357}\n";
    site.secret("keys", RESOURCE_SET_SECRET_TYPE, refused).await;
    let said = site
        .says(
            "addons",
            "False",
            "NotApplied",
            &["Secret keys on Cluster only: creating Secret default/b: refused"],
        )
        .await;
    assert!(!said.message.contains("73577357"), "{}", said.message);
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n";
    site.secret("keys", RESOURCE_SET_SECRET_TYPE, account).await;
    site.secret("none", RESOURCE_SET_SECRET_TYPE, account).await;
    site.says("addons", "True", "Applied", &[]).await;
    site.env.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_share_the_record_of_a_cluster() {
    let site = Site::start().await;
    let account = |name: &str| format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n");
    let names: Vec<String> = (0..8).map(|number| format!("set-{number}")).collect();
    for name in &names {
        site.config_map(name, &[("a", &account(name))]).await;
        site.set(name, "ApplyOnce", &[("ConfigMap", name)]).await;
    }
    let (_, client) = site.cluster("only").await;
    for name in &names {
        site.says(name, "True", "Applied", &[]).await;
    }
    for name in &names {
        assert!(site.record("only", name).await[&format!("ConfigMap {name}")]);
    }
    // Each set takes its own entry out; the last one takes the record. What was applied stays.
    for name in &names[1..] {
        site.env.delete("ClusterResourceSet", name).await;
    }
    let is_alone = |all: &[ClusterResourceSetBinding]| {
        all.first()
            .is_some_and(|record| record.spec.bindings.len() == 1 && record.owner_references().len() == 1)
    };
    assert!(until(site.env.api(), Some("only"), is_alone).await.is_some());
    let left = site
        .env
        .wait_all::<ClusterResourceSet>("one set", |all| all.len() == 1)
        .await;
    assert_eq!(left[0].name_any(), "set-0");
    // Not only the record of a Cluster that is selected now.
    site.env
        .merge("Cluster", "only", &json!({ "metadata": { "labels": { "cni": null } } }))
        .await;
    site.env.delete("ClusterResourceSet", "set-0").await;
    site.env.wait_all::<ClusterResourceSet>("no set", <[_]>::is_empty).await;
    site.env
        .wait_all::<ClusterResourceSetBinding>("no record", <[_]>::is_empty)
        .await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
    for name in &names {
        assert!(accounts.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    site.env.stop().await;
}
