//! Fields of ClusterClasses and topologies that have to be there, and fields that these kinds do not have.

use serde_json::{Value, json};

use crate::env::{Env, example, founding_cluster};

/// The class, or the Cluster, with a value at a place. Nothing is taken away.
fn with(cluster: bool, pointer: &str, value: Value) -> Value {
    let mut object = if cluster {
        founding_cluster()
    } else {
        example(|class| {
            let pool = class["spec"]["workers"]["machineDeployments"][0].clone();
            class["spec"]["workers"]["machinePools"] = json!([pool]);
            class["spec"]["workers"]["machinePools"][0]
                .as_object_mut()
                .unwrap()
                .remove("healthCheck");
            class["spec"]["variables"] =
                json!([{"name": "v", "required": false, "schema": {"openAPIV3Schema": {"type": "string"}}}]);
            class["spec"]["patches"] = json!([{"name": "p", "external": {"generatePatchesExtension": "e.x"}}]);
        })
        .pop()
        .unwrap()
    };
    if cluster {
        object["spec"]["topology"]["workers"]["machinePools"] = json!([{"class": "linux-worker", "name": "mp"}]);
        object["spec"]["topology"]["variables"] = json!([{"name": "v", "value": "x"}]);
    }
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(field).unwrap();
    } else {
        parent.insert(field.to_owned(), value);
    }
    object
}

// TO-003, TO-005, TO-006, TO-013, TO-014, TO-015, TO-044, TO-046, TO-055, TO-081, TO-122, TO-126
#[tokio::test]
async fn what_has_to_be_there_is_asked_for_by_name() {
    let env = Env::start().await;
    let worker = "/spec/workers/machineDeployments/0";
    let pool = "/spec/workers/machinePools/0";
    let entry = "/spec/topology/workers/machineDeployments/0";
    let class = [
        ("/spec/infrastructure".to_owned(), "spec.infrastructure: Required value"),
        ("/spec/controlPlane".to_owned(), "spec.controlPlane: Required value"),
        (
            "/spec/controlPlane/templateRef/name".to_owned(),
            "spec.controlPlane.templateRef.name: Required value",
        ),
        (
            format!("{worker}/class"),
            "spec.workers.machineDeployments[0].class: Required value",
        ),
        (
            format!("{worker}/bootstrap"),
            "spec.workers.machineDeployments[0].bootstrap: Required value",
        ),
        (
            format!("{worker}/infrastructure"),
            "spec.workers.machineDeployments[0].infrastructure: Required value",
        ),
        (
            format!("{pool}/class"),
            "spec.workers.machinePools[0].class: Required value",
        ),
        (
            format!("{pool}/bootstrap"),
            "spec.workers.machinePools[0].bootstrap: Required value",
        ),
        (
            format!("{pool}/infrastructure"),
            "spec.workers.machinePools[0].infrastructure: Required value",
        ),
        (
            "/spec/variables/0/name".to_owned(),
            "spec.variables[0].name: Required value",
        ),
        (
            "/spec/variables/0/required".to_owned(),
            "spec.variables[0].required: Required value",
        ),
        (
            "/spec/patches/0/name".to_owned(),
            "spec.patches[0].name: Required value",
        ),
    ];
    let cluster = [
        (
            "/spec/topology/classRef".to_owned(),
            "spec.topology.classRef.name: Required value",
        ),
        (
            "/spec/topology/version".to_owned(),
            "spec.topology.version: Required value",
        ),
        (
            format!("{entry}/class"),
            "spec.topology.workers.machineDeployments[0].class: Required value",
        ),
        (
            format!("{entry}/name"),
            "spec.topology.workers.machineDeployments[0].name: Required value",
        ),
    ];
    for (of_cluster, missing) in [(false, class.to_vec()), (true, cluster.to_vec())] {
        for (pointer, expected) in missing {
            let answer = env.refused(&with(of_cluster, &pointer, Value::Null)).await;
            assert!(answer.contains(expected), "{pointer}: {answer}");
        }
    }
    let answer = env
        .refused(&with(false, "/spec/patches/0/enabledIf", json!(false)))
        .await;
    assert!(
        answer.contains("spec.patches[0].enabledIf in body must be of type string: \"boolean\""),
        "{answer}"
    );
    for name in ["", "a.b", "builtin"] {
        let answer = env.refused(&with(false, "/spec/variables/0/name", json!(name))).await;
        assert!(answer.contains("spec.variables["), "{answer}");
    }
    env.stop().await;
}

// TO-018, TO-024, TO-041, TO-052, TO-060, TO-064, TO-072, TO-249, TO-354, TO-355: what v1beta2 has no more, and what never was.
#[tokio::test]
async fn fields_that_the_kinds_do_not_have_are_refused() {
    let env = Env::start().await;
    let checks = json!({"checks": {"nodeStartupTimeoutSeconds": 60}});
    let worker = "/spec/workers/machineDeployments/0";
    let entry = "/spec/topology/workers/machineDeployments/0";
    for (of_cluster, pointer, value) in [
        (false, format!("{worker}/rolloutStrategy"), json!({"type": "OnDelete"})),
        (false, format!("{worker}/strategy"), json!({"type": "OnDelete"})),
        (false, format!("{worker}/template"), json!({"metadata": {}})),
        (
            false,
            format!("{worker}/machineHealthCheck"),
            json!({"maxUnhealthy": 1}),
        ),
        (false, format!("{worker}/namingStrategy"), json!({"template": "x"})),
        (false, format!("{worker}/nodeDrainTimeout"), json!("10s")),
        (
            false,
            "/spec/workers/machinePools/0/healthCheck".to_owned(),
            checks.clone(),
        ),
        (false, "/spec/workers/machinePools/0/rollout".to_owned(), json!({})),
        (false, "/spec/infrastructure/ref".to_owned(), json!({"name": "x"})),
        (
            false,
            "/spec/infrastructure/templateRef/namespace".to_owned(),
            json!("bar"),
        ),
        (false, "/spec/variables/0/metadata".to_owned(), json!({"labels": {}})),
        (
            false,
            "/spec/variables/0/schema/openAPIV3Schema/$ref".to_owned(),
            json!("#/definitions/x"),
        ),
        (
            false,
            "/spec/patches/0/external/generateExtension".to_owned(),
            json!("e.x"),
        ),
        (true, "/spec/topology/class".to_owned(), json!("mixed")),
        (
            true,
            "/spec/topology/rolloutAfter".to_owned(),
            json!("2030-01-01T00:00:00Z"),
        ),
        (true, "/spec/managed".to_owned(), json!({"class": "mixed"})),
        (true, format!("{entry}/strategy"), json!({"type": "OnDelete"})),
        (true, format!("{entry}/machineHealthCheck"), json!({"enable": true})),
        (
            true,
            "/spec/topology/workers/machinePools/0/healthCheck".to_owned(),
            checks,
        ),
        (
            true,
            "/spec/topology/variables/0/definitionFrom".to_owned(),
            json!("inline"),
        ),
    ] {
        let path = pointer.trim_start_matches('/').replace("/0", "[0]").replace('/', ".");
        let answer = env.refused(&with(of_cluster, &pointer, value)).await;
        assert!(answer.contains(&format!("unknown field \"{path}")), "{path}: {answer}");
    }
    env.stop().await;
}

/// What a template's schema has that the object's has not, and what the object asks for that the template does not.
fn compare(path: &str, template: &Value, object: &Value, found: &mut Vec<String>) {
    let names = |schema: &Value| -> Vec<String> {
        let names = schema["required"].as_array().into_iter().flatten();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let asked = names(template);
    for name in names(object) {
        if !asked.contains(&name) {
            found.push(format!("{path}.{name} is required in the object"));
        }
    }
    for (name, field) in template["properties"].as_object().into_iter().flatten() {
        let of_object = &object["properties"][name];
        let path = format!("{path}.{name}");
        for part in [
            "type",
            "default",
            "minimum",
            "maximum",
            "pattern",
            "enum",
            "minLength",
            "maxLength",
        ] {
            if field[part] != of_object[part] {
                found.push(format!("{path} has another {part}"));
            }
        }
        compare(&path, field, of_object, found);
        compare(&path, &field["items"], &of_object["items"], found);
    }
}

// TO-327, TO-332, TO-333, TO-335, TO-336, TO-337, TO-338: the kinds as the API server has them. Version, replicas and the template of
// the Machines come from the topology.
#[tokio::test]
async fn templates_have_fields_of_their_objects_with_the_same_limits_and_defaults() {
    let env = Env::start().await;
    let definitions = env.list("CustomResourceDefinition").await;
    let spec = |kind: &str| {
        let definition = definitions
            .iter()
            .find(|one| one["spec"]["names"]["kind"] == kind)
            .unwrap();
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let stored = versions.iter().find(|version| version["storage"] == true).unwrap();
        stored["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    };
    let mut found = Vec::new();
    for kind in [
        "DevCluster",
        "DevMachine",
        "DevMachinePool",
        "KubeadmConfig",
        "KubeadmControlPlane",
    ] {
        let template = &spec(&format!("{kind}Template"))["properties"]["template"]["properties"]["spec"];
        assert!(template["properties"].is_object(), "{kind}");
        compare(kind, template, &spec(kind), &mut found);
    }
    let of_topology = [
        "machineTemplate",
        "version",
        "machineTemplate.spec",
        "machineTemplate.spec.infrastructureRef",
    ];
    assert_eq!(
        found,
        of_topology.map(|field| format!("KubeadmControlPlane.{field} is required in the object"))
    );
    let fields = &spec("KubeadmControlPlaneTemplate")["properties"]["template"]["properties"]["spec"]["properties"];
    for field in ["replicas", "version"] {
        assert_eq!(fields.get(field), None);
    }
    env.stop().await;
}
