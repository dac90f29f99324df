//! A kind of template in two versions with a conversion webhook: fields that were applied in one version are not lost in the other.

use serde_json::{Value, json};
use windlass_fake_providers::{HookServer, Say};

use crate::env::{DEFINITIONS, Env, documents};
use crate::templates::{deployment, infrastructure, name_version, touch};

const KIND: &str = "VSphereMachineTemplate";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// A field's name in the older and in the newer version.
const RENAMED: (&str, &str) = ("numCPUs", "cpus");

/// Converts between the versions: the field gets its other name.
fn convert(request: &Value) -> Say {
    let version = &request["desiredAPIVersion"];
    let to_newer = version.as_str().unwrap().ends_with("/v1beta2");
    let (from, to) = if to_newer { RENAMED } else { (RENAMED.1, RENAMED.0) };
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        object["apiVersion"] = version.clone();
        let spec = object.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
        if let Some(spec) = spec
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
    }
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    });
    Say::Raw(200, review.to_string())
}

/// The newer version has a default, so an object is never equal to its intent.
fn definitions(hooks: &HookServer) -> Vec<Value> {
    let mut all = documents(DEFINITIONS);
    let definition = all.iter_mut().find(|one| one["spec"]["names"]["kind"] == KIND).unwrap();
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = json!("v1beta2");
    newer["storage"] = json!(false);
    let fields = "/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties";
    let fields = newer.pointer_mut(fields).unwrap().as_object_mut().unwrap();
    let renamed = fields.remove(RENAMED.0).unwrap();
    fields.insert(RENAMED.1.to_owned(), renamed);
    fields.insert("folder".to_owned(), json!({"type": "string", "default": "vm"}));
    let older = definition["spec"]["versions"][0].clone();
    definition["spec"]["versions"] = json!([older, newer]);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": hooks.config("/convert"),
    }});
    definition["metadata"]["labels"] =
        json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"});
    all
}

/// Changes the class's template, and waits for the copy that replaces the one in use.
async fn replaced(env: &Env, change: Value) -> Value {
    let before = infrastructure(&deployment(env).await);
    let patch = json!({"spec": {"template": {"spec": change}}});
    env.merge(KIND, "windows-vsphere-template", patch).await;
    let name = env
        .wait("another machine template", async || {
            let after = infrastructure(&deployment(env).await);
            (after != before).then_some(after)
        })
        .await;
    let mut made = env.get(KIND, &name).await.unwrap();
    made["spec"]["template"]["spec"].take()
}

// TO-293, TO-375: fields that were applied in the older version, under their older names, are no removals when the class moves on to
// the newer one. A real removal is seen.
#[tokio::test]
async fn what_was_applied_in_an_older_version_is_not_missing_in_a_newer_one() {
    let hooks = HookServer::start(|_, request| convert(request)).await;
    let env = Env::start_with(definitions(&hooks)).await;
    env.apply_example().await;
    let name = infrastructure(&deployment(&env).await);
    let made = env.get(KIND, &name).await.unwrap();
    let managers = made["metadata"]["managedFields"].as_array().unwrap();
    let ours = managers.iter().find(|one| one["manager"] == "capi-topology").unwrap();
    assert_eq!(ours["apiVersion"], format!("{GROUP}/v1beta1"));
    let applied = &ours["fieldsV1"]["f:spec"]["f:template"]["f:spec"];
    assert!(applied.get("f:numCPUs").is_some(), "{ours:#}");

    name_version(&env, "v1beta2").await;
    for generation in 0..3 {
        touch(&env, generation).await;
    }
    assert_eq!(infrastructure(&deployment(&env).await), name, "no Machine is replaced");
    let kept = env.get(KIND, &name).await.unwrap();
    assert_eq!(kept["spec"]["template"]["spec"][RENAMED.0], 8);

    let made = replaced(&env, json!({"memoryMiB": null})).await;
    assert_eq!((&made[RENAMED.0], made.get("memoryMiB")), (&json!(8), None));
    let made = replaced(&env, json!({ RENAMED.0: 4 })).await;
    assert_eq!(made[RENAMED.0], 4);

    // And back to the older version.
    let name = infrastructure(&deployment(&env).await);
    name_version(&env, "v1beta1").await;
    for generation in 3..6 {
        touch(&env, generation).await;
    }
    assert_eq!(infrastructure(&deployment(&env).await), name);
    env.stop().await;
}
