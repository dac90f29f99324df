//! Patches, checks and variables of extensions, over HTTPS, through the running controllers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment};
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_meta::ObjectKey;
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::topology::{
    DiscoverVariables, DiscoverVariablesResponse, GeneratePatches, GeneratePatchesRequest, GeneratePatchesRequestItem,
    GeneratePatchesResponse, GeneratePatchesResponseItem, JSON_MERGE_PATCH, JSON_PATCH, ValidateTopology,
    ValidateTopologyRequest, ValidateTopologyResponse,
};
use windlass_runtime_extension::{Extension, FailurePolicy, Handler};
use windlass_testkit::faults::Faults;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

use crate::extensions::{Served, config, is_discovered, says};

/// The behavior of the extension, and what it was asked last.
#[derive(Default)]
struct Behavior {
    /// The names that certificates of API servers get, added to the value of the variable.
    names: Vec<String>,
    /// Why no patches are given.
    fails: Option<String>,
    /// Why topologies are not good.
    refuses: Option<String>,
    /// How many times the Machines of workers got another value, if they get another one each time.
    drifts: Option<u32>,
    /// The type of the variable that it defines.
    variable: &'static str,
    last: Option<GeneratePatchesRequest>,
    checked: Option<ValidateTopologyRequest>,
}

type Shared = Arc<Mutex<Behavior>>;

const CONTROL_PLANE: &str = "spec.controlPlaneRef";

fn generate(behavior: &mut Behavior, request: GeneratePatchesRequest) -> GeneratePatchesResponse {
    if let Some(why) = &behavior.fails {
        return GeneratePatchesResponse::failure(why.clone());
    }
    let mut response = GeneratePatchesResponse::success();
    let value = |name: &str| {
        let found = request.variables.iter().find(|variable| variable.name == name);
        found.map(|variable| variable.value.clone())
    };
    let mut names: Vec<Value> = behavior.names.iter().map(|name| json!(name)).collect();
    names.extend(value("zone"));
    let of_control_plane = request
        .items
        .iter()
        .find(|item| item.holder_reference.field_path == CONTROL_PLANE);
    let uid = of_control_plane.unwrap().uid.clone();
    let mut give = |form: &str, patch: Value| {
        response.items.push(GeneratePatchesResponseItem {
            uid: uid.clone(),
            patch_type: form.to_owned(),
            patch: k8s_openapi::ByteString(patch.to_string().into_bytes()),
        });
    };
    let path = "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs";
    give(JSON_PATCH, json!([{"op": "replace", "path": path, "value": names}]));
    give(
        JSON_MERGE_PATCH,
        json!({"spec": {"template": {"metadata": {"labels": {"patched": "yes"}}}}}),
    );
    if let Some(number) = &mut behavior.drifts {
        *number += 1;
        let machines = |item: &&GeneratePatchesRequestItem| {
            item.holder_reference.kind == "MachineDeployment"
                && item.holder_reference.field_path.ends_with("infrastructureRef")
        };
        let duration = format!("{number}ms");
        let provisioning = json!({"vm": {"provisioning": {"startupDuration": duration}}});
        let patch = json!({"spec": {"template": {"spec": {"backend": {"inMemory": provisioning}}}}});
        response.items.push(GeneratePatchesResponseItem {
            uid: request.items.iter().find(machines).unwrap().uid.clone(),
            patch_type: JSON_MERGE_PATCH.to_owned(),
            patch: k8s_openapi::ByteString(patch.to_string().into_bytes()),
        });
    }
    behavior.last = Some(request);
    response
}

fn extension(shared: &Shared) -> Extension {
    let (generator, checker, definer) = (shared.clone(), shared.clone(), shared.clone());
    Extension::new()
        .handle(GeneratePatches, "patch", move |request| {
            let response = generate(&mut generator.lock().unwrap(), request);
            async { response }
        })
        .unwrap()
        .handle(ValidateTopology, "check", move |request| {
            let mut behavior = checker.lock().unwrap();
            let refused = behavior.refuses.clone();
            behavior.checked = Some(request);
            async { refused.map_or_else(ValidateTopologyResponse::success, ValidateTopologyResponse::failure) }
        })
        .unwrap()
        .handle(DiscoverVariables, "define", move |request| {
            assert_eq!(request.settings["of"], "class");
            let mut response = DiscoverVariablesResponse::success();
            let schema =
                json!({"openAPIV3Schema": {"type": definer.lock().unwrap().variable, "maxLength": 5, "default": "z0"}});
            let variable = json!({"name": "zone", "required": false, "schema": schema});
            response.variables = vec![serde_json::from_value(variable).unwrap()];
            async { response }
        })
        .unwrap()
}

fn patch() -> Value {
    json!({"name": "outside", "external": {
        "generatePatchesExtension": "patch.ext", "validateTopologyExtension": "check.ext",
        "discoverVariablesExtension": "define.ext", "settings": {"of": "class"},
    }})
}

async fn site(shared: &Shared) -> (Env, Served) {
    shared.lock().unwrap().variable = "string";
    let env = Env::start().await;
    let served = Served::start(extension(shared)).await;
    env.apply(&served.config("ext")).await;
    config(&env, "discovered", is_discovered).await;
    env.apply_yaml(CLASS).await;
    env.merge("ClusterClass", "quick-start", &json!({"spec": {"patches": [patch()]}}))
        .await;
    (env, served)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

/// The certificate names of the only control plane.
async fn names(env: &Env, what: &str, expect: &[&str]) -> KubeadmControlPlane {
    let of = |plane: &KubeadmControlPlane| {
        let plane = serde_json::to_value(plane).unwrap();
        plane.pointer("/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs") == Some(&json!(expect))
    };
    let all = env
        .wait_all::<KubeadmControlPlane>(what, |all| all.len() == 1 && of(&all[0]))
        .await;
    all.into_iter().next().unwrap()
}

/// Waits until the condition VariablesReady of the class has this status, and a message with this text.
async fn class_says(env: &Env, status: &str, text: &str) -> ClusterClass {
    let is_so = |class: &ClusterClass| {
        let mut all = class.status.iter().flat_map(|status| &status.conditions);
        let ready = all.find(|one| one.type_ == "VariablesReady");
        let observed = class.status.as_ref().and_then(|status| status.observed_generation);
        ready.is_some_and(|one| one.status == status && one.message.contains(text))
            && (status != "True" || observed == class.metadata.generation)
    };
    env.wait_for::<ClusterClass>(&key("quick-start"), &format!("VariablesReady {status}: {text}"), is_so)
        .await
}

// TO-109, TO-164, TO-166, TO-167: an extension defines a variable, patches the templates and checks the result.
#[tokio::test]
async fn an_extension_patches_templates_and_checks_them() {
    let shared = Shared::default();
    shared.lock().unwrap().names = vec!["a.example".to_owned()];
    let (env, _served) = site(&shared).await;
    let class = class_says(&env, "True", "").await;
    let variables = serde_json::to_value(&class.status.unwrap().variables).unwrap();
    let zone = variables
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "zone")
        .unwrap();
    assert_eq!(
        (&zone["definitions"][0]["from"], &zone["definitionsConflict"]),
        (&json!("outside"), &json!(false))
    );

    // The default of the extension's variable is stored, and its schema checked.
    let cluster = ClusterOf::new("patched", 1, 1);
    let mut wrong = cluster.object();
    wrong["spec"]["topology"]["variables"] = json!([{"name": "zone", "value": "too long"}]);
    let refused = env.try_apply(&wrong).await.unwrap_err().to_string();
    assert!(refused.contains("Too long"), "{refused}");
    cluster.apply(&env).await;
    let running = cluster.wait_running(&env).await;
    let stored = serde_json::to_value(&running.spec.topology.unwrap().variables).unwrap();
    assert!(
        stored
            .as_array()
            .unwrap()
            .contains(&json!({"name": "zone", "value": "z0"})),
        "{stored}"
    );
    let plane = names(&env, "patched", &["a.example", "z0"]).await;
    assert_eq!(plane.metadata.labels.unwrap()["patched"], "yes");

    // What the extension was asked.
    let behavior = std::mem::take(&mut *shared.lock().unwrap());
    let (asked, checked) = (behavior.last.unwrap(), behavior.checked.unwrap());
    assert_eq!(
        (&asked.settings["of"], &checked.settings["of"]),
        (&"class".to_owned(), &"class".to_owned())
    );
    let names_of: Vec<_> = asked.variables.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names_of, ["builtin", "zone"], "variables of the class are not for it");
    let fields: Vec<_> = asked
        .items
        .iter()
        .map(|item| item.holder_reference.field_path.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.infrastructureRef",
            CONTROL_PLANE,
            "spec.machineTemplate.spec.infrastructureRef",
            "spec.template.spec.bootstrap.configRef",
            "spec.template.spec.infrastructureRef",
        ]
    );
    let plane = &checked.items[1].object;
    assert_eq!(
        plane.pointer("/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs"),
        Some(&json!(["a.example", "z0"])),
        "the check sees what was patched"
    );
    env.stop().await;
}

// TO-167: nothing is written while an extension fails or refuses, the condition has its words, and other Clusters go on.
#[tokio::test]
async fn an_extension_that_fails_or_refuses_is_named_and_changes_nothing() {
    let shared = Shared::default();
    let (env, served) = site(&shared).await;
    class_says(&env, "True", "").await;
    let cluster = ClusterOf::new("kept", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let plane = names(&env, "made", &["z0"]).await;
    let machines = env.list::<Machine>().await;

    let behave = |change: fn(&mut Behavior)| change(&mut shared.lock().unwrap());
    let touch = async |value: &str| {
        let patch = json!({"metadata": {"annotations": {"example.com/touched": value}}});
        env.merge("Cluster", "kept", &patch).await;
    };
    behave(|all| {
        all.names = vec!["b.example".to_owned()];
        all.refuses = Some("b.example is taken".to_owned());
    });
    touch("1").await;
    let refused = "spec.patches[0].external.validateTopologyExtension: patch \"outside\" has found the topology wrong, or could not check it";
    says(&env, &key("kept"), "ReconcileFailed", refused).await;
    says(&env, &key("kept"), "ReconcileFailed", "b.example is taken").await;
    behave(|all| all.fails = Some("no images".to_owned()));
    touch("2").await;
    let failed = "got failure response with message: no images";
    says(&env, &key("kept"), "ReconcileFailed", failed).await;
    // The extension is not for this namespace, and then it is again.
    let selector = |labels: Value| json!({"spec": {"namespaceSelector": {"matchLabels": labels}}});
    env.merge("ExtensionConfig", "ext", &selector(json!({"team": "other"})))
        .await;
    let elsewhere = format!("namespaceSelector did not match namespace {NAMESPACE}");
    says(&env, &key("kept"), "ReconcileFailed", &elsewhere).await;
    env.merge("ExtensionConfig", "ext", &selector(json!({"team": null})))
        .await;
    says(&env, &key("kept"), "ReconcileFailed", failed).await;
    // A Cluster of another class does not wait for it.
    let mut other: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    other.truncate(1);
    other[0]["metadata"]["name"] = json!("other");
    env.apply(&other[0]).await;
    let mut cluster_of_other = ClusterOf::new("other", 1, 0).object();
    cluster_of_other["spec"]["topology"]["classRef"]["name"] = json!("other");
    env.apply(&cluster_of_other).await;
    says(&env, &key("other"), "ReconcileSucceeded", "").await;

    drop(served);
    touch("3").await;
    says(
        &env,
        &key("kept"),
        "ReconcileFailed",
        "was not generated: failed to call extension handler \"patch.ext\": http call failed: Post",
    )
    .await;
    let same = env.list::<KubeadmControlPlane>().await;
    let same = same
        .iter()
        .find(|one| one.metadata.name == plane.metadata.name)
        .unwrap();
    assert_eq!(same.metadata.generation, plane.metadata.generation);
    let kept = env.list::<Machine>().await;
    let is_kept = |machine: &Machine| kept.iter().any(|one| one.metadata.uid == machine.metadata.uid);
    assert!(machines.iter().all(is_kept));

    // It comes back, at another address, and no client touches the Cluster.
    let served = Served::start(extension(&shared)).await;
    behave(|all| (all.fails, all.refuses) = (None, None));
    env.apply(&served.config("ext")).await;
    says(&env, &key("kept"), "ReconcileSucceeded", "").await;
    let all = env.list::<KubeadmControlPlane>().await;
    let sans = all
        .iter()
        .filter(|one| one.metadata.name == plane.metadata.name)
        .map(|one| {
            serde_json::to_value(one)
                .unwrap()
                .pointer("/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs")
                .cloned()
        });
    assert_eq!(sans.collect::<Vec<_>>(), [Some(json!(["b.example", "z0"]))]);
    env.stop().await;
}

// An extension that answers the same question differently each time would replace Machines without end.
#[tokio::test]
async fn an_extension_that_never_gives_the_same_twice_is_stopped_until_it_is_mended() {
    let shared = Shared::default();
    shared.lock().unwrap().drifts = Some(0);
    let (env, _served) = site(&shared).await;
    class_says(&env, "True", "").await;
    let cluster = ClusterOf::new("drifting", 1, 1);
    cluster.apply(&env).await;
    let message = "although the template was replaced three times within an hour for the same content";
    says(&env, &key("drifting"), "ReconcileFailed", message).await;
    let template = async || {
        let sets = env.list::<MachineDeployment>().await;
        let set = serde_json::to_value(&sets[0]).unwrap();
        set["spec"]["template"]["spec"]["infrastructureRef"]["name"].clone()
    };
    let kept = template().await;
    // It is asked again, has other answers, and no Machine is replaced.
    for round in 1..=3 {
        let asked = shared.lock().unwrap().drifts;
        let gates = json!([{"conditionType": format!("Gate{round}")}]);
        env.merge("Cluster", "drifting", &json!({"spec": {"availabilityGates": gates}}))
            .await;
        env.wait_for::<Cluster>(&key("drifting"), "a report on the change", |cluster| {
            let mut all = cluster.status.iter().flat_map(|status| &status.conditions);
            let reconciled = all.find(|one| one.type_ == "TopologyReconciled");
            reconciled.is_some_and(|one| one.observed_generation == cluster.metadata.generation)
        })
        .await;
        assert!(shared.lock().unwrap().drifts > asked);
    }
    assert_eq!(template().await, kept);
    // Mended behind the same address, which only a change of the ExtensionConfig tells.
    shared.lock().unwrap().drifts = None;
    let release = json!({"spec": {"settings": {"release": "2"}}});
    env.merge("ExtensionConfig", "ext", &release).await;
    says(&env, &key("drifting"), "ReconcileSucceeded", "").await;
    assert_ne!(template().await, kept);
    env.stop().await;
}

// TO-111 in the version from v1.8 on, TO-113, TO-114.
#[tokio::test]
async fn variables_that_conflict_or_cannot_be_discovered_hold_the_class() {
    let shared = Shared::default();
    let (mut env, served) = site(&shared).await;
    class_says(&env, "True", "").await;
    let cluster = ClusterOf::new("waits", 1, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;

    // The class defines it as well, in another way.
    let schema = json!({"openAPIV3Schema": {"type": "string"}});
    let class: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let before = class[0]["spec"]["variables"].clone();
    let mut with_own = before.clone();
    let own = json!({"name": "zone", "required": false, "schema": schema});
    with_own.as_array_mut().unwrap().push(own);
    env.merge("ClusterClass", "quick-start", &json!({"spec": {"variables": with_own}}))
        .await;
    let conflict = "VariableDiscovery failed: the following variables have conflicting schemas: zone";
    let class = class_says(&env, "False", conflict).await;
    let variables = serde_json::to_value(&class.status.unwrap().variables).unwrap();
    let zone = variables
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "zone")
        .unwrap();
    assert_eq!(zone["definitionsConflict"], true);
    let from: Vec<_> = zone["definitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["from"].clone())
        .collect();
    assert_eq!(from, ["inline", "outside"]);
    says(&env, &key("waits"), "ReconcileFailed", conflict).await;
    env.merge("ClusterClass", "quick-start", &json!({"spec": {"variables": before}}))
        .await;
    class_says(&env, "True", "").await;
    says(&env, &key("waits"), "ReconcileSucceeded", "").await;

    // Another release of the extension defines it wrongly, and the next one well: only the ExtensionConfig changes.
    shared.lock().unwrap().variable = "text";
    let settings = |release: &str| json!({"spec": {"settings": {"release": release}}});
    env.merge("ExtensionConfig", "ext", &settings("2")).await;
    class_says(&env, "False", "outside.variables[zone].schema.openAPIV3Schema.type").await;
    shared.lock().unwrap().variable = "string";
    env.merge("ExtensionConfig", "ext", &settings("3")).await;
    class_says(&env, "True", "").await;

    // An extension that is down when a manager starts.
    env.stop_controllers().await;
    drop(served);
    env.start_controllers(&Faults::none());
    class_says(&env, "False", "failed to call DiscoverVariables for patch outside: ").await;
    let served = Served::start(extension(&shared)).await;
    env.apply(&served.config("ext")).await;
    let class = class_says(&env, "True", "").await;
    let kept = class.status.unwrap().variables;
    assert_eq!(kept.len(), 4, "{kept:?}");
    env.stop().await;
}

/// A class with these patches, and what its Cluster is to be.
async fn with_patches(env: &Env, patches: Value) -> ClusterOf {
    env.apply_yaml(CLASS).await;
    env.merge("ClusterClass", "quick-start", &json!({"spec": {"patches": patches}}))
        .await;
    let cluster = ClusterOf::new("mixed", 1, 0);
    cluster.apply(env).await;
    cluster
}

// TO-118: inline and external patches in the order of the class, each with the results of those before it.
#[tokio::test]
async fn inline_and_external_patches_are_applied_in_their_order() {
    const COMMANDS: &str = "/spec/template/spec/kubeadmConfigSpec/preKubeadmCommands";
    let env = Env::start().await;
    let appends = |request: GeneratePatchesRequest| {
        let mut response = GeneratePatchesResponse::success();
        let mut items = request.items.iter();
        let item = items
            .find(|item| item.holder_reference.field_path == CONTROL_PLANE)
            .unwrap();
        let mut commands = item.object.pointer(COMMANDS).cloned().unwrap_or_else(|| json!([]));
        let before = commands.as_array().unwrap().len();
        commands
            .as_array_mut()
            .unwrap()
            .push(json!(format!("external after {before}")));
        let patch = json!({"spec": {"template": {"spec": {"kubeadmConfigSpec": {"preKubeadmCommands": commands}}}}});
        response.items.push(GeneratePatchesResponseItem {
            uid: item.uid.clone(),
            patch_type: JSON_MERGE_PATCH.to_owned(),
            patch: k8s_openapi::ByteString(patch.to_string().into_bytes()),
        });
        async { response }
    };
    let served = Served::start(Extension::new().handle(GeneratePatches, "append", appends).unwrap()).await;
    env.apply(&served.config("ext")).await;
    config(&env, "discovered", is_discovered).await;
    let inline = |name: &str, definitions: &[Value]| {
        let definition = |patches: &Value| {
            json!({
                "selector": {
                    "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
                    "matchResources": {"controlPlane": true},
                },
                "jsonPatches": patches,
            })
        };
        json!({"name": name, "definitions": definitions.iter().map(definition).collect::<Vec<_>>()})
    };
    let external = |name: &str| json!({"name": name, "external": {"generatePatchesExtension": "append.ext"}});
    let last = format!("{COMMANDS}/-");
    let names = "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs";
    let op = |op: &str, path: &str, value: Value| json!({"op": op, "path": path, "value": value});
    let patches = json!([
        inline("first", &[json!([op("add", COMMANDS, json!([]))])]),
        // The field is there since the patch before.
        inline(
            "second",
            &[
                json!([op("replace", COMMANDS, json!(["one"])), op("add", &last, json!("two"))]),
                json!([op("add", &last, json!("three")), op("replace", names, json!(["early"]))]),
            ]
        ),
        external("third"),
        inline(
            "fourth",
            &[json!([
                op("add", &last, json!("four")),
                op("replace", names, json!(["late"]))
            ])]
        ),
        external("fifth"),
    ]);
    with_patches(&env, patches).await;
    let plane = names_of(&env, &["late"]).await;
    let plane = serde_json::to_value(plane).unwrap();
    assert_eq!(
        plane["spec"]["kubeadmConfigSpec"]["preKubeadmCommands"],
        json!(["one", "two", "three", "external after 3", "four", "external after 5"])
    );
    env.stop().await;
}

async fn names_of(env: &Env, expect: &[&str]) -> KubeadmControlPlane {
    names(env, "patched by all", expect).await
}

// TO-170
#[tokio::test]
async fn an_extension_is_waited_for_and_counts_as_it_has_registered() {
    let env = Env::start().await;
    let never = |_| std::future::pending::<GeneratePatchesResponse>();
    let optional = Handler::named("optional")
        .timeout_seconds(1)
        .failure_policy(FailurePolicy::Ignore);
    let extension = Extension::new()
        .handle(GeneratePatches, "strict", never)
        .unwrap()
        .handle(GeneratePatches, Handler::named("quick").timeout_seconds(1), never)
        .unwrap()
        .handle(GeneratePatches, optional, never)
        .unwrap();
    let served = Served::start(extension).await;
    env.apply(&served.config("ext")).await;
    config(&env, "discovered", is_discovered).await;
    let external = |handler: &str| json!([{"name": "outside", "external": {"generatePatchesExtension": handler}}]);
    // Without an answer, the templates are as they are.
    let cluster = with_patches(&env, external("optional.ext")).await;
    cluster.wait_running(&env).await;
    let change = async |handler: &str| {
        env.merge(
            "ClusterClass",
            "quick-start",
            &json!({"spec": {"patches": external(handler)}}),
        )
        .await;
    };
    // Ten seconds, unless the extension says otherwise; and a failure counts.
    for (handler, seconds) in [("quick.ext", 1), ("strict.ext", 10)] {
        let begun = Instant::now();
        change(handler).await;
        says(
            &env,
            &key("mixed"),
            "ReconcileFailed",
            &format!("no answer in {seconds} s"),
        )
        .await;
        assert!(begun.elapsed() >= Duration::from_secs(seconds), "{handler}");
    }
    // One that is not for the namespace of the Cluster is not asked, whatever its policy is.
    change("optional.ext").await;
    says(&env, &key("mixed"), "ReconcileSucceeded", "").await;
    let selector = json!({"spec": {"namespaceSelector": {"matchLabels": {"team": "other"}}}});
    env.merge("ExtensionConfig", "ext", &selector).await;
    let elsewhere = format!("namespaceSelector did not match namespace {NAMESPACE}");
    says(&env, &key("mixed"), "ReconcileFailed", &elsewhere).await;
    env.stop().await;
}

// TO-168
#[tokio::test]
async fn a_patch_that_only_checks_is_reconciled() {
    let shared = Shared::default();
    let (env, _served) = site(&shared).await;
    let only = json!([{"name": "guard", "external": {"validateTopologyExtension": "check.ext"}}]);
    let cluster = with_patches(&env, only).await;
    cluster.wait_running(&env).await;
    let checked = shared.lock().unwrap().checked.clone().unwrap();
    assert_eq!(checked.items.len(), 5);
    assert!(shared.lock().unwrap().last.is_none(), "nothing is generated");
    shared.lock().unwrap().refuses = Some("too many disks".to_owned());
    let gates = json!({"spec": {"availabilityGates": [{"conditionType": "Gate"}]}});
    env.merge("Cluster", "mixed", &gates).await;
    says(&env, &key("mixed"), "ReconcileFailed", "too many disks").await;
    env.stop().await;
}
