//! Older API versions beside ours, as clients use them: on the embedded server, and by the conversion webhook on a real one.

use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::annotations::CRD_MIGRATION_OBSERVED_GENERATION;
use windlass_controller_runtime::Metrics;
use windlass_manager::{Fetcher, Helming, Selection, controllers};
use windlass_testkit::{MANAGER, NAMESPACE, Server, wait};

const DEFINITION: &str = "machinedrainrules.cluster.x-k8s.io";

/// MachineDrainRules in a version.
fn rules(client: &kube::Client, version: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("cluster.x-k8s.io", version, "MachineDrainRule");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "machinedrainrules");
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

fn definitions(client: &kube::Client) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions"),
    )
}

fn rule(version: &str, name: &str, order: i32) -> DynamicObject {
    let object = json!({
        "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "MachineDrainRule", "metadata": {"name": name},
        "spec": {"drain": {"behavior": "Drain", "order": order}, "pods": [{"selector": {"matchLabels": {"app": "a"}}}]},
    });
    serde_json::from_value(object).unwrap()
}

fn order(object: &DynamicObject) -> &Value {
    &object.data["spec"]["drain"]["order"]
}

/// Polls until both versions can be listed: a real server follows definitions and webhooks by watches.
async fn are_served(client: &kube::Client) {
    let waiting = async {
        let mut looks = wait::looks();
        while rules(client, "v1beta1").list(&ListParams::default()).await.is_err()
            || rules(client, "v1beta2").list(&ListParams::default()).await.is_err()
        {
            looks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
    in_time.expect("both versions are served");
}

#[tokio::test]
async fn clients_of_both_versions_work_on_the_same_objects() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    are_served(&client).await;
    let (older, newer) = (rules(&client, "v1beta1"), rules(&client, "v1beta2"));
    let params = PostParams::default();
    let made = older.create(&params, &rule("v1beta1", "a", 1)).await.unwrap();
    assert_eq!(made.types.as_ref().unwrap().api_version, "cluster.x-k8s.io/v1beta1");
    let seen = newer.get("a").await.unwrap();
    assert_eq!((order(&seen), seen.uid()), (&json!(1), made.uid()));
    newer.create(&params, &rule("v1beta2", "b", 2)).await.unwrap();
    let listed = older.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        listed.items.iter().map(order).collect::<Vec<_>>(),
        [&json!(1), &json!(2)]
    );
    // Our admission judges what is stored, whatever version it comes in.
    let mut bad = rule("v1beta1", "c", 3);
    bad.data["spec"]["pods"][0]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Never"}]});
    let refused = older.create(&params, &bad).await.unwrap_err().to_string();
    assert!(refused.contains("spec.pods[0].selector"), "{refused}");
    // A deprecated version is one that clients are warned of, and the preferred one is ours.
    let group: Value = client
        .request(http::Request::get("/apis/cluster.x-k8s.io").body(Vec::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(group["preferredVersion"]["version"], "v1beta2");
    server.stop().await;
}

/// A user in the older version beside a controller in ours.
#[tokio::test]
async fn appliers_of_both_versions_share_an_object() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    are_served(&client).await;
    let (older, newer) = (rules(&client, "v1beta1"), rules(&client, "v1beta2"));
    let ours = Patch::Apply(rule("v1beta2", "a", 1));
    newer.patch("a", &PatchParams::apply("ours"), &ours).await.unwrap();
    let labelled = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDrainRule",
        "metadata": {"name": "a", "labels": {"mine": "yes"}}, "spec": {"drain": {"behavior": "Drain", "order": 1}},
    });
    let theirs = Patch::Apply(labelled);
    let applied = older.patch("a", &PatchParams::apply("theirs"), &theirs).await.unwrap();
    let managers = |object: &DynamicObject| -> Vec<(String, String)> {
        let entries = object.managed_fields().iter();
        entries
            .map(|entry| (entry.manager.clone().unwrap(), entry.api_version.clone().unwrap()))
            .collect()
    };
    let both = [
        ("ours", "cluster.x-k8s.io/v1beta2"),
        ("theirs", "cluster.x-k8s.io/v1beta1"),
    ];
    assert_eq!(
        managers(&applied),
        both.map(|(manager, version)| (manager.to_owned(), version.to_owned()))
    );
    // An apply that changes nothing writes nothing, in either version.
    for again in [
        older.patch("a", &PatchParams::apply("theirs"), &theirs).await.unwrap(),
        newer.patch("a", &PatchParams::apply("ours"), &ours).await.unwrap(),
    ] {
        assert_eq!(again.resource_version(), applied.resource_version());
    }
    let changed = Patch::Apply(rule("v1beta2", "a", 9));
    let conflict = newer.patch("a", &PatchParams::apply("ours"), &changed).await;
    let conflict = conflict.unwrap_err().to_string();
    assert!(conflict.contains("\"theirs\""), "{conflict}");
    server.stop().await;
}

/// As after a change-over from a management cluster that stored v1beta1.
#[tokio::test]
async fn objects_that_are_stored_in_an_older_version_are_migrated() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    are_served(&client).await;
    let all = definitions(&client);
    store_in(&client, "v1beta1").await;
    let (older, newer) = (rules(&client, "v1beta1"), rules(&client, "v1beta2"));
    // A real server may still store objects as the definition said before.
    let stored = async {
        let mut looks = wait::looks();
        for round in 0.. {
            let name = format!("r-{round}");
            older
                .create(&PostParams::default(), &rule("v1beta1", &name, 1))
                .await
                .unwrap();
            let definition = all.get(DEFINITION).await.unwrap();
            if stored_versions(&definition).contains(&"v1beta1".to_owned()) && round > 5 {
                break;
            }
            looks.tick().await;
        }
    };
    tokio::time::timeout(wait::TIMEOUT, stored)
        .await
        .expect("objects are stored in v1beta1");
    store_in(&client, "v1beta2").await;
    let before = newer.list(&ListParams::default()).await.unwrap();
    let selection = Selection::of(&["crdmigrator"]).unwrap();
    let running = controllers::start(
        client.clone(),
        Metrics::new(),
        &selection,
        &Fetcher::default(),
        &Helming::default(),
    );
    let waiting = async {
        let mut looks = wait::looks();
        loop {
            let definition = all.get(DEFINITION).await.unwrap();
            let generation = definition.metadata.generation.unwrap().to_string();
            let is_noted = definition.annotations().get(CRD_MIGRATION_OBSERVED_GENERATION) == Some(&generation);
            if is_noted && stored_versions(&definition) == ["v1beta2"] {
                return;
            }
            looks.tick().await;
        }
    };
    tokio::time::timeout(wait::TIMEOUT, waiting)
        .await
        .expect("v1beta2 is the only stored version");
    let after = newer.list(&ListParams::default()).await.unwrap();
    let specs = |list: &kube::core::ObjectList<DynamicObject>| -> Vec<(String, Value, Option<i64>)> {
        let items = list.items.iter();
        items
            .map(|one| (one.name_any(), one.data["spec"].clone(), one.metadata.generation))
            .collect()
    };
    assert_eq!(specs(&after), specs(&before));
    running.shutdown().await;
    server.stop().await;
}

fn stored_versions(definition: &DynamicObject) -> Vec<String> {
    serde_json::from_value(definition.data["status"]["storedVersions"].clone()).unwrap()
}

/// Changes the storage version of MachineDrainRules.
async fn store_in(client: &kube::Client, version: &str) {
    let all = definitions(client);
    let waiting = async {
        let mut looks = wait::looks();
        loop {
            let mut definition = all.get(DEFINITION).await.unwrap();
            for one in definition.data["spec"]["versions"].as_array_mut().unwrap() {
                one["storage"] = (one["name"] == version).into();
            }
            // The webhook server may write it, too.
            if all
                .replace(DEFINITION, &PostParams::default(), &definition)
                .await
                .is_ok()
            {
                return;
            }
            looks.tick().await;
        }
    };
    tokio::time::timeout(wait::TIMEOUT, waiting)
        .await
        .expect("the definition can be changed");
}

/// A manifest that is rewritten in the newer version, and leaves something out.
#[tokio::test]
async fn a_manifest_in_another_version_takes_the_place_of_the_one_before() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    are_served(&client).await;
    let machines = |version: &str| -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("cluster.x-k8s.io", version, "Machine");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "machines");
        Api::namespaced_with(client.clone(), NAMESPACE, &resource)
    };
    let manifest = |version: &str, spec: &Value| {
        let object = json!({
            "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Machine", "metadata": {"name": "a"}, "spec": spec,
        });
        Patch::Apply(serde_json::from_value::<DynamicObject>(object).unwrap())
    };
    let older = json!({
        "clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "version": "v1.34.0", "nodeDrainTimeout": "10s",
        "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DevMachine", "name": "m"},
    });
    let newer = json!({
        "clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "deletion": {"nodeDeletionTimeoutSeconds": 7},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"},
    });
    let by = PatchParams::apply("kubectl");
    // A real server may not have seen the webhook yet.
    let applied = async {
        let mut looks = wait::looks();
        while let Err(error) = machines("v1beta1").patch("a", &by, &manifest("v1beta1", &older)).await {
            assert!(!error.to_string().contains("Invalid"), "{error}");
            looks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(wait::TIMEOUT, applied).await;
    in_time.expect("it is applied");
    let applied = machines("v1beta2").patch("a", &by, &manifest("v1beta2", &newer)).await;
    assert_eq!(applied.unwrap().data["spec"], newer);
    let back = machines("v1beta1").patch("a", &by, &manifest("v1beta1", &older)).await;
    let spec = &back.unwrap().data["spec"];
    assert_eq!(
        (&spec["nodeDrainTimeout"], &spec["version"]),
        (&json!("10s"), &json!("v1.34.0"))
    );
    // What admission sets when there is none takes the place of the manifest's.
    assert_ne!(spec["nodeDeletionTimeout"], "7s");
    server.stop().await;
}
