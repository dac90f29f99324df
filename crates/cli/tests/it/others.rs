//! `windlass manager` beside another program that runs the same providers.

use std::path::Path;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_testkit::Objects;

use crate::support::{Finished, Up, apiserver, objects, run};

const RUNS: &str = "controllers run against";

fn arguments(kubeconfig: &Path, more: &[&str]) -> Vec<String> {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut args = vec![
        "manager",
        "--install-crds",
        "--log-level",
        "warn",
        "--kubeconfig",
        kubeconfig,
    ];
    args.extend(more);
    args.into_iter().map(str::to_owned).collect()
}

fn manager(folder: &Path, more: &[&str]) -> Up {
    let args = arguments(&folder.join("kubeconfig"), more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Up::command(folder, &args, RUNS)
}

fn hooks(objects: &Objects) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    Api::all_with(objects.client().clone(), &ApiResource::from_gvk(&kind))
}

/// The webhooks of a core, which nothing answers.
async fn install_core(objects: &Objects) {
    let name = "capi-validating-webhook-configuration";
    let object: Value = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{
            "name": "validation.cluster.cluster.x-k8s.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": "capi-system", "name": "capi-webhook-service"}},
            "rules": [{
                "apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["v1beta2"], "resources": ["clusters"],
                "operations": ["CREATE"],
            }],
        }],
    });
    let applied = hooks(objects)
        .patch(name, &PatchParams::apply("test"), &Patch::Apply(&object))
        .await;
    applied.unwrap();
}

/// Asserts that a manager ended with an error, with all these texts on standard error.
fn ended_with(ended: &Finished, words: &[&str]) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
    }
}

async fn has_definition(objects: &Objects, name: &str) -> bool {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(objects.client().clone(), &ApiResource::from_gvk(&kind));
    api.get_opt(name).await.unwrap().is_some()
}

#[tokio::test]
async fn a_manager_makes_way_for_another_core_and_takes_over_with_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    install_core(&objects).await;

    // Where it can do nothing else, it ends, and says why and what to do.
    let only = arguments(&folder.path().join("kubeconfig"), &["--controllers=machine,machineset"]);
    let only: Vec<&str> = only.iter().map(String::as_str).collect();
    run(folder.path(), &only).failed_with(&[
        "no controller is left to start",
        "another program runs the CoreProvider cluster-api",
        "ValidatingWebhookConfiguration capi-validating-webhook-configuration calls Service capi-system/capi-webhook-service",
        "--take-over",
    ]);
    assert!(
        !has_definition(&objects, "machines.cluster.x-k8s.io").await,
        "its definitions stay as they are"
    );

    // Else it runs the rest, and is not ready.
    let mut beside = manager(folder.path(), &["--controllers=machine,devippool,helmchartproxy"]);
    assert!(has_definition(&objects, "devippools.infrastructure.cluster.x-k8s.io").await);
    assert!(!has_definition(&objects, "machines.cluster.x-k8s.io").await);
    // When the other one goes, it ends, to decide again.
    hooks(&objects)
        .delete("capi-validating-webhook-configuration", &DeleteParams::default())
        .await
        .unwrap();
    let words = [
        "its controllers do not start here",
        "no longer the right ones: no other program runs these providers any more",
        "start it again",
    ];
    ended_with(&beside.finished(), &words);

    // And when one comes.
    let mut first = manager(folder.path(), &["--controllers=machine"]);
    assert!(has_definition(&objects, "machines.cluster.x-k8s.io").await);
    install_core(&objects).await;
    ended_with(
        &first.finished(),
        &["another program runs the CoreProvider cluster-api"],
    );
    let over = manager(folder.path(), &["--controllers=machine", "--take-over"]);
    let ended = over.interrupt();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("its controllers start here all the same (--take-over)"),
        "{ended:?}"
    );
    server.interrupt().went_well();
}

/// The Deployment of a core that runs, or does not.
async fn scale_core(objects: &Objects, replicas: u32) {
    scale(objects, ("capi-system", "capi-controller-manager"), replicas).await;
}

/// The Deployment of a manager that runs, or does not.
async fn scale(objects: &Objects, (namespace, name): (&str, &str), replicas: u32) {
    let labels = json!({"control-plane": "controller-manager"});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": "registry.example.com/manager:v1"}]},
            },
        },
    });
    let namespaces = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    let namespaces: Api<DynamicObject> = Api::all_with(objects.client().clone(), &namespaces);
    let object_of_namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let parameters = PatchParams::apply("test").force();
    let patch = Patch::Apply(&object_of_namespace);
    namespaces.patch(namespace, &parameters, &patch).await.unwrap();
    let deployments = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let deployments: Api<DynamicObject> = Api::namespaced_with(objects.client().clone(), namespace, &deployments);
    let patch = Patch::Apply(&object);
    deployments.patch(name, &parameters, &patch).await.unwrap();
}

#[tokio::test]
async fn a_manager_leaves_providers_to_another_operator() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let operator = ("capi-operator-system", "capi-operator-controller-manager");
    scale(&objects, operator, 1).await;
    let kubeconfig = folder.path().join("kubeconfig");
    let only = arguments(&kubeconfig, &["--controllers=operator/coreprovider"]);
    let only: Vec<&str> = only.iter().map(String::as_str).collect();
    run(folder.path(), &only).failed_with(&[
        "another program runs the cluster-api-operator",
        "Deployment capi-operator-system/capi-operator-controller-manager wants 1 replicas",
    ]);
    // Its definitions are its own, and the controllers of clusters run.
    let mut beside = manager(folder.path(), &["--controllers=machine,operator/coreprovider"]);
    assert!(has_definition(&objects, "machines.cluster.x-k8s.io").await);
    assert!(!has_definition(&objects, "coreproviders.operator.cluster.x-k8s.io").await);
    scale(&objects, operator, 0).await;
    ended_with(&beside.finished(), &["no other program runs these providers any more"]);
    server.interrupt().went_well();
}

#[tokio::test]
async fn the_steps_of_a_take_over_follow_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = apiserver(folder.path());
    let objects = objects(folder.path()).await;
    let kubeconfig = folder.path().join("kubeconfig");
    let adopt = |more: &[&str]| {
        let mut args = vec!["adopt", "--kubeconfig", kubeconfig.to_str().unwrap()];
        args.extend(more);
        run(folder.path(), &args)
    };
    let says = |finished: &Finished, code: i32, words: &[&str]| {
        assert_eq!(finished.code, Some(code), "{finished:?}");
        for word in words {
            assert!(finished.stdout.contains(word), "no {word:?} in {finished:?}");
        }
    };
    says(&adopt(&[]), 0, &["Nothing would change: 0 objects of 0 Clusters"]);
    let report: Value = serde_json::from_str(&adopt(&["--check", "--output", "json"]).stdout).unwrap();
    assert_eq!(report["changes"], json!([]));

    install_core(&objects).await;
    scale_core(&objects, 1).await;
    let words = [
        "done  1. see that nothing changes",
        "next  2. stop the managers",
        "Deployment capi-system/capi-controller-manager wants 1 replicas",
        "$ kubectl --namespace capi-system scale deployment capi-controller-manager --replicas 0",
    ];
    says(&adopt(&["--take-over"]), 2, &words);
    scale_core(&objects, 0).await;
    // The operator and the Helm provider of others run controllers that Windlass has, too.
    for of in [
        ("capi-operator-system", "capi-operator-controller-manager"),
        ("caaph-system", "caaph-controller-manager"),
    ] {
        scale(&objects, of, 1).await;
        let words = [
            "next  2. stop the managers".to_owned(),
            format!("$ kubectl --namespace {} scale deployment {} --replicas 0", of.0, of.1),
        ];
        says(&adopt(&["--take-over"]), 2, &words.each_ref().map(String::as_str));
        scale(&objects, of, 0).await;
    }
    let words = [
        "done  3. wait until",
        "next  4. start Windlass",
        "$ windlass manager --take-over --install-crds",
    ];
    says(&adopt(&["--take-over"]), 2, &words);
    let words = [
        "done  1. stop all processes",
        "next  2. start the managers",
        "clusterctl generate provider --core cluster-api:VERSION",
        "clusterctl generate provider --addon helm:VERSION",
        "--filename operator-components.yaml",
    ];
    says(&adopt(&["--way-back"]), 2, &words);
    let steps: Value = serde_json::from_str(&adopt(&["--take-over", "--output", "json"]).stdout).unwrap();
    assert_eq!(steps[4]["state"], "later");

    // 2 would be a change.
    for wrong in [
        &["--take-over", "--way-back"][..],
        &["--webhook-service", "x"],
        &["--controllers", "none"],
    ] {
        assert_eq!(adopt(wrong).code, Some(1), "{wrong:?}");
    }
    server.interrupt().went_well();
}
