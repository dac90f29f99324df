//! Patches of a class with variables and builtin variables, and what they make of each template.

use serde_json::{Value, json};

use crate::env::{DEFINITIONS, Env, assert_has, cluster, condition, documents, example, name};

const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The vSphere kinds with a field that holds anything.
fn definitions() -> Vec<Value> {
    let mut all = documents(DEFINITIONS);
    let of_object = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let of_template = format!("{of_object}/template/properties/spec/properties");
    for definition in &mut all {
        let is_template = definition.pointer(&of_template).is_some();
        let fields = definition.pointer_mut(if is_template { &of_template } else { of_object });
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        fields.unwrap()["free"] = free;
    }
    all
}

fn add(field: &str, part: &str, value: Value) -> Value {
    let mut patch = json!({"op": "add", "path": format!("/spec/template/spec/{field}")});
    patch[part] = value;
    patch
}

fn literal(field: &str, value: Value) -> Value {
    add(field, "value", value)
}

fn variable(field: &str, name: &str) -> Value {
    add(field, "valueFrom", json!({"variable": name}))
}

fn template(field: &str, text: &str) -> Value {
    add(field, "valueFrom", json!({"template": text}))
}

/// A patch with one definition.
fn patch(name: &str, kind: &str, place: Value, operations: Vec<Value>) -> Value {
    let api = match kind {
        "KubeadmControlPlaneTemplate" => "controlplane.cluster.x-k8s.io/v1beta2",
        "KubeadmConfigTemplate" => "bootstrap.cluster.x-k8s.io/v1beta2",
        _ => INFRASTRUCTURE,
    };
    let mut definition = json!({"selector": {"apiVersion": api, "kind": kind}});
    definition["selector"]["matchResources"] = place;
    definition["jsonPatches"] = operations.into();
    json!({"name": name, "definitions": [definition]})
}

fn infrastructure(name: &str, operations: Vec<Value>) -> Value {
    patch(
        name,
        "VSphereClusterTemplate",
        json!({"infrastructureCluster": true}),
        operations,
    )
}

fn workers(name: &str, kind: &str, class: &str, operations: Vec<Value>) -> Value {
    patch(
        name,
        kind,
        json!({"machineDeploymentClass": {"names": [class]}}),
        operations,
    )
}

fn enabled_if(mut patch: Value, text: &str) -> Value {
    patch["enabledIf"] = text.into();
    patch
}

fn variables() -> Value {
    let one =
        |name: &str, schema: Value| json!({"name": name, "required": false, "schema": {"openAPIV3Schema": schema}});
    json!([
        one("text", json!({"type": "string"})),
        one("five", json!({"type": "integer"})),
        one("million", json!({"type": "integer"})),
        one("flag", json!({"type": "boolean"})),
        one("tag", json!({"type": "string"})),
        one("list", json!({"type": "array", "items": {"type": "string"}})),
        one("size", json!({"type": "string", "default": "middle"})),
        one("optional", json!({"type": "string"})),
        one("unused", json!({"type": "string", "default": "{{ .text }}"})),
        one(
            "proxy",
            json!({"type": "object", "properties": {
            "url": {"type": "string"}, "port": {"type": "integer", "default": 80}}})
        ),
        one(
            "images",
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        ),
    ])
}

/// Patches of the infrastructure cluster.
fn of_infrastructure() -> Vec<Value> {
    vec![
        infrastructure(
            "values",
            vec![
                literal("free", json!({})),
                variable("free/proxy", "proxy"),
                variable("free/url", "proxy.url"),
                variable("free/port", "proxy.port"),
                variable("free/second", "list[1]"),
                template("free/upper", "{{ .text | upper }}"),
                template("free/five", "{{ .five }}"),
                template("free/million", "\"{{ .million }}\""),
                template("free/missing", "a{{ .optional }}"),
                template("free/tag", "{{ .tag }}"),
                template("free/quoted", "\"{{ .tag }}\""),
                template("free/build", "1.0-0"),
                template("free/flag", "{{ .flag }}"),
                template("free/object", "of: {{ .text }}\nlist: [1, two]"),
                literal("free/a~1b", json!("slash")),
                literal("free/c~0d", json!("tilde")),
                literal("free/items", json!(["b"])),
                literal("free/items/-", json!("c")),
                literal("free/items/0", json!("a")),
                literal("free/items/-", json!(["nested"])),
                literal("free/order", json!(1)),
                literal("free/gone", json!(1)),
                json!({"op": "remove", "path": "/spec/template/spec/free/gone"}),
            ],
        ),
        infrastructure(
            "later",
            vec![
                json!({"op": "replace", "path": "/spec/template/spec/free/order", "value": 2}),
                json!({"op": "add", "path": "/spec/template/metadata", "value": {"labels": {"patched": "yes"}}}),
            ],
        ),
        enabled_if(infrastructure("never", vec![literal("free/never", json!(1))]), "false"),
        enabled_if(
            infrastructure("optional", vec![variable("free/optional", "optional")]),
            "{{ if .optional }}true{{ end }}",
        ),
        enabled_if(
            infrastructure(
                "builtins",
                vec![
                    variable("free/cluster", "builtin.cluster"),
                    template(
                        "free/name",
                        "{{ .builtin.cluster.name }}/{{ .builtin.cluster.namespace }}",
                    ),
                    template(
                        "free/parts",
                        "[{{ hasKey .builtin \"controlPlane\" }}, {{ hasKey .builtin \"machineDeployment\" }}]",
                    ),
                ],
            ),
            "{{ eq .builtin.cluster.name \"foo\" }}",
        ),
    ]
}

/// Patches of control plane and workers.
fn of_machines() -> Vec<Value> {
    let place = json!({"controlPlane": true});
    let bootstrap = |field: &str| format!("[\"{{{{ .builtin.machineDeployment.{field} }}}}\"]");
    vec![
        patch(
            "control-plane",
            "KubeadmControlPlaneTemplate",
            place.clone(),
            vec![
                template(
                    "kubeadmConfigSpec/preKubeadmCommands",
                    "[\"{{ .builtin.controlPlane.name }} {{ .builtin.controlPlane.version }} {{ .builtin.controlPlane.replicas }}\", \"{{ .size }}\"]",
                ),
                literal("replicas", json!(5)),
                literal("version", json!("v1.0.0")),
            ],
        ),
        patch(
            "control-plane-machines",
            "VSphereMachineTemplate",
            place,
            vec![
                literal("free", json!({})),
                variable("free/controlPlane", "builtin.controlPlane"),
                variable("free/size", "size"),
                template(
                    "free/parts",
                    "[{{ hasKey .builtin \"cluster\" }}, {{ hasKey .builtin \"machineDeployment\" }}]",
                ),
            ],
        ),
        workers(
            "linux",
            "VSphereMachineTemplate",
            "linux-*",
            vec![
                literal("free", json!({})),
                variable("free/machineDeployment", "builtin.machineDeployment"),
                variable("free/cluster", "builtin.cluster.name"),
                variable("free/size", "size"),
                template("free/image", "{{ index .images .builtin.machineDeployment.version }}"),
                template(
                    "free/parts",
                    "[{{ hasKey .builtin \"cluster\" }}, {{ hasKey .builtin \"controlPlane\" }}]",
                ),
            ],
        ),
        enabled_if(
            workers(
                "linux-optional",
                "VSphereMachineTemplate",
                "*-worker",
                vec![literal("free", json!({})), variable("free/optional", "optional")],
            ),
            "{{ if .optional }}true{{ end }}",
        ),
        workers(
            "bootstrap",
            "KubeadmConfigTemplate",
            "linux-worker",
            vec![
                template("preKubeadmCommands", &bootstrap("bootstrap.configRef.name")),
                template("postKubeadmCommands", &bootstrap("topologyName")),
            ],
        ),
    ]
}

fn patched_cluster() -> Value {
    let mut cluster = cluster();
    let topology = &mut cluster["spec"]["topology"];
    topology["variables"] = json!([
        {"name": "text", "value": "abc"}, {"name": "five", "value": 5}, {"name": "million", "value": 12_345_678},
        {"name": "flag", "value": true}, {"name": "tag", "value": "1.10"}, {"name": "list", "value": ["x", "y"]},
        {"name": "proxy", "value": {"url": "http://p"}},
        {"name": "images", "value": {"v1.31.1": "old", "v1.32.0": "new"}},
    ]);
    topology["controlPlane"]["variables"] = json!({"overrides": [{"name": "size", "value": "huge"}]});
    let workers = &mut topology["workers"]["machineDeployments"];
    workers[0]["variables"] =
        json!({"overrides": [{"name": "size", "value": "big"}, {"name": "proxy", "value": {"url": "http://q"}}]});
    workers[1]["variables"] = json!({"overrides": [{"name": "optional", "value": "only here"}]});
    cluster
}

async fn machines_of(env: &Env, entry: &str) -> Value {
    let mut all = env.of_entry("VSphereMachineTemplate", entry).await;
    assert_eq!(all.len(), 1, "{entry}");
    all.remove(0)["spec"]["template"]["spec"].take()
}

async fn message(env: &Env, part: &str) {
    env.wait(&format!("a message with {part:?}"), async || {
        let cluster = env.get("Cluster", "foo").await?;
        let found = condition(&cluster, "TopologyReconciled")?;
        (found["status"] == "False" && found["message"].as_str()?.contains(part)).then_some(())
    })
    .await;
}

// TO-029, TO-030, TO-062, TO-063, TO-065, TO-078, TO-104, TO-107, TO-108, TO-117, TO-118, TO-119, TO-120, TO-121, TO-128, TO-131, TO-135, TO-140,
// TO-144, TO-145, TO-146, TO-147, TO-149, TO-150, TO-151, TO-152, TO-155, TO-156, TO-157, TO-158, TO-161, TO-162, TO-172:
// the large integer is printed in full (docs/differences.md).
#[tokio::test]
async fn each_template_is_patched_with_what_its_place_sees() {
    let env = Env::start_with(definitions()).await;
    for object in example(|class| {
        class["spec"]["variables"] = variables();
        class["spec"]["patches"] = [of_infrastructure(), of_machines()].concat().into();
    }) {
        env.apply(object).await;
    }
    env.apply(patched_cluster()).await;
    let cluster = env.reconciled("ReconcileSucceeded").await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    assert_eq!(infrastructure["metadata"]["labels"]["patched"], "yes");
    let found = &infrastructure["spec"]["free"];
    assert_has(
        found,
        &json!({
            "proxy": {"url": "http://p", "port": 80}, "url": "http://p", "port": 80, "second": "y", "upper": "ABC", "five": 5,
            "million": "12345678", "missing": "a<no value>", "tag": 1.1, "quoted": "1.10", "build": "1.0-0", "flag": true,
            "object": {"of": "abc", "list": [1, "two"]}, "a/b": "slash", "c~d": "tilde", "items": ["a", "b", "c", ["nested"]],
            "order": 2, "gone": null, "never": null, "optional": null, "name": "foo/bar", "parts": [false, false],
            "cluster": {
                "name": "foo", "namespace": "bar", "uid": cluster["metadata"]["uid"], "network": null,
                "metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "foo"}},
                "topology": {"version": "v1.31.1", "class": "mixed", "classNamespace": "bar", "classRef": {"name": "mixed", "namespace": "bar"}},
            },
        }),
    );
    let control_plane = env.generated("KubeadmControlPlane").await.remove(0);
    assert_has(
        &control_plane["spec"],
        &json!({
            "replicas": 3, "version": "v1.31.1",
            "kubeadmConfigSpec": {"preKubeadmCommands": [format!("{} v1.31.1 3", name(&control_plane)), "huge"]},
        }),
    );
    let reference = control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"]
        .as_str()
        .unwrap();
    let machines = env.get("VSphereMachineTemplate", reference).await.unwrap();
    assert_has(
        &machines["spec"]["template"]["spec"]["free"],
        &json!({
            "size": "huge", "parts": [true, false], "machineDeployment": null,
            "controlPlane": {"name": name(&control_plane), "version": "v1.31.1", "replicas": 3,
                "machineTemplate": {"infrastructureRef": {"name": reference}}},
        }),
    );
    for (entry, size, optional) in [(BIG, "big", Value::Null), (SMALL, "middle", json!("only here"))] {
        let deployment = env.deployment(entry).await;
        let spec = &deployment["spec"]["template"]["spec"];
        let (bootstrap, infrastructure) = (
            &spec["bootstrap"]["configRef"]["name"],
            &spec["infrastructureRef"]["name"],
        );
        let free = &machines_of(&env, entry).await["free"];
        assert_has(free, &json!({"optional": optional, "controlPlane": null}));
        if entry == BIG {
            assert_has(
                free,
                &json!({
                    "size": size, "cluster": "foo", "parts": [true, false], "image": "old",
                    "machineDeployment": {
                        "version": "v1.31.1", "class": "linux-worker", "name": name(&deployment), "topologyName": entry,
                        "replicas": deployment["spec"]["replicas"], "bootstrap": {"configRef": {"name": bootstrap}},
                        "infrastructureRef": {"name": infrastructure}, "metadata": {"labels": {"custom-label": "production"}},
                    },
                }),
            );
        }
        let bootstrap = env
            .get("KubeadmConfigTemplate", bootstrap.as_str().unwrap())
            .await
            .unwrap();
        assert_has(
            &bootstrap["spec"]["template"]["spec"],
            &json!({"preKubeadmCommands": [name(&bootstrap)], "postKubeadmCommands": [entry]}),
        );
    }
    assert_eq!(machines_of(&env, WINDOWS).await.get("free"), None);
    // The templates of the class are never written.
    for (kind, name) in [
        ("VSphereClusterTemplate", "vsphere-prod-cluster-template"),
        ("VSphereMachineTemplate", "linux-vsphere-template"),
    ] {
        let original = env.get(kind, name).await.unwrap();
        assert_eq!(original["spec"]["template"]["spec"].get("free"), None);
    }
    // A literal that looks like a template stays one.
    let unused = cluster["spec"]["topology"]["variables"].as_array().unwrap();
    assert!(
        unused.contains(&json!({"name": "unused", "value": "{{ .text }}"})),
        "{unused:?}"
    );
    env.stop().await;
}

// TO-153, TO-154, TO-216: the network of a Cluster, by its blocks.
#[tokio::test]
async fn the_network_is_a_builtin_variable() {
    let env = Env::start_with(definitions()).await;
    for object in example(|class| {
        class["spec"]["patches"] = json!([enabled_if(
            infrastructure(
                "network",
                vec![
                    literal("free", json!({})),
                    variable("free/network", "builtin.cluster.network"),
                    template(
                        "free/parts",
                        "[{{ hasKey .builtin.cluster.network \"pods\" }}, {{ hasKey .builtin.cluster.network \"services\" }}]"
                    ),
                ]
            ),
            "{{ hasKey .builtin.cluster \"network\" }}",
        )]);
    }) {
        env.apply(object).await;
    }
    env.apply(cluster()).await;
    env.reconciled("ReconcileSucceeded").await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    assert_eq!(infrastructure["spec"].get("free"), None);
    let (four, six) = ("10.0.0.0/16", "fd00::/108");
    for (pods, services, family) in [
        (vec![], vec![], "IPv4"),
        (vec![four], vec![], "IPv4"),
        (vec![four], vec![four], "IPv4"),
        (vec![six], vec![six], "IPv6"),
        (vec![four, six], vec![four], "DualStack"),
        (vec![four], vec![six], "Invalid"),
        (vec![four, four], vec![four], "Invalid"),
    ] {
        let mut network = json!({"serviceDomain": "cluster.local", "pods": null, "services": null});
        for (part, blocks) in [("pods", &pods), ("services", &services)] {
            if !blocks.is_empty() {
                network[part] = json!({"cidrBlocks": blocks});
            }
        }
        env.merge("Cluster", "foo", json!({"spec": {"clusterNetwork": network}}))
            .await;
        let list = |blocks: &[&str]| if blocks.is_empty() { Value::Null } else { json!(blocks) };
        let expected = json!({"serviceDomain": "cluster.local", "ipFamily": family, "pods": list(&pods), "services": list(&services)});
        let parts = [!pods.is_empty(), !services.is_empty()];
        env.becomes(
            "VSphereCluster",
            name(&infrastructure),
            json!({"spec": {"free": {"network": expected, "parts": parts}}}),
        )
        .await;
    }
    env.stop().await;
}

// TO-124, TO-143, TO-147, TO-148, TO-173, TO-318: what a class gets past admission and cannot be done stops everything that would be
// written, and is named.
#[tokio::test]
async fn a_patch_that_cannot_be_applied_writes_nothing() {
    let env = Env::start_with(definitions()).await;
    for object in example(|class| class["spec"]["variables"] = variables()) {
        env.apply(object).await;
    }
    env.apply(cluster()).await;
    env.reconciled("ReconcileSucceeded").await;
    let before = env.generated("VSphereCluster").await.remove(0);
    // A change that comes along and must not be made.
    let beside = infrastructure("beside", vec![literal("thumbprint", json!("AA"))]);
    for (operation, part) in [
        (
            json!({"op": "replace", "path": "/spec/template/spec/free", "value": 1}),
            "cannot change /spec/template/spec/free",
        ),
        (
            json!({"op": "remove", "path": "/spec/template/spec/free"}),
            "cannot change /spec/template/spec/free",
        ),
        (literal("free/a", json!(1)), "cannot change /spec/template/spec/free/a"),
        (literal("free/-", json!(1)), "cannot change /spec/template/spec/free/-"),
        (variable("free", "optional"), "variable \"optional\" has no value"),
        (variable("free", "list[7]"), "variable \"list\" has no value"),
        (template("free", "a: b: c"), "gives no valid YAML"),
        (literal("other", json!(1)), "spec.other: field not declared in schema"),
    ] {
        let text = operation.to_string();
        let patches = json!([beside, infrastructure("bad", vec![operation])]);
        env.merge("ClusterClass", "mixed", json!({"spec": {"patches": patches}}))
            .await;
        message(&env, part).await;
        let now = env.generated("VSphereCluster").await.remove(0);
        assert_eq!(
            now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
            "{text}"
        );
    }
    // With `add`, the field need not be there before.
    let patches = json!([beside, infrastructure("good", vec![literal("free", json!({"a": 1}))])]);
    env.merge("ClusterClass", "mixed", json!({"spec": {"patches": patches}}))
        .await;
    env.becomes(
        "VSphereCluster",
        name(&before),
        json!({"spec": {"free": {"a": 1}, "thumbprint": "AA"}}),
    )
    .await;
    env.stop().await;
}
