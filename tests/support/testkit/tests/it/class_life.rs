//! What a class knows of its Clusters, what keeps it and its templates, and what it may say.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use windlass_api::core::ClusterClass;
use windlass_controller_runtime::{Metrics, transport};
use windlass_meta::ObjectKey;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE, Objects, wait};

use crate::foreign_class::{namespace, put, refused};

const ELSEWHERE: &str = "elsewhere";

/// Class and templates under other names.
fn renamed(suffix: &str) -> Vec<Value> {
    let mut all: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let longer = |name: &mut Value| *name = format!("{}{suffix}", name.as_str().unwrap()).into();
    for object in &mut all {
        longer(&mut object["metadata"]["name"]);
        object["metadata"]["namespace"] = NAMESPACE.into();
        for place in [
            "/spec/infrastructure",
            "/spec/controlPlane",
            "/spec/controlPlane/machineInfrastructure",
            "/spec/workers/machineDeployments/0/bootstrap",
            "/spec/workers/machineDeployments/0/infrastructure",
        ] {
            if let Some(name) = object.pointer_mut(&format!("{place}/templateRef/name")) {
                longer(name);
            }
        }
    }
    all
}

fn classes(env: &Objects, namespace: &str) -> Api<DynamicObject> {
    env.dynamic_in("ClusterClass", namespace)
}

async fn running(env: &Env) -> ClusterOf {
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("user-of-it", 1, 1);
    cluster.apply(env).await;
    cluster.wait_running(env).await;
    cluster
}

// TO-004: its own Clusters count, and not those of a class with the same name in another namespace. From v1.9 on, Clusters of other namespaces may
// name it (TO-045).
#[tokio::test]
async fn a_class_does_not_list_its_clusters_and_those_of_a_namesake_do_not_count() {
    let env = Env::start().await;
    namespace(&env, ELSEWHERE).await;
    let namesake: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    for mut object in namesake {
        object["metadata"]["namespace"] = ELSEWHERE.into();
        put(&env, &object).await;
    }
    running(&env).await;
    env.rest().await;
    for namespace in [NAMESPACE, ELSEWHERE] {
        let class = classes(&env, namespace).get("quick-start").await.unwrap();
        let text = serde_json::to_string(&class).unwrap();
        assert!(!text.contains("user-of-it"), "{text}");
    }
    // The only worker class goes, and then the class.
    let without_workers = json!({"spec": {"workers": null, "patches": null}});
    let remove = async |namespace: &str| {
        let patch = Patch::Merge(&without_workers);
        classes(&env, namespace)
            .patch("quick-start", &PatchParams::default(), &patch)
            .await
    };
    let status = refused(remove(NAMESPACE).await);
    assert!(
        status.message.contains("used by Cluster \"user-of-it\""),
        "{}",
        status.message
    );
    remove(ELSEWHERE).await.unwrap();
    let delete = async |namespace: &str| {
        classes(&env, namespace)
            .delete("quick-start", &DeleteParams::default())
            .await
    };
    let status = refused(delete(NAMESPACE).await);
    assert!(status.message.contains("user-of-it"), "{}", status.message);
    delete(ELSEWHERE).await.unwrap();
    env.stop().await;
}

// TO-204
#[tokio::test]
async fn an_unused_class_takes_its_templates_along_and_nothing_else() {
    let env = Env::start().await;
    for object in renamed("-spare") {
        env.apply(&object).await;
    }
    running(&env).await;
    let key = ObjectKey::new(NAMESPACE, "quick-start-spare");
    env.wait_for::<ClusterClass>(&key, "reconciled", |class| {
        class.status.as_ref().and_then(|status| status.observed_generation) == class.metadata.generation
    })
    .await;
    env.rest().await;
    let spare: BTreeSet<(String, String)> = renamed("-spare")
        .iter()
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&object["kind"]), text(&object["metadata"]["name"]))
        })
        .collect();
    let names = async || -> BTreeSet<(String, String, String)> {
        let all = env.all().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let each = all.values().map(|one| {
            let metadata = &one["metadata"];
            (text(&one["kind"]), text(&metadata["name"]), text(&metadata["uid"]))
        });
        each.filter(|(kind, ..)| kind != "Event" && kind != "Lease").collect()
    };
    let before = names().await;
    env.delete("ClusterClass", "quick-start-spare").await;
    let mut left = BTreeSet::new();
    let mut looks = windlass_testkit::wait::looks();
    let gone = tokio::time::timeout(windlass_testkit::wait::TIMEOUT, async {
        loop {
            left = names().await;
            if !left
                .iter()
                .any(|(kind, name, _)| spare.contains(&(kind.clone(), name.clone())))
            {
                break;
            }
            looks.tick().await;
        }
    });
    assert!(gone.await.is_ok(), "templates are left");
    env.rest().await;
    let expected: BTreeSet<_> = before
        .into_iter()
        .filter(|(kind, name, _)| !spare.contains(&(kind.clone(), name.clone())))
        .collect();
    assert_eq!(names().await, expected);
    env.stop().await;
}

// TO-176: what the schema has against an object is said before the rules are asked, and each by itself.
#[tokio::test]
async fn classes_and_clusters_are_checked_by_their_schema_and_by_the_rules() {
    let env = Env::builder().without_controllers().start().await;
    let mut class = renamed("").remove(0);
    let cluster = ClusterOf::new("checked", 1, 1).object();
    let says = async |object: &Value| {
        let api = env.dynamic(object["kind"].as_str().unwrap());
        let decoded = serde_json::from_value(object.clone()).unwrap();
        refused(api.create(&PostParams::default(), &decoded).await).message
    };
    let cases = [
        (
            &class,
            "/spec/workers/machineDeployments/0/minReadySeconds",
            json!("soon"),
            "must be of type integer",
        ),
        (
            &cluster,
            "/spec/topology/controlPlane/replicas",
            json!("three"),
            "must be of type integer",
        ),
    ];
    let semantic = [
        (
            &class,
            "/spec/patches/1/enabledIf",
            json!("{{ if }"),
            "spec.patches[1].enabledIf",
        ),
        (
            &cluster,
            "/spec/topology/version",
            json!("latest"),
            "version must be a valid semantic version",
        ),
    ];
    for ((object, field, value, words), (_, other, wrong, rule)) in cases.into_iter().zip(semantic) {
        let set = |object: &mut Value, field: &str, value: &Value| {
            let (above, last) = field.rsplit_once('/').unwrap();
            object.pointer_mut(above).unwrap()[last] = value.clone();
        };
        let mut of_schema = object.clone();
        set(&mut of_schema, field, &value);
        let said = says(&of_schema).await;
        assert!(said.contains(words), "{said}");
        let mut of_rule = object.clone();
        set(&mut of_rule, other, &wrong);
        let said = says(&of_rule).await;
        assert!(said.contains(rule), "{said}");
        let mut of_both = of_rule;
        set(&mut of_both, field, &value);
        let said = says(&of_both).await;
        assert!(said.contains(words) && !said.contains(rule), "{said}");
    }
    class["metadata"]["name"] = "good".into();
    env.apply(&class).await;
    env.stop().await;
}

/// What a template of each kind of ours says about the objects that are made from it.
fn contents() -> Vec<(&'static str, &'static str, Vec<Value>)> {
    let machine = |in_memory: Value| json!({"backend": {"inMemory": in_memory}});
    let kubeadm = |more: Value| {
        let node = json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}});
        let mut spec = json!({
            "clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"}, "initConfiguration": node, "joinConfiguration": node,
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        spec
    };
    let start = |value: &str| json!({"vm": {"provisioning": {"startupDuration": value}}});
    let jitter = |value: &str| json!({"vm": {"provisioning": {"startupDuration": "1s", "startupJitter": value}}});
    let configs = || {
        let file = |file: Value| kubeadm(json!({"files": [file]}));
        vec![
            kubeadm(json!({})),
            kubeadm(json!({"verbosity": -1})),
            kubeadm(json!({"verbosity": "much"})),
            kubeadm(json!({"format": "toml"})),
            kubeadm(json!({"format": "ignition"})),
            kubeadm(json!({"ignition": {"containerLinuxConfig": {"strict": true}}})),
            kubeadm(json!({"users": [{"name": "a"}, {"name": ""}]})),
            kubeadm(json!({"users": [{"name": "a", "passwdFrom": {"secret": {"name": "s", "key": ""}}}]})),
            kubeadm(json!({"preKubeadmCommands": []})),
            kubeadm(json!({"unknown": true})),
            file(json!({"path": "/a", "content": "x"})),
            file(json!({"path": "/a"})),
            file(json!({"content": "x"})),
            file(json!({"path": "/a", "content": "x", "contentFrom": {"secret": {"name": "s", "key": "k"}}})),
            kubeadm(json!({"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "a"}]}}})),
            kubeadm(
                json!({"joinConfiguration": {"nodeRegistration": {"taints": [{"key": "k", "effect": "Sometimes"}]}}}),
            ),
            kubeadm(json!({"joinConfiguration": {"patches": {"directory": ""}}})),
            kubeadm(json!({"clusterConfiguration": {"imageRepository": ""}})),
            kubeadm(json!({"clusterConfiguration": {"etcd": {"local": {}, "external": {"endpoints": ["https://e"]}}}})),
        ]
    };
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2";
    vec![
        (
            infrastructure,
            "DevMachine",
            vec![
                machine(json!({})),
                machine(start("0s")),
                machine(start("soon")),
                machine(start("-1s")),
                machine(start("")),
                machine(jitter("0.5")),
                machine(jitter("much")),
                machine(json!({"vm": 7})),
                json!({}),
                json!({"backend": {}}),
                json!({"backend": {"inMemory": {}}, "providerID": "x"}),
                json!({"backend": {"inMemory": {}}, "unknown": 1}),
            ],
        ),
        (
            infrastructure,
            "DevCluster",
            vec![
                machine(json!({})),
                json!({}),
                json!({"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "h", "port": 6443}}),
                json!({"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "h", "port": 70_000}}),
                json!({"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "h", "port": 0}}),
                json!({"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"port": "x"}}),
                json!({"backend": {"inMemory": {}}, "unknown": 1}),
            ],
        ),
        ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", configs()),
        (
            "controlplane.cluster.x-k8s.io/v1beta2",
            "KubeadmControlPlane",
            configs()
                .into_iter()
                .map(|config| json!({"kubeadmConfigSpec": config}))
                .chain([
                    json!({}),
                    json!({"kubeadmConfigSpec": {}, "rollout": {"before": {"certificatesExpiryDays": 1}}}),
                    json!({"kubeadmConfigSpec": {}, "rollout": {"strategy": {"type": "Never"}}}),
                    json!({"kubeadmConfigSpec": {}, "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 5}}}}),
                    json!({"kubeadmConfigSpec": {}, "remediation": {"maxRetry": -1}}),
                    json!({"kubeadmConfigSpec": {}, "machineNaming": {"template": "fixed"}}),
                    json!({"kubeadmConfigSpec": {}, "machineNaming": {"template": "{{ .kubeadmControlPlane.name }}-{{ .random }}"}}),
                ])
                .collect(),
        ),
    ]
}

// TO-334: for the kinds that are ours. Values that the object has from its owner are added, as the topology controller does.
#[tokio::test]
async fn what_a_template_may_say_an_object_may_say() {
    let env = Env::builder().without_controllers().start().await;
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::apply("user").force()
    };
    let client = Arc::new(env.client().clone());
    let try_it = async |api_version: &str, kind: &str, spec: &Value| {
        let (group, version) = api_version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with((*client).clone(), NAMESPACE, &resource);
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec});
        api.patch("x", &dry, &Patch::Apply(&object)).await.map(drop)
    };
    let (mut accepted, mut refused) = (0, 0);
    for (api_version, kind, specs) in contents() {
        for spec in specs {
            let template = json!({"template": {"spec": spec}});
            match try_it(api_version, &format!("{kind}Template"), &template).await {
                Err(kube::Error::Api(_)) => refused += 1,
                Err(error) => panic!("{kind} {spec}: {error}"),
                Ok(()) => {
                    accepted += 1;
                    let mut object = spec.clone();
                    if kind == "KubeadmControlPlane" {
                        (object["version"], object["replicas"]) = ("v1.35.0".into(), 1.into());
                        object["machineTemplate"]["spec"]["infrastructureRef"] = json!({
                            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "x",
                        });
                    }
                    let made = try_it(api_version, kind, &object).await;
                    assert!(
                        made.is_ok(),
                        "{kind}Template accepts {spec}, and {kind} does not: {made:?}"
                    );
                }
            }
        }
    }
    assert!(
        accepted >= 12 && refused >= 20,
        "{accepted} accepted, {refused} refused"
    );
    assert!(
        env.dynamic("KubeadmConfig")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    env.stop().await;
}

// TO-201: a webhook whose rights do not reach to Clusters does not know who uses the class.
#[tokio::test]
async fn a_class_is_not_changed_while_its_clusters_cannot_be_listed() {
    let world = crate::admission_network::World::start().await;
    let admin = &world.objects;
    let hides = |request: &windlass_testkit::faults::Seen| {
        let is_clusters = request.path.contains("/clusters?") || request.path.ends_with("/clusters");
        is_clusters.then_some(Fault::Refused(403))
    };
    let service = Faults::when(hides).wrap(world.server.service("windlass-without-clusters"));
    let client = transport::in_process(service, &Metrics::new());
    for object in renamed("") {
        admin.apply(&object).await;
    }
    let webhooks = world.serve_as(client).await;
    let change = |patch: Value| {
        let classes = classes(admin, NAMESPACE);
        async move {
            classes
                .patch("quick-start", &PatchParams::default(), &Patch::Merge(&patch))
                .await
        }
    };
    let status = refused(change(json!({"spec": {"workers": null, "patches": null}})).await);
    assert_eq!(status.code, 500, "{status:?}");
    assert!(status.message.contains("Cluster"), "{}", status.message);
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    let status = refused(classes(admin, NAMESPACE).delete("quick-start", &dry).await);
    assert_eq!(status.code, 500, "{status:?}");
    webhooks.shutdown().await;
    // With the right, the same is admitted.
    let webhooks = world.serve().await;
    change(json!({"spec": {"workers": null, "patches": null}}))
        .await
        .unwrap();
    webhooks.shutdown().await;
    world.server.stop().await;
}

// TO-179: as v1.14 has them, which sets no defaults of classes and serves v1beta2.
#[tokio::test]
async fn webhooks_of_classes_and_clusters_have_the_names_that_policies_refer_to() {
    let world = crate::admission_network::World::start().await;
    let webhooks = world.serve().await;
    windlass_testkit::is_admitting(world.objects.client()).await;
    let mut found = Vec::new();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        let gvk = kube::core::GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let api: Api<DynamicObject> = Api::all_with(world.objects.client().clone(), &ApiResource::from_gvk(&gvk));
        for configuration in api.list(&ListParams::default()).await.unwrap() {
            let all = configuration.data["webhooks"].as_array().cloned().unwrap_or_default();
            found.extend(all.into_iter().filter(|webhook| {
                let resource = webhook["rules"][0]["resources"][0].as_str().unwrap_or_default();
                webhook["rules"][0]["apiGroups"][0] == "cluster.x-k8s.io"
                    && ["clusters", "clusterclasses"].contains(&resource)
            }));
        }
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut seen: Vec<_> = found
        .iter()
        .map(|webhook| {
            let url = text(&webhook["clientConfig"]["url"]);
            let path = url.splitn(4, '/').last().unwrap_or_default().to_owned();
            assert_eq!(webhook["failurePolicy"], "Fail", "{webhook:#}");
            (text(&webhook["name"]), path, webhook["rules"][0]["operations"].clone())
        })
        .collect();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let entry = |name: &str, path: &str, operations: Value| (name.to_owned(), path.to_owned(), operations);
    assert_eq!(
        seen,
        [
            entry(
                "default.cluster.cluster.x-k8s.io",
                "mutate-cluster-x-k8s-io-v1beta2-cluster",
                json!(["CREATE", "UPDATE"])
            ),
            entry(
                "validation.cluster.cluster.x-k8s.io",
                "validate-cluster-x-k8s-io-v1beta2-cluster",
                json!(["CREATE", "UPDATE"])
            ),
            entry(
                "validation.clusterclass.cluster.x-k8s.io",
                "validate-cluster-x-k8s-io-v1beta2-clusterclass",
                json!(["CREATE", "UPDATE", "DELETE"])
            ),
        ]
    );
    webhooks.shutdown().await;
    world.server.stop().await;
}

// v1.14 holds what it makes of a Cluster by a Secret, in case it dies before the Cluster refers to it.
#[tokio::test]
async fn the_shim_of_an_interrupted_creation_goes_with_what_was_made_in_vain() {
    let env = Env::start().await;
    let of = running(&env).await;
    env.rest().await;
    let secrets: Api<Secret> = Api::namespaced(env.client().clone(), NAMESPACE);
    let shim = |name: &str, kind: &str, uid: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": of.name, "uid": uid},
            ]},
        })
    };
    let make = async |object: Value| {
        let secret: Secret = serde_json::from_value(object).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap()
    };
    let cluster = env.dynamic("Cluster").get(&of.name).await.unwrap();
    let (name, uid) = (format!("{}-shim", of.name), cluster.metadata.uid.unwrap());
    let touch = async |value: &str| {
        env.merge(
            "Cluster",
            &of.name,
            &json!({"metadata": {"annotations": {"touched": value}}}),
        )
        .await;
    };

    // Others may have a Secret of its name.
    make(shim(&name, "Opaque", &uid)).await;
    touch("once").await;
    env.rest().await;
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();

    let made = make(shim(&name, "cluster.x-k8s.io/secret", &uid)).await;
    let orphan = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
        "metadata": {"name": "in-vain", "namespace": NAMESPACE, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": made.metadata.uid},
        ]},
        "spec": {"backend": {"inMemory": {}}},
    });
    put(&env, &orphan).await;
    touch("twice").await;
    let gone = wait::until(secrets.clone(), Some(&name), <[Secret]>::is_empty).await;
    assert!(gone.is_some(), "the shim stays");
    env.rest().await;
    assert_eq!(env.created("machines"), 2);
    of.wait_running(&env).await;
    env.stop().await;
}
