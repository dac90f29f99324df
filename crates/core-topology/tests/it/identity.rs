//! What is written is about the objects that were read: no other kinds, no objects that are gone, and no copies that are behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};
use windlass_testkit::Server;

use crate::env::{DEFINITIONS, Env, cluster, condition, documents, example, name};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Waits until the Cluster says this about its topology.
async fn says(env: &Env, part: &str) {
    env.wait(&format!("a message with {part:?}"), async || {
        let cluster = env.get("Cluster", "foo").await?;
        let found = condition(&cluster, "TopologyReconciled")?;
        (found["status"] == "False" && found["message"].as_str()?.contains(part)).then_some(())
    })
    .await;
}

/// The vSphere kinds, and the same kinds of another group and under other names.
fn definitions() -> Vec<Value> {
    let mut all = documents(DEFINITIONS);
    for (group, prefix) in [(GROUP, "AWS"), ("other.cluster.x-k8s.io", "VSphere")] {
        for kind in [
            "Cluster",
            "ClusterTemplate",
            "ControlPlane",
            "ControlPlaneTemplate",
            "Config",
            "ConfigTemplate",
        ] {
            let kind = format!("{prefix}{kind}");
            let plural = format!("{}s", kind.to_lowercase());
            let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            all.push(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}"), "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
                "spec": {
                    "group": group, "scope": "Namespaced",
                    "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                    "versions": [{"name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}],
                },
            }));
        }
    }
    all
}

/// A template of any of these kinds.
async fn apply_template(env: &Env, group: &str, kind: &str) {
    let template = json!({
        "apiVersion": format!("{group}/v1beta1"), "kind": kind, "metadata": {"name": "another", "namespace": "bar"},
        "spec": {"template": {"spec": {}}},
    });
    let resource = kube::api::ApiResource {
        group: group.to_owned(),
        version: "v1beta1".to_owned(),
        api_version: format!("{group}/v1beta1"),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(env.client.clone(), "bar", &resource);
    let params = kube::api::PatchParams::apply("user").force();
    api.patch("another", &params, &kube::api::Patch::Apply(&template))
        .await
        .unwrap();
}

// TO-267: admission would refuse the change of the class. Its names and namespaces cannot differ: they come from the Cluster.
#[tokio::test]
async fn the_infrastructure_and_the_control_plane_keep_their_kind_and_their_group() {
    let env = Env::start_unadmitted_with(definitions()).await;
    env.apply_example().await;
    let of = async |kind: &str| env.generated(kind).await.remove(0);
    let before = [of("VSphereCluster").await, of("KubeadmControlPlane").await];
    let cases = [
        (
            "infrastructure",
            GROUP,
            "AWSClusterTemplate",
            "kind cannot change from VSphereCluster.",
        ),
        (
            "infrastructure",
            "other.cluster.x-k8s.io",
            "VSphereClusterTemplate",
            "VSphereCluster.other.cluster.x-k8s.io",
        ),
        (
            "controlPlane",
            GROUP,
            "AWSControlPlaneTemplate",
            "kind cannot change from KubeadmControlPlane.",
        ),
    ];
    let class = env.get("ClusterClass", "mixed").await.unwrap();
    for (part, group, kind, words) in cases {
        apply_template(&env, group, kind).await;
        let reference = json!({"apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "another"});
        env.merge(
            "ClusterClass",
            "mixed",
            json!({"spec": {part: {"templateRef": reference}}}),
        )
        .await;
        says(&env, words).await;
        let after = [of("VSphereCluster").await, of("KubeadmControlPlane").await];
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((name(before), &before["spec"]), (name(after), &after["spec"]));
        }
        assert!(env.generated("AWSCluster").await.is_empty());
        let back = &class["spec"][part]["templateRef"];
        env.merge("ClusterClass", "mixed", json!({"spec": {part: {"templateRef": back}}}))
            .await;
        env.reconciled("ReconcileSucceeded").await;
    }
    env.stop().await;
}

// TO-191: the change of the class is admitted. The bootstrap object of a pool would be changed in place, and cannot become another kind.
#[tokio::test]
async fn the_bootstrap_object_of_a_pool_keeps_its_kind() {
    let env = Env::start_with(definitions()).await;
    env.apply(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePoolTemplate",
        "metadata": {"name": "pool", "namespace": "bar"},
        "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
    }))
    .await;
    let pool_class = |bootstrap: Value| {
        json!([{
            "class": "pool", "bootstrap": {"templateRef": bootstrap},
            "infrastructure": {"templateRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePoolTemplate", "name": "pool",
            }},
        }])
    };
    let kubeadm = json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "name": "existing-boot-ref"});
    for object in example(|class| class["spec"]["workers"]["machinePools"] = pool_class(kubeadm.clone())) {
        env.apply(object).await;
    }
    let mut cluster = cluster();
    cluster["spec"]["topology"]["workers"]["machinePools"] = json!([{"class": "pool", "name": "mp-0", "replicas": 1}]);
    env.apply(cluster).await;
    env.reconciled("ReconcileSucceeded").await;
    let before = env.of_entry("MachinePool", "mp-0").await.remove(0);
    apply_template(&env, GROUP, "AWSConfigTemplate").await;
    let other = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "AWSConfigTemplate", "name": "another"});
    let patch = |bootstrap: &Value| json!({"spec": {"workers": {"machinePools": pool_class(bootstrap.clone())}}});
    env.merge("ClusterClass", "mixed", patch(&other)).await;
    says(&env, "kind cannot change from KubeadmConfig.").await;
    let kept = env.of_entry("MachinePool", "mp-0").await.remove(0);
    assert_eq!(kept["spec"], before["spec"]);
    assert!(env.generated("AWSConfig").await.is_empty());
    env.merge("ClusterClass", "mixed", patch(&kubeadm)).await;
    env.reconciled("ReconcileSucceeded").await;
    env.stop().await;
}

/// A client whose server deletes an object right before the first write of it, and what it answers to that.
fn deleting(server: &Server, answers: Arc<Mutex<Vec<u16>>>, armed: Arc<Mutex<bool>>) -> kube::Client {
    let (inner, admin) = (server.service("windlass"), server.client("another"));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, admin, answers, armed) = (inner.clone(), admin.clone(), answers.clone(), armed.clone());
        async move {
            let query = request.uri().query().unwrap_or_default();
            let is_write = request.method() == Method::PATCH
                && request.uri().path().contains("/vsphereclusters/")
                && query.contains("capi-topology")
                && !query.contains("dryRun");
            let is_first = is_write && std::mem::take(&mut *armed.lock().unwrap());
            if is_first {
                let path = request.uri().path().to_owned();
                let gone = http::Request::delete(path).body(Vec::new()).unwrap();
                admin.request_text(gone).await.unwrap();
            }
            let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
            if is_write {
                answers.lock().unwrap().push(answer.status().as_u16());
            }
            Ok::<_, BoxError>(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    kube::Client::new(service, "default")
}

// TO-268
#[tokio::test]
async fn an_object_that_goes_between_read_and_write_is_not_made_again() {
    let (answers, armed) = (Arc::default(), Arc::default());
    let (seen, arm) = (Arc::clone(&answers), Arc::clone(&armed));
    let env = Env::start_behind(move |server| deleting(server, seen, arm)).await;
    env.apply_example().await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    let used = json!({"initialization": {"infrastructureProvisioned": true}});
    env.status("Cluster", "foo", used).await;
    env.quiet().await;
    answers.lock().unwrap().clear();
    *armed.lock().unwrap() = true;
    let patch = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    env.merge("VSphereClusterTemplate", "vsphere-prod-cluster-template", patch)
        .await;
    says(
        &env,
        &format!("VSphereCluster bar/{} does not exist", name(&infrastructure)),
    )
    .await;
    assert_eq!(*answers.lock().unwrap(), [409], "the only write, which names the uid");
    assert!(env.list("VSphereCluster").await.is_empty());
    env.stop().await;
}

/// A client whose watch events come late. It counts writes of the topology controller by their path.
fn late(server: &Server, writes: Arc<Mutex<BTreeMap<String, Vec<Value>>>>) -> kube::Client {
    const DELAY: Duration = Duration::from_millis(150);
    let inner = server.service("windlass");
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, writes) = (inner.clone(), writes.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let query = parts.uri.query().unwrap_or_default();
            if parts.method == Method::PATCH
                && query.contains("fieldManager=capi-topology&")
                && !query.contains("dryRun")
            {
                let sent = serde_json::from_slice(&bytes)?;
                writes
                    .lock()
                    .unwrap()
                    .entry(parts.uri.path().to_owned())
                    .or_default()
                    .push(sent);
            }
            let is_watch = query.contains("watch=");
            let request = http::Request::from_parts(parts, kube::client::Body::from(bytes.to_vec()));
            let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
            Ok::<_, BoxError>(answer.map(|body| {
                let body = body.map_err(BoxError::from);
                if !is_watch {
                    return body.boxed_unsync();
                }
                let frames = futures::stream::unfold(body, async |mut body| {
                    let frame = body.frame().await?;
                    tokio::time::sleep(DELAY).await;
                    Some((frame, body))
                });
                http_body_util::StreamBody::new(Box::pin(frames)).boxed_unsync()
            }))
        }
    });
    kube::Client::new(service, "default")
}

// TO-270: the caches are behind all the time.
#[tokio::test]
async fn nothing_is_written_twice_while_the_caches_are_behind() {
    let writes = Arc::default();
    let seen = Arc::clone(&writes);
    let env = Env::start_behind(move |server| late(server, seen)).await;
    env.apply_example().await;
    env.quiet().await;
    for (path, sent) in writes.lock().unwrap().iter() {
        // Without a uid it is a creation. A later write may make sure of the same.
        let creations = sent.iter().filter(|one| one["metadata"].get("uid").is_none());
        assert_eq!(creations.count(), 1, "{path}: {sent:#?}");
        assert!(
            sent.iter().all(|one| one["spec"] == sent[0]["spec"]),
            "{path}: {sent:#?}"
        );
    }
    assert_eq!(writes.lock().unwrap().len(), 16);
    // Two changes in a row: the second one does not go back to what the first one found.
    writes.lock().unwrap().clear();
    for replicas in [6, 7] {
        env.topology(|topology| topology["workers"]["machineDeployments"][0]["replicas"] = replicas.into())
            .await;
    }
    let entry = "big-pool-of-machines-1";
    env.wait("the replicas", async || {
        (env.deployment(entry).await["spec"]["replicas"] == 7).then_some(())
    })
    .await;
    env.quiet().await;
    assert_eq!(env.deployment(entry).await["spec"]["replicas"], 7);
    let sent: Vec<Value> = writes
        .lock()
        .unwrap()
        .values()
        .flatten()
        .map(|sent| sent["spec"]["replicas"].clone())
        .collect();
    assert!(sent == [json!(6), json!(7)] || sent == [json!(7)], "{sent:?}");
    env.stop().await;
}
