//! Declarations of providers are validated before a controller sees them, by every kind of API server.

use kube::api::{Api, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::Status;
use serde_json::{Value, json};
use windlass_api::kind::{ApiKind, Conditioned};
use windlass_api_operator::{Fetch, ProviderObject, inventory, management, operator};
use windlass_testkit::{Env, MANAGER, NAMESPACE};

type Kind = management::InfrastructureProvider;

fn provider(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": Kind::API_VERSION, "kind": Kind::KIND, "metadata": {"name": name, "namespace": NAMESPACE},
    });
    object["spec"] = spec;
    object
}

/// Creates an object as `kubectl create` does, with strict validation.
async fn create(env: &Env, object: &Value) -> Result<Value, Box<Status>> {
    let (group, kind) = (Kind::API_VERSION, Kind::PLURAL);
    let request = http::Request::post(format!(
        "/apis/{group}/namespaces/{NAMESPACE}/{kind}?fieldValidation=Strict"
    ));
    let request = request
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap();
    answer(env.client().request::<Value>(request).await)
}

/// Changes an object as `kubectl apply` does, with strict validation.
async fn apply(env: &Env, object: &Value) -> Result<Value, Box<Status>> {
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let api: Api<Kind> = env.api();
    answer(api.patch(name, &parameters, &Patch::Apply(object)).await).map(|object| json!(object))
}

fn answer<T>(answer: Result<T, kube::Error>) -> Result<T, Box<Status>> {
    answer.map_err(|error| match error {
        kube::Error::Api(status) => status,
        other => panic!("not an answer of the server: {other}"),
    })
}

async fn is_refused(env: &Env, spec: Value, code: u16, words: &[&str]) {
    let object = provider("wrong", spec);
    let status = create(env, &object).await.unwrap_err();
    assert_eq!(status.code, code, "{}", status.message);
    for word in words {
        assert!(status.message.contains(word), "no {word:?} in {:?}", status.message);
    }
}

// OP-011, OP-034, OP-041, OP-042, OP-050, OP-058, OP-059, OP-076, OP-173
#[tokio::test]
async fn declarations_that_cannot_be_meant_are_refused_with_the_field() {
    let env = Env::builder().without_controllers().start().await;
    let manager = |field: &str, value: Value| json!({"manager": {field: value}});
    let container = |container: Value| json!({"deployment": {"containers": [container]}});
    let check = async |spec: Value, code: u16, words: &[&str]| is_refused(&env, spec, code, words).await;

    check(json!({"version": "0.6.0"}), 422, &["spec.version", "should match"]).await;
    check(json!({"version": "latest"}), 422, &["spec.version", "should match"]).await;
    let unknown = "unknown field \"spec.manager.metricsAddress\"";
    check(manager("metricsAddress", json!(":8181")), 400, &["strict", unknown]).await;
    check(
        manager("syncPeriod", json!(660)),
        422,
        &["spec.manager.syncPeriod", "must be of type string"],
    )
    .await;
    check(
        manager("syncPeriod", json!("660")),
        422,
        &["spec.manager.syncPeriod", "should match"],
    )
    .await;
    let election = json!({"leaderElect": true, "leaseDuration": "15s", "renewDeadline": "20s"});
    check(
        manager("leaderElection", election),
        422,
        &["renewDeadline must not be longer than leaseDuration"],
    )
    .await;
    check(
        container(json!({"image": "a/b:c"})),
        422,
        &["containers[0].name: Required"],
    )
    .await;
    check(
        container(json!({"name": "a", "image": "a/b:c"})),
        422,
        &["containers[0].image", "must be of type object"],
    )
    .await;
    check(
        container(json!({"name": "a", "args": {"x": 12}})),
        422,
        &["containers[0].args.x", "must be of type string"],
    )
    .await;
    let one = "set exactly one of url, selector";
    check(json!({"fetchConfig": {}}), 422, &["spec.fetchConfig", one]).await;
    check(
        json!({"fetchConfig": {"url": "x", "selector": {}}}),
        422,
        &["spec.fetchConfig", one],
    )
    .await;
    env.stop().await;
}

// OP-003, OP-009, OP-037, OP-049, OP-207
#[tokio::test]
async fn declarations_are_stored_as_they_were_meant() {
    let env = Env::builder().without_controllers().start().await;
    let bare = create(&env, &provider("bare", Value::Null)).await.unwrap();
    assert!(bare.get("spec").is_none(), "{bare}");
    // Go's client writes an absent list as null.
    let stored = create(
        &env,
        &provider("nil", json!({"deployment": {"replicas": 2, "containers": null}})),
    )
    .await;
    assert_eq!(stored.unwrap()["spec"], json!({"deployment": {"replicas": 2}}));

    let debugged = |verbosity: i64, debug: bool| {
        let leader = json!({"leaderElect": true});
        provider(
            "debugged",
            json!({"manager": {"verbosity": verbosity, "debug": debug, "leaderElection": leader}}),
        )
    };
    apply(&env, &debugged(2, true)).await.unwrap();
    let refused = apply(&env, &debugged(3, true)).await.unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("while debug is true"), "{}", refused.message);
    apply(&env, &debugged(3, false)).await.unwrap();

    // A status is written separately, and each condition by the manager of its type.
    let api: Api<Kind> = env.api();
    for (manager, type_) in [("one", "Ready"), ("two", "Paused")] {
        let condition = json!({
            "type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        let mut object = provider("debugged", Value::Null);
        object.as_object_mut().unwrap().remove("spec");
        object["status"] = json!({"conditions": [condition]});
        let parameters = PatchParams::apply(manager);
        api.patch_status("debugged", &parameters, &Patch::Apply(&object))
            .await
            .unwrap();
    }
    let read = api.get("debugged").await.unwrap();
    let types: Vec<&str> = read.conditions().iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "Paused"]);
    assert_eq!(read.declared().unwrap().manager.verbosity, Some(3));
    env.stop().await;
}

// OP-077: the Secret of the proposal's example has dots in place of values.
#[tokio::test]
async fn values_that_are_no_base64_are_refused() {
    let env = Env::builder().without_controllers().start().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "aws-variables", "namespace": NAMESPACE},
        "type": "Opaque", "data": {"AWS_REGION": "..."},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{NAMESPACE}/secrets"));
    let request = request
        .header("content-type", "application/json")
        .body(secret.to_string().into_bytes())
        .unwrap();
    let refused = answer(env.client().request::<Value>(request).await).unwrap_err();
    assert_eq!(refused.code, 400, "{}", refused.message);
    assert!(refused.message.contains("base64"), "{}", refused.message);
    env.stop().await;
}

#[tokio::test]
async fn both_apis_and_the_inventory_are_served_side_by_side() {
    let env = Env::builder().without_controllers().start().await;
    let meta = json!({"name": "aws"});
    let newer: operator::InfrastructureProvider =
        serde_json::from_value(json!({"metadata": meta, "spec": {"fetchConfig": {"oci": "r/aws"}}})).unwrap();
    let older: Kind = serde_json::from_value(json!({"metadata": meta, "spec": {"paused": true}})).unwrap();
    let installed: inventory::Provider = serde_json::from_value(json!({
        "metadata": {"name": "infrastructure-aws"},
        "providerName": "aws", "type": "InfrastructureProvider", "version": "v2.0.0",
    }))
    .unwrap();
    let parameters = PostParams::default();
    env.api().create(&parameters, &newer).await.unwrap();
    env.api().create(&parameters, &older).await.unwrap();
    let installed = env.api().create(&parameters, &installed).await.unwrap();
    assert_eq!(installed.provider_type(), Some(Kind::TYPE));
    let newer: operator::InfrastructureProvider = env.api().get("aws").await.unwrap();
    assert_eq!(newer.declared().unwrap().fetch, Fetch::Oci("r/aws".to_owned()));
    let older: Kind = env.api().get("aws").await.unwrap();
    assert!(older.declared().unwrap().paused);
    env.stop().await;
}
