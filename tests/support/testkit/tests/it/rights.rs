//! Permissions: external systems that manage infrastructure need few.

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use windlass_api::core::Cluster;
use windlass_testkit::{ByHand, Env, ExternalSystem, Objects, reserved_port};

/// The status code of an answer; 200 for success.
fn code<T>(answer: kube::Result<T>) -> u16 {
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("not an answer of the server: {error}"),
    }
}

/// The answers to a user for each verb on an object of a kind. The requests change at most a label.
async fn codes(objects: &Objects, kind: &str, name: &str) -> Vec<(&'static str, u16)> {
    let api = objects.dynamic(kind);
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let stored = api.get(name).await;
    let mut found = vec![
        ("list", code(api.list(&ListParams::default()).await)),
        ("watch", code(api.watch(&WatchParams::default(), "0").await.map(drop))),
        (
            "patch",
            code(api.patch(name, &PatchParams::default(), &Patch::Merge(&label)).await),
        ),
        (
            "patch status",
            code(
                api.patch_status(name, &PatchParams::default(), &Patch::Merge(&json!({"status": {}})))
                    .await,
            ),
        ),
    ];
    if let Ok(stored) = &stored {
        found.push(("update", code(api.replace(name, &dry, stored).await)));
        found.push(("create", code(api.create(&dry, stored).await)));
        // The patches may have changed it.
        let newest = api.get(name).await.unwrap();
        found.push(("update status", code(api.replace_status(name, &dry, &newest).await)));
    }
    found.push(("get", code(stored)));
    let gone = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    found.push(("delete", code(api.delete(name, &gone).await)));
    found.push((
        "deletecollection",
        code(api.delete_collection(&gone, &ListParams::default()).await),
    ));
    found.sort_unstable();
    found
}

fn allowed(codes: &[(&'static str, u16)]) -> Vec<&'static str> {
    assert!(codes.iter().all(|(_, code)| matches!(code, 200 | 403)), "{codes:?}");
    let allowed = codes.iter().filter(|(_, code)| *code == 200);
    allowed.map(|(verb, _)| *verb).collect()
}

// EX-053, CL-067
#[tokio::test]
async fn an_external_system_may_write_infrastructure_and_read_clusters_and_nothing_else() {
    let env = Env::builder().without_controllers().start().await;
    let cluster = ByHand::new("rights", 1, 0);
    cluster.apply(&env).await;
    let system = ExternalSystem::with_role(&env).await;
    let check = async |kind: &str, name: &str, want: &[&str]| {
        assert_eq!(allowed(&codes(system.objects(), kind, name).await), want, "{kind}");
    };
    check(
        "DevCluster",
        "rights",
        &["get", "list", "patch", "patch status", "update status", "watch"],
    )
    .await;
    check("Cluster", "rights", &["get", "list", "watch"]).await;
    check("DevMachineTemplate", "rights-control-plane", &[]).await;
    check("KubeadmControlPlane", "rights-control-plane", &[]).await;
    check("Machine", "none", &[]).await;
    check("DevMachine", "none", &[]).await;
    // The external system can neither read the cluster's Secrets nor change its own permissions.
    let secrets: Api<Secret> = system.objects().api();
    assert_eq!(code(secrets.list(&ListParams::default()).await), 403);
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let role = system.objects().dynamic("Role");
    let sent = role
        .patch("external-infrastructure", &PatchParams::default(), &Patch::Merge(&more))
        .await;
    assert_eq!(code(sent), 403);
    env.stop().await;
}

// EX-053, CL-067: a forbidden write stays forbidden as an apply of a new object, and the answer names the user and the verb.
#[tokio::test]
async fn what_an_external_system_may_not_write_is_refused_by_name() {
    let env = Env::builder().without_controllers().start().await;
    let system = ExternalSystem::with_role(&env).await;
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine", "metadata": {"name": "m"},
        "spec": {"backend": {"inMemory": {}}},
    });
    let cluster = ByHand::new("rights", 1, 0).object("Cluster");
    let infrastructure = ByHand::new("rights", 1, 0).object("DevCluster");
    for (object, verb, resource) in [
        (&machine, "patch", "devmachines"),
        (&cluster, "patch", "clusters"),
        // It may patch DevClusters, but not create one by a patch.
        (&infrastructure, "create", "devclusters"),
    ] {
        let refused = match system.objects().try_apply(object).await {
            Err(kube::Error::Api(status)) => status,
            other => panic!("{resource}: {other:?}"),
        };
        assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
        let words = format!("User \"terraform\" cannot {verb} resource \"{resource}\" in API group");
        assert!(refused.message.contains(&words), "{}", refused.message);
    }
    let elsewhere = Api::<Cluster>::namespaced(system.objects().client().clone(), "kube-system");
    assert_eq!(code(elsewhere.list(&ListParams::default()).await), 403);
    let review = |verb: &str, resource: &str| -> SelfSubjectAccessReview {
        let attributes = json!({"namespace": "default", "group": "infrastructure.cluster.x-k8s.io", "verb": verb, "resource": resource});
        serde_json::from_value(json!({"spec": {"resourceAttributes": attributes}})).unwrap()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(system.objects().client().clone());
    for (verb, resource, may) in [
        ("patch", "devclusters", true),
        ("patch", "devmachines", false),
        ("create", "devclusters", false),
    ] {
        let answer = reviews
            .create(&PostParams::default(), &review(verb, resource))
            .await
            .unwrap();
        assert_eq!(answer.status.unwrap().allowed, may, "{verb} {resource}");
    }
    env.stop().await;
}

// EX-053, EX-067: the service owns Cluster, control plane and machines; the tenant's system provides the infrastructure with its
// Role.
#[tokio::test]
async fn a_cluster_lives_on_infrastructure_of_a_system_with_few_rights() {
    let env = Env::start().await;
    let system = ExternalSystem::with_role(&env).await;
    let cluster = ByHand::new("few", 1, 1);
    cluster.apply(&env).await;
    let finalizers = json!({"metadata": {"finalizers": ["terraform.example.com/infrastructure"]}});
    system.merge("few", &finalizers).await;
    system.provision("few", "127.0.0.1", reserved_port()).await;
    cluster.wait_running(&env).await;
    let life = env.record("DevCluster", "few").await;
    env.delete("Cluster", "few").await;
    life.until("its deletion", |version| {
        version.object.metadata.deletion_timestamp.is_some()
    })
    .await;
    system.release("few").await;
    env.wait_gone("few").await;
    env.stop().await;
}
