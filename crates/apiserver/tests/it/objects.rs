//! create, get, list, update, patch, delete.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::support::{start, status};

fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            ..Default::default()
        },
        data: Some(data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_object_lives_from_creation_to_deletion() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let made = api
        .create(&PostParams::default(), &map("a", &[("k", "1")]))
        .await
        .unwrap();
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    let again = status(api.create(&PostParams::default(), &map("a", &[])).await);
    assert_eq!(
        (again.code, again.reason.as_str(), again.message.as_str()),
        (409, "AlreadyExists", "configmaps \"a\" already exists")
    );

    let mut changed = made.clone();
    changed.data = Some([("k".to_owned(), "2".to_owned())].into());
    let updated = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(updated.metadata.resource_version, made.metadata.resource_version);
    let stale = status(api.replace("a", &PostParams::default(), &made).await);
    assert_eq!(stale.reason, "Conflict");
    assert_eq!(
        stale.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let same = api.replace("a", &PostParams::default(), &updated).await.unwrap();
    assert_eq!(same.metadata.resource_version, updated.metadata.resource_version);

    let patch = json!({"data": {"k": null, "n": "3"}});
    let patched = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(
        patched.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("n".to_owned(), "3".to_owned())]
    );

    let wrong = DeleteParams::default().preconditions(Preconditions {
        uid: Some("x".to_owned()),
        resource_version: None,
    });
    assert_eq!(status(api.delete("a", &wrong).await).code, 409);
    assert!(api.delete("a", &DeleteParams::default()).await.unwrap().is_right());
    let missing = status(api.get("a").await);
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (404, "configmaps \"a\" not found")
    );
}

#[tokio::test]
async fn lists_select_and_continue() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for i in 0..5 {
        let mut object = map(&format!("m{i}"), &[]);
        object.metadata.labels = Some([("even".to_owned(), (i % 2 == 0).to_string())].into());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let even = api.list(&ListParams::default().labels("even in (true)")).await.unwrap();
    assert_eq!(even.items.len(), 3);
    let one = api
        .list(&ListParams::default().fields("metadata.name=m3"))
        .await
        .unwrap();
    assert_eq!(one.items.len(), 1);
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.items.len(), 2);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    // Later pages of the list do not show changes in the meantime.
    api.delete("m3", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &map("m9", &[])).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = api.list(&ListParams::default().continue_token(&token)).await.unwrap();
    let names: Vec<_> = rest.items.iter().map(|m| m.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["m2", "m3", "m4"]);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    let bad = status(api.list(&ListParams::default().fields("spec.x=1")).await);
    assert_eq!(
        bad.message,
        "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
}

#[tokio::test]
async fn applying_owns_fields_and_conflicts() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let config =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
    let one = PatchParams::apply("one");
    let made = api.patch("a", &one, &Patch::Apply(config("1"))).await.unwrap();
    let same = api.patch("a", &one, &Patch::Apply(config("1"))).await.unwrap();
    assert_eq!(made.metadata.resource_version, same.metadata.resource_version);
    let conflict = status(
        api.patch("a", &PatchParams::apply("two"), &Patch::Apply(config("2")))
            .await,
    );
    assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        conflict.message,
        "Apply failed with 1 conflict: conflict with \"one\": .data.k"
    );
    let taken = api
        .patch("a", &PatchParams::apply("two").force(), &Patch::Apply(config("2")))
        .await
        .unwrap();
    assert_eq!(taken.data.unwrap()["k"], "2");
    // The first manager no longer owns the field, so omitting it changes nothing.
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let left = api.patch("a", &one, &Patch::Apply(empty)).await.unwrap();
    assert_eq!(left.data.unwrap()["k"], "2");
}

#[tokio::test]
async fn strategic_patches_merge_lists_by_key() {
    let (_server, client) = start().await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "one", "image": "x:1"}, {"name": "two", "image": "y:1"}]}}},
    }))
    .unwrap();
    let made = api.create(&PostParams::default(), &deployment).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.spec.replicas, Some(1));
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "y:2"}]}}}});
    let patched = api
        .patch("d", &PatchParams::default(), &Patch::Strategic(&patch))
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    let containers = patched.spec.template.spec.unwrap().containers;
    let images: Vec<_> = containers.iter().map(|c| c.image.clone().unwrap()).collect();
    assert_eq!(images, ["x:1", "y:2"]);
    let scale = api.get_scale("d").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(1));
    let patch = json!({"spec": {"replicas": 3}});
    let scaled = api
        .patch_scale("d", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    let managers = api.get("d").await.unwrap().metadata.managed_fields.unwrap();
    assert!(managers.iter().any(|m| m.subresource.as_deref() == Some("scale")));
    assert_eq!(api.get("d").await.unwrap().metadata.generation, Some(3));
    let patch = json!({"status": {"replicas": 3}});
    let with_status = api
        .patch_status("d", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(with_status.metadata.generation, Some(3));
    assert_eq!(with_status.status.unwrap().replicas, Some(3));
}

#[tokio::test]
async fn secrets_follow_their_rules() {
    let (_server, client) = start().await;
    let api: Api<Secret> = Api::default_namespaced(client);
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"generateName": "s-"}, "stringData": {"k": "v"}})).unwrap();
    let made = api.create(&PostParams::default(), &secret).await.unwrap();
    assert!(made.metadata.name.as_deref().unwrap().starts_with("s-"));
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert_eq!(made.data.unwrap()["k"].0, b"v");
    let tls: Secret = serde_json::from_value(json!({"metadata": {"name": "t"}, "type": "kubernetes.io/tls"})).unwrap();
    let refused = status(api.create(&PostParams::default(), &tls).await);
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        refused.message,
        "Secret \"t\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]"
    );
    let typed = api.list(&ListParams::default().fields("type=Opaque")).await.unwrap();
    assert_eq!(typed.items.len(), 1);
}

#[tokio::test]
async fn dry_runs_leave_nothing() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let dry = PostParams {
        dry_run: true,
        field_manager: None,
    };
    assert!(api.create(&dry, &map("a", &[])).await.unwrap().metadata.uid.is_some());
    assert_eq!(status(api.get("a").await).code, 404);
}

#[tokio::test]
async fn namespaces_must_be_there() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "nowhere");
    let refused = status(api.create(&PostParams::default(), &map("a", &[])).await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (404, "namespaces \"nowhere\" not found")
    );
    let namespaces: Api<Namespace> = Api::all(client);
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn pods_are_found_by_node_and_evicted() {
    let (_server, client) = start().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(
        json!({"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    )
    .unwrap();
    assert!(
        nodes
            .create(&PostParams::default(), &node)
            .await
            .unwrap()
            .status
            .is_some()
    );
    let api: Api<Pod> = Api::default_namespaced(client);
    let pod: Pod = serde_json::from_value(
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}),
    )
    .unwrap();
    api.create(&PostParams::default(), &pod).await.unwrap();
    let on_node = api
        .list(&ListParams::default().fields("spec.nodeName=n,status.phase=Pending"))
        .await
        .unwrap();
    assert_eq!(on_node.items.len(), 1);
    api.evict("p", &kube::api::EvictParams::default()).await.unwrap();
    assert_eq!(status(api.get("p").await).code, 404);
}

#[tokio::test]
async fn nothing_that_the_server_set_itself_is_unknown_to_it() {
    let (_server, client) = start().await;
    crate::support::install(&client, &crate::support::widget_crd()).await;
    let strict = kube::api::PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &map("a", &[("k", "v")]))
        .await
        .unwrap();
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    maps.patch("a", &strict, &Patch::Merge(&patch)).await.unwrap();
    let widgets = crate::support::widgets(&client, "v1");
    widgets
        .create(&PostParams::default(), &crate::support::widget("a", json!({"size": 1})))
        .await
        .unwrap();
    widgets.patch("a", &strict, &Patch::Merge(&patch)).await.unwrap();
}

#[tokio::test]
async fn a_new_object_has_the_zeros_of_its_status() {
    let (_server, client) = start().await;
    let check = async |group: &str, kind: &str, spec: serde_json::Value, want: serde_json::Value| {
        let gvk = kube::core::GroupVersionKind::gvk(group, "v1", kind);
        let resource = kube::api::ApiResource::from_gvk(&gvk);
        let api: Api<kube::api::DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        let object =
            kube::api::DynamicObject::new("a", &resource).data(json!({"spec": spec, "status": {"replicas": 7}}));
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        assert_eq!(made.data["status"], want, "{kind}");
        assert_eq!(api.get("a").await.unwrap().data["status"], want, "{kind}");
    };
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let daemons =
        json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
    check("apps", "DaemonSet", spec.clone(), daemons).await;
    check("apps", "Deployment", spec.clone(), json!({})).await;
    check("apps", "ReplicaSet", spec.clone(), json!({"replicas": 0})).await;
    check(
        "apps",
        "StatefulSet",
        spec,
        json!({"replicas": 0, "availableReplicas": 0}),
    )
    .await;
    let mut job = template;
    job["spec"]["restartPolicy"] = "Never".into();
    check("batch", "Job", json!({"template": job}), json!({})).await;
    check(
        "",
        "Service",
        json!({"ports": [{"port": 1}]}),
        json!({"loadBalancer": {}}),
    )
    .await;
    let budget = json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
    check("policy", "PodDisruptionBudget", json!({"minAvailable": 1}), budget).await;
}

#[tokio::test]
async fn clients_cannot_remove_the_finalizer_of_a_namespace() {
    let (_server, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client);
    let make = async |name: &str, spec: serde_json::Value| {
        let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        namespaces.create(&PostParams::default(), &object).await.unwrap()
    };
    let finalizers = |n: &Namespace| n.spec.clone().unwrap_or_default().finalizers.unwrap_or_default();
    let made = make("a", json!({"finalizers": ["x.io/y"]})).await;
    assert_eq!(finalizers(&made), ["x.io/y", "kubernetes"]);
    assert_eq!(finalizers(&make("b", json!({"finalizers": []})).await), ["kubernetes"]);
    let bare: Namespace = serde_json::from_value(json!({"metadata": {"name": "b", "labels": {"l": "1"}}})).unwrap();
    let replaced = namespaces.replace("b", &PostParams::default(), &bare).await.unwrap();
    assert_eq!(replaced.metadata.labels.as_ref().unwrap()["l"], "1");
    assert_eq!(finalizers(&replaced), ["kubernetes"]);
    let patch = json!({"spec": {"finalizers": null}});
    let patched = namespaces
        .patch("b", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(finalizers(&patched), ["kubernetes"]);
}

#[tokio::test]
async fn an_update_of_a_secret_must_name_its_type() {
    let (_server, client) = start().await;
    let api: Api<Secret> = Api::default_namespaced(client);
    let secret = |kind: Option<&str>| Secret {
        type_: kind.map(str::to_owned),
        metadata: kube::api::ObjectMeta {
            name: Some("a".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    api.create(&PostParams::default(), &secret(Some("x.io/y")))
        .await
        .unwrap();
    let error = api
        .replace("a", &PostParams::default(), &secret(None))
        .await
        .unwrap_err();
    let words = "Secret \"a\" is invalid: type: Invalid value: \"Opaque\": field is immutable";
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn what_no_type_can_hold_is_refused() {
    let (_server, client) = start().await;
    let check = async |group: &str, kind: &str, fields: serde_json::Value, code: u16| {
        let gvk = kube::core::GroupVersionKind::gvk(group, "v1", kind);
        let resource = kube::api::ApiResource::from_gvk(&gvk);
        let api: Api<kube::api::DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        let object = kube::api::DynamicObject::new("a", &resource).data(fields.clone());
        let answer = api.create(&PostParams::default(), &object).await;
        assert_eq!(status(answer).code, code, "{kind} {fields}");
    };
    check("", "Secret", json!({"data": {"a": "%%%"}}), 400).await;
    check("", "Secret", json!({"data": {"a": "YQ"}}), 400).await;
    check("", "ConfigMap", json!({"data": {"a": 1}}), 400).await;
    check("", "ConfigMap", json!({"binaryData": {"a": "%"}}), 400).await;
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": "x"}, "binaryData": {"a": "YQ=="}}),
        422,
    )
    .await;
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": "x".repeat(1 << 20), "b": "x"}}),
        422,
    )
    .await;
    check(
        "",
        "Secret",
        json!({"stringData": {"a": "x".repeat((1 << 20) + 1)}}),
        422,
    )
    .await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for replicas in [json!(3_000_000_000_u64), json!("1"), json!(1.5)] {
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template});
        check("apps", "Deployment", json!({"spec": spec}), 400).await;
    }
    check(
        "coordination.k8s.io",
        "Lease",
        json!({"spec": {"renewTime": "now"}}),
        400,
    )
    .await;
}
