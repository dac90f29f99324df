//! A Cluster with a ClusterClass of another namespace gets copies of its templates: its creator needs a right there.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Status};
use serde_json::{Value, json};
use windlass_testkit::{CLASS, ClusterOf, NAMESPACE, Objects, Server};

/// The namespace of the tenant. The class is in [`NAMESPACE`].
const OURS: &str = "team-a";
const TENANT: &str = "tenant-a";
const TEMPLATES: [&str; 3] = [
    "bootstrap.cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
];

/// Applies an object of any kind.
pub(crate) async fn put(admin: &Objects, object: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(admin.client().clone(), namespace, &resource),
        None => Api::all_with(admin.client().clone(), &resource),
    };
    let name = text(&object["metadata"]["name"]);
    let sent = api
        .patch(&name, &PatchParams::apply("admin").force(), &Patch::Apply(object))
        .await;
    sent.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
}

/// Grants a user rules in a namespace.
pub(crate) async fn grant(admin: &Objects, user: &str, namespace: &str, name: &str, rules: &Value) {
    let api = "rbac.authorization.k8s.io";
    let meta = json!({"name": name, "namespace": namespace});
    let version = format!("{api}/v1");
    put(
        admin,
        &json!({"apiVersion": version, "kind": "Role", "metadata": meta, "rules": rules}),
    )
    .await;
    put(
        admin,
        &json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
        }),
    )
    .await;
}

pub(crate) async fn namespace(admin: &Objects, name: &str) {
    put(
        admin,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    )
    .await;
}

fn clusters(client: kube::Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster"));
    Api::namespaced_with(client, OURS, &resource)
}

fn cluster(name: &str, class: &Value) -> DynamicObject {
    let mut object = ClusterOf::new(name, 1, 0).object();
    object["metadata"]["namespace"] = json!(OURS);
    object["spec"]["topology"]["classRef"] = class.clone();
    serde_json::from_value(object).unwrap()
}

pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Box<Status> {
    match result {
        Err(kube::Error::Api(status)) => status,
        other => panic!("not a refusal: {other:?}"),
    }
}

fn is_forbidden<T: std::fmt::Debug>(result: Result<T, kube::Error>, words: &[&str]) {
    let status = refused(result);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"), "{status:?}");
    for word in words {
        assert!(status.message.contains(word), "{word}: {}", status.message);
    }
}

/// What a user may do with a class of another namespace, in process and by webhook.
async fn rights_are_asked_for(server: &Server, admin: &Objects) {
    namespace(admin, OURS).await;
    admin.apply_yaml(CLASS).await;
    let own =
        json!([{"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters", "clusters/status"], "verbs": ["*"]}]);
    for user in [TENANT, "tenant-b"] {
        grant(admin, user, OURS, user, &own).await;
    }
    let tenant = clusters(server.client_of(TENANT, &["system:authenticated"]));
    let theirs = json!({"name": "quick-start", "namespace": NAMESPACE});
    let create = PostParams::default();
    let words = [
        "spec.topology.classRef refers to ClusterClass default/quick-start",
        "User \"tenant-a\" cannot get resource \"clusterclasses\" named \"quick-start\"",
        "in the namespace \"default\"",
        "Role with verb \"use\" on clusterclasses.cluster.x-k8s.io",
    ];
    is_forbidden(tenant.create(&create, &cluster("a", &theirs)).await, &words);
    let apply = PatchParams::apply("tenant").force();
    is_forbidden(
        tenant.patch("a", &apply, &Patch::Apply(&cluster("a", &theirs))).await,
        &words,
    );
    // A class that does not exist gives nothing away.
    let absent = json!({"name": "absent", "namespace": NAMESPACE});
    is_forbidden(tenant.create(&create, &cluster("a", &absent)).await, &["\"absent\""]);
    // Of the own namespace nothing is asked, and a change to the other one is one.
    let own_class = json!({"name": "quick-start"});
    tenant.create(&create, &cluster("own", &own_class)).await.unwrap();
    let rebase = json!({"spec": {"topology": {"classRef": theirs}}});
    let merge = PatchParams::default();
    is_forbidden(tenant.patch("own", &merge, &Patch::Merge(&rebase)).await, &words);

    // What an administrator has made, the tenant may change otherwise.
    clusters(admin.client().clone())
        .create(&create, &cluster("given", &theirs))
        .await
        .unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": null}, "spec": {"topology": {"controlPlane": {"replicas": 3}}}});
    tenant.patch("given", &merge, &Patch::Merge(&label)).await.unwrap();
    let status = json!({"status": {"phase": "Pending"}});
    tenant
        .patch_status("given", &merge, &Patch::Merge(&status))
        .await
        .unwrap();
    let other = json!({"spec": {"topology": {"classRef": {"name": "other"}}}});
    is_forbidden(
        tenant.patch("given", &merge, &Patch::Merge(&other)).await,
        &["\"other\""],
    );
    tenant.delete("given", &DeleteParams::default()).await.unwrap();

    // Who sees the class, and not its templates.
    let see =
        |groups: &[&str], resource: &str| json!([{"apiGroups": groups, "resources": [resource], "verbs": ["get"]}]);
    grant(
        admin,
        TENANT,
        NAMESPACE,
        "classes",
        &see(&["cluster.x-k8s.io"], "clusterclasses"),
    )
    .await;
    let words = [
        "User \"tenant-a\" cannot get all objects that it names",
        "namespace \"default\"",
    ];
    is_forbidden(tenant.create(&create, &cluster("a", &theirs)).await, &words);
    tenant.create(&create, &cluster("early", &absent)).await.unwrap();
    grant(admin, TENANT, NAMESPACE, "templates", &see(&TEMPLATES, "*")).await;
    tenant.create(&create, &cluster("a", &theirs)).await.unwrap();

    // Who may use it sees nothing.
    let grantee = clusters(server.client_of("tenant-b", &["system:authenticated"]));
    let may_use = json!([{
        "apiGroups": ["cluster.x-k8s.io"], "resources": ["clusterclasses"], "resourceNames": ["quick-start"], "verbs": ["use"],
    }]);
    grant(admin, "tenant-b", NAMESPACE, "use", &may_use).await;
    grantee.create(&create, &cluster("b", &theirs)).await.unwrap();
    is_forbidden(grantee.create(&create, &cluster("c", &absent)).await, &["\"absent\""]);

    is_in_use(admin).await;
}

/// A class whose Clusters are all in another namespace is in use.
async fn is_in_use(admin: &Objects) {
    let classes = admin.dynamic("ClusterClass");
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    // The caches of webhooks may be a moment behind.
    let wait = async |is_used: bool| {
        let mut looks = windlass_testkit::wait::looks();
        let waited = tokio::time::timeout(windlass_testkit::wait::TIMEOUT, async {
            while classes.delete("quick-start", &dry).await.is_err() != is_used {
                looks.tick().await;
            }
        });
        assert!(
            waited.await.is_ok(),
            "deletion is not refused as it should be: {is_used}"
        );
    };
    wait(true).await;
    let words = "ClusterClass cannot be deleted because it is used by Cluster(s): team-a/a, team-a/b";
    is_forbidden(classes.delete("quick-start", &dry).await, &[words]);
    let clusters = clusters(admin.client().clone());
    for name in ["a", "b"] {
        clusters.delete(name, &DeleteParams::default()).await.unwrap();
    }
    wait(false).await;
    classes.delete("quick-start", &DeleteParams::default()).await.unwrap();
}

// TO-045
#[tokio::test]
async fn a_user_needs_a_right_to_a_class_of_another_namespace() {
    let server = Server::with_definitions().await;
    rights_are_asked_for(&server, &Objects::new(server.client("admin"))).await;
    server.stop().await;
}

#[tokio::test]
async fn the_webhook_asks_the_api_server_for_the_rights_of_the_user() {
    let world = crate::admission_network::World::start().await;
    let webhooks = world.serve().await;
    rights_are_asked_for(&world.server, &world.objects).await;
    webhooks.shutdown().await;
    world.server.stop().await;
}

// A manager that may not create SubjectAccessReviews cannot tell: that is no permission, and may be tried again.
#[tokio::test]
async fn what_cannot_be_asked_is_refused_and_may_be_tried_again() {
    let world = crate::admission_network::World::start().await;
    let (admin, name) = (&world.objects, "weak-manager");
    let api = "rbac.authorization.k8s.io";
    let meta = json!({"name": name});
    put(
        admin,
        &json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": meta, "rules": [
                {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
                {"apiGroups": ["cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"]},
            ],
        }),
    )
    .await;
    put(
        admin,
        &json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": api, "kind": "User", "name": name}],
        }),
    )
    .await;
    let webhooks = world
        .serve_as(world.server.client_of(name, &["system:authenticated"]))
        .await;
    namespace(admin, OURS).await;
    let api = clusters(admin.client().clone());
    let theirs = json!({"name": "quick-start", "namespace": NAMESPACE});
    let status = refused(api.create(&PostParams::default(), &cluster("a", &theirs)).await);
    assert_eq!(status.code, 500, "{status:?}");
    assert!(status.message.contains("it is not known whether"), "{}", status.message);
    let own = json!({"name": "quick-start"});
    api.create(&PostParams::default(), &cluster("own", &own)).await.unwrap();
    webhooks.shutdown().await;
    world.server.stop().await;
}
