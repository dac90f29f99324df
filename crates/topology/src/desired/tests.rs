//! The contents of generated objects.
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "cases read best as literals, one after another"
)]

mod external;
mod patched;

use serde_json::{Value, json};

use crate::blueprint::Contract;
use crate::testing::World;

fn metadata(object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    for derived in ["name", "uid", "managedFields"] {
        metadata.as_object_mut().unwrap().remove(derived);
    }
    metadata
}

fn check(have: &Value, expect: Value) {
    assert_eq!(have, &expect, "\n{have:#}");
}

// TO-070, TO-244, TO-251, TO-253, TO-282, TO-283, TO-284, TO-285, TO-286, TO-287, TO-340, TO-341, TO-343, TO-344, TO-345, TO-346: the objects that v1.14
// leaves for the in-memory class, field by field.
#[test]
fn objects_are_those_of_the_recorded_cluster() {
    let mut world = World::in_memory();
    world.settle();
    let owned = json!({"cluster.x-k8s.io/cluster-name": "demo000", "topology.cluster.x-k8s.io/owned": ""});
    let worker = json!({
        "cluster.x-k8s.io/cluster-name": "demo000", "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/deployment-name": "md-0",
    });
    let owner = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo000", "uid": "c-uid",
    });
    let mut controller = owner.clone();
    controller["controller"] = true.into();
    controller["blockOwnerDeletion"] = true.into();
    let cloned = |name: &str, group_kind: &str| {
        json!({
            "cluster.x-k8s.io/cloned-from-name": name,
            "cluster.x-k8s.io/cloned-from-groupkind": group_kind,
        })
    };

    let infrastructure = world.only("DevCluster");
    check(
        &metadata(infrastructure),
        json!({
            "namespace": "default", "labels": owned, "ownerReferences": [controller],
            "annotations": cloned("in-memory-cluster", "DevClusterTemplate.infrastructure.cluster.x-k8s.io"),
        }),
    );
    check(&infrastructure["spec"], json!({"backend": {"inMemory": {}}}));
    check(&world.cluster["metadata"]["labels"], owned.clone());
    check(
        &world.cluster["spec"]["infrastructureRef"],
        json!({
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster",
            "name": infrastructure["metadata"]["name"],
        }),
    );

    let control_plane = world.only("KubeadmControlPlane");
    check(
        &metadata(control_plane),
        json!({
            "namespace": "default", "labels": owned, "ownerReferences": [controller],
            "annotations": cloned(
                "in-memory-control-plane", "KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io"),
        }),
    );
    let machines = world
        .of_kind("DevMachineTemplate")
        .into_iter()
        .find(|t| {
            t["metadata"]["labels"]
                .get("topology.cluster.x-k8s.io/deployment-name")
                .is_none()
        })
        .unwrap();
    check(
        &control_plane["spec"],
        json!({
            "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"certSANs": ["localhost", "127.0.0.1"]}}},
            "machineTemplate": {
                "metadata": {"labels": owned},
                "spec": {"infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate",
                    "name": machines["metadata"]["name"],
                }},
            },
            "replicas": 3, "version": "v1.35.0",
        }),
    );
    check(
        &metadata(machines),
        json!({
            "namespace": "default", "labels": owned, "ownerReferences": [owner],
            "annotations": cloned(
                "in-memory-control-plane", "DevMachineTemplate.infrastructure.cluster.x-k8s.io"),
        }),
    );

    let deployment = world.only("MachineDeployment");
    check(
        &metadata(deployment),
        json!({
            "namespace": "default", "labels": worker, "ownerReferences": [owner],
            "finalizers": ["cluster.x-k8s.io/machinedeployment", "machinedeployment.topology.cluster.x-k8s.io"],
        }),
    );
    let bootstrap = world.only("KubeadmConfigTemplate");
    check(&bootstrap["metadata"]["labels"], worker.clone());
    let infrastructure = deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"]
        .as_str()
        .unwrap();
    let template = world.object("DevMachineTemplate", infrastructure).unwrap();
    check(
        &template["metadata"]["annotations"],
        cloned("in-memory-worker", "DevMachineTemplate.infrastructure.cluster.x-k8s.io"),
    );
    check(
        &deployment["spec"],
        json!({
            "clusterName": "demo000", "replicas": 3,
            "selector": {"matchLabels": worker},
            "template": {
                "metadata": {"labels": worker},
                "spec": {
                    "clusterName": "demo000", "version": "v1.35.0",
                    "bootstrap": {"configRef": {
                        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate",
                        "name": bootstrap["metadata"]["name"],
                    }},
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate",
                        "name": infrastructure,
                    },
                },
            },
        }),
    );

    let name = deployment["metadata"]["name"].as_str().unwrap();
    let health = world.object("MachineHealthCheck", name).unwrap();
    check(
        &metadata(&health),
        json!({"namespace": "default", "labels": owned, "ownerReferences": [owner]}),
    );
    check(
        &health["spec"],
        json!({
            "clusterName": "demo000",
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}],
            },
            "selector": {"matchLabels": {
                "topology.cluster.x-k8s.io/deployment-name": "md-0", "topology.cluster.x-k8s.io/owned": "",
            }},
        }),
    );
    let name = control_plane["metadata"]["name"].as_str().unwrap();
    let health = world.object("MachineHealthCheck", name).unwrap();
    check(
        &health["spec"]["selector"]["matchLabels"],
        json!({
            "cluster.x-k8s.io/control-plane": "", "topology.cluster.x-k8s.io/owned": "",
        }),
    );
}

// TO-028, TO-054, TO-246, TO-247, TO-248: the worked example of the founding proposal (labels under metadata).
#[test]
fn the_proposals_example_gives_the_promised_objects() {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "bar", "uid": "u"},
        "spec": {"topology": {
            "classRef": {"name": "mixed"}, "version": "v1.19.1", "controlPlane": {"replicas": 3},
            "workers": {"machineDeployments": [
                {"class": "linux-worker", "name": "big-pool-of-machines-1", "replicas": 5,
                    "metadata": {"labels": {"custom-label": "production"}}},
                {"class": "linux-worker", "name": "small-pool-of-machines-1", "replicas": 1},
                {"class": "windows-worker", "name": "microsoft-1", "replicas": 3},
            ]},
        }},
    });
    let mut world = World::new(include_str!("../../testdata/vsphere.yaml"), cluster);
    world.settle();
    let count = |kind: &str| world.of_kind(kind).len();
    assert_eq!(count("VSphereCluster"), 1);
    assert_eq!(count("VSphereMachineTemplate"), 4);
    assert_eq!(count("KubeadmConfigTemplate"), 3);
    assert_eq!(count("MachineDeployment"), 3);
    assert_eq!(count("MachineHealthCheck"), 4);
    let control_plane = world.only("KubeadmControlPlane");
    assert_eq!(control_plane["spec"]["version"], "v1.19.1");
    assert_eq!(control_plane["spec"]["replicas"], 3);
    let mut replicas: Vec<i64> = world
        .of_kind("MachineDeployment")
        .iter()
        .map(|md| md["spec"]["replicas"].as_i64().unwrap())
        .collect();
    replicas.sort_unstable();
    assert_eq!(replicas, [1, 3, 5]);
    let big = world
        .of_kind("MachineDeployment")
        .into_iter()
        .find(|md| md["spec"]["replicas"] == 5)
        .unwrap();
    assert_eq!(big["metadata"]["labels"]["custom-label"], "production");
    assert_eq!(
        big["spec"]["template"]["metadata"]["labels"]["custom-label"],
        "production"
    );
    assert!(big["spec"]["selector"]["matchLabels"].get("custom-label").is_none());
    let health = world
        .object(
            "MachineHealthCheck",
            control_plane["metadata"]["name"].as_str().unwrap(),
        )
        .unwrap();
    assert_eq!(health["spec"]["checks"]["nodeStartupTimeoutSeconds"], 180);
    assert_eq!(
        health["spec"]["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"],
        "33%"
    );
}

// TO-008, TO-049, TO-057, TO-278, TO-279, TO-280, TO-281
#[test]
fn topology_overrides_class() {
    let mut world = World::in_memory();
    world.class["spec"]["controlPlane"]["metadata"] = json!({"labels": {"a": "1", "b": "1"}});
    world.class["spec"]["controlPlane"]["deletion"] =
        json!({"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 10});
    world.cluster["spec"]["topology"]["controlPlane"]["metadata"] =
        json!({"labels": {"b": "2", "c": "2"}, "annotations": {"n": "x"}});
    world.cluster["spec"]["topology"]["controlPlane"]["deletion"] = json!({"nodeDrainTimeoutSeconds": 300});
    world.cluster["spec"]["topology"]["controlPlane"]["readinessGates"] = json!([{"conditionType": "x"}]);
    let class = &mut world.class["spec"]["workers"]["machineDeployments"][0];
    class["rollout"] = json!({"strategy": {"type": "OnDelete"}});
    class["minReadySeconds"] = 5.into();
    class["failureDomain"] = "a".into();
    class["deletion"] = json!({"order": "Oldest", "nodeDrainTimeoutSeconds": 1});
    class["healthCheck"]["remediation"] = json!({"maxInFlight": 2});
    let entry = &mut world.cluster["spec"]["topology"]["workers"]["machineDeployments"][0];
    entry["rollout"] = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}});
    entry["failureDomain"] = "b".into();
    entry["taints"] = json!([{"key": "k", "effect": "NoSchedule", "propagation": "Always"}]);
    entry["metadata"] = json!({"annotations": {
        "topology.cluster.x-k8s.io/defer-upgrade": "", "topology.cluster.x-k8s.io/hold-upgrade-sequence": "", "k": "v",
    }});
    world.settle();
    let control_plane = world.only("KubeadmControlPlane");
    for labels in [
        &control_plane["metadata"]["labels"],
        &control_plane["spec"]["machineTemplate"]["metadata"]["labels"],
    ] {
        assert_eq!(
            (&labels["a"], &labels["b"], &labels["c"]),
            (&json!("1"), &json!("2"), &json!("2"))
        );
    }
    assert_eq!(control_plane["metadata"]["annotations"]["n"], "x");
    let machine = &control_plane["spec"]["machineTemplate"]["spec"];
    check(
        &machine["deletion"],
        json!({"nodeDrainTimeoutSeconds": 300, "nodeDeletionTimeoutSeconds": 10}),
    );
    check(&machine["readinessGates"], json!([{"conditionType": "x"}]));
    let deployment = world.only("MachineDeployment");
    check(
        &deployment["spec"]["rollout"],
        json!({
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}},
        }),
    );
    check(&deployment["spec"]["deletion"], json!({"order": "Oldest"}));
    check(&deployment["spec"]["remediation"], json!({"maxInFlight": 2}));
    check(&deployment["metadata"]["annotations"], json!({"k": "v"}));
    let machine = &deployment["spec"]["template"]["spec"];
    assert_eq!(machine["failureDomain"], "b");
    assert_eq!(machine["minReadySeconds"], 5);
    check(&machine["deletion"], json!({"nodeDrainTimeoutSeconds": 1}));
    assert_eq!(machine["taints"][0]["key"], "k");
}

// TO-007, TO-048, TO-056, TO-172, TO-329
#[test]
fn what_is_not_set_is_left_out_and_what_is_ours_is_not_patchable() {
    let mut world = World::in_memory();
    let topology = &mut world.cluster["spec"]["topology"];
    topology["controlPlane"] = json!({});
    topology["workers"]["machineDeployments"][0]
        .as_object_mut()
        .unwrap()
        .remove("replicas");
    world.class["spec"]["patches"] = json!([{"name": "p", "definitions": [{
        "selector": {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
            "matchResources": {"controlPlane": true},
        },
        "jsonPatches": [
            {"op": "add", "path": "/spec/template/spec/replicas", "value": 5},
            {"op": "add", "path": "/spec/template/spec/version", "value": "v1.0.0"},
        ],
    }]}]);
    world.class["spec"]["controlPlane"]
        .as_object_mut()
        .unwrap()
        .remove("machineInfrastructure");
    world.class["spec"]["controlPlane"]
        .as_object_mut()
        .unwrap()
        .remove("healthCheck");
    world.settle();
    let control_plane = world.only("KubeadmControlPlane");
    assert_eq!(control_plane["spec"].get("replicas"), None);
    assert_eq!(control_plane["spec"].get("machineTemplate"), None);
    assert_eq!(control_plane["spec"]["version"], "v1.35.0");
    assert_eq!(world.only("MachineDeployment")["spec"].get("replicas"), None);
}

// TO-069: a provider of the older contract has its machine fields elsewhere.
#[test]
fn the_older_contract_has_its_own_places() {
    let mut world = World::in_memory();
    world.contract = Contract::V1Beta1;
    world.cluster["spec"]["topology"]["controlPlane"]["deletion"] = json!({"nodeDrainTimeoutSeconds": 60});
    world.settle();
    let machine = &world.only("KubeadmControlPlane")["spec"]["machineTemplate"];
    assert_eq!(machine["nodeDrainTimeout"], "1m0s");
    assert_eq!(machine["infrastructureRef"]["namespace"], "default");
    assert_eq!(machine.get("spec"), None);
}

#[test]
fn a_control_plane_template_keeps_what_class_and_topology_leave_open() {
    let own = json!({
        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 5},
        "taints": [{"key": "own", "effect": "NoSchedule", "propagation": "Always"}],
        "readinessGates": [{"conditionType": "own"}],
    });
    let mut world = World::in_memory();
    world.templates[1]["spec"]["template"]["spec"]["machineTemplate"] = json!({"spec": own});
    world.cluster["spec"]["topology"]["controlPlane"]["deletion"] = json!({"nodeDeletionTimeoutSeconds": 7});
    world.settle();
    let mut kept = world.only("KubeadmControlPlane")["spec"]["machineTemplate"]["spec"].clone();
    kept.as_object_mut().unwrap().remove("infrastructureRef");
    let mut expect = own;
    expect["deletion"]["nodeDeletionTimeoutSeconds"] = 7.into();
    check(&kept, expect);
}

// A control plane that is not made of Machines of this provider gets the fields of class and topology, too.
#[test]
fn machine_fields_do_not_need_a_machine_template() {
    for (contract, expect) in [
        (
            Contract::V1Beta2,
            json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": 600}, "taints": ["t"]}}),
        ),
        (Contract::V1Beta1, json!({"nodeDrainTimeout": "10m0s", "taints": ["t"]})),
    ] {
        let mut world = World::in_memory();
        world.contract = contract;
        let class = world.class["spec"]["controlPlane"].as_object_mut().unwrap();
        class.remove("machineInfrastructure");
        class.remove("healthCheck");
        let control_plane = &mut world.cluster["spec"]["topology"]["controlPlane"];
        control_plane["deletion"] = json!({"nodeDrainTimeoutSeconds": 600});
        control_plane["taints"] = json!(["t"]);
        world.settle();
        check(&world.only("KubeadmControlPlane")["spec"]["machineTemplate"], expect);
    }
}

#[test]
fn what_tools_and_providers_keep_for_themselves_is_not_copied() {
    let mut world = World::in_memory();
    world.templates[1]["spec"]["template"]["spec"]["controlPlaneEndpoint"] = json!({"host": "", "port": 0});
    world.templates[3]["metadata"]["annotations"] = json!({"cluster.x-k8s.io/conversion-data": "x", "own": "y"});
    world.settle();
    assert_eq!(
        world.only("KubeadmControlPlane")["spec"].get("controlPlaneEndpoint"),
        None
    );
    let copies = world.of_kind("DevMachineTemplate");
    let copy = copies
        .iter()
        .find(|t| t["metadata"]["annotations"]["own"] == "y")
        .unwrap();
    assert_eq!(
        copy["metadata"]["annotations"].get("cluster.x-k8s.io/conversion-data"),
        None
    );
}

#[test]
fn remediation_in_flight_does_not_depend_on_the_health_check() {
    let mut world = World::in_memory();
    let class = &mut world.class["spec"]["workers"]["machineDeployments"][0]["healthCheck"];
    class["remediation"]["maxInFlight"] = 2.into();
    world.settle();
    for check in [
        json!({"enabled": false}),
        json!({"checks": {"nodeStartupTimeoutSeconds": 30}}),
    ] {
        world.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["healthCheck"] = check;
        world.settle();
        assert_eq!(world.only("MachineDeployment")["spec"]["remediation"]["maxInFlight"], 2);
    }
}

// What a Cluster has used is not made again.
#[test]
fn a_lost_infrastructure_cluster_or_control_plane_is_not_made_again() {
    for (kind, flag) in [
        ("DevCluster", "infrastructureProvisioned"),
        ("KubeadmControlPlane", "controlPlaneInitialized"),
    ] {
        let mut world = World::in_memory();
        world.settle();
        let all = world.objects.clone();
        world.objects.retain(|(of, _), _| of != kind);
        let made = world.plan().unwrap();
        assert!(
            made.changes()
                .any(|step| step.note.starts_with(&format!("create {kind} "))),
            "not used yet"
        );
        world.cluster["status"]["initialization"][flag] = true.into();
        let error = world.plan().unwrap_err().to_string();
        assert!(error.contains(kind) && error.contains("restore it"), "{error}");
        world.objects = all;
        assert_eq!(world.plan().unwrap().changes().count(), 0, "restored");
    }
}

// TO-118, TO-128, TO-143, TO-151, TO-155, TO-157, TO-161, TO-163, TO-313
#[test]
fn patches_see_variables_and_builtins_of_their_place() {
    let mut world = World::in_memory();
    let patch = |place: Value, template: &str| {
        json!({
            "selector": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate",
                "matchResources": place,
            },
            "jsonPatches": [{"op": "add", "path": "/spec/template/spec/image", "valueFrom": {"template": template}}],
        })
    };
    world.class["spec"]["patches"] = json!([{"name": "image", "definitions": [
        patch(json!({"controlPlane": true}), "{{ .os }}-{{ .builtin.controlPlane.version }}"),
        patch(
            json!({"machineDeploymentClass": {"names": ["*"]}}),
            "{{ .os }}-{{ .builtin.machineDeployment.version }}-{{ .builtin.cluster.name }}",
        ),
    ]}]);
    let schema = json!({"openAPIV3Schema": {"type": "string", "default": "ubuntu"}});
    world.class["status"]["variables"] =
        json!([{"name": "os", "definitions": [{"from": "inline", "required": false, "schema": schema}]}]);
    world.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["variables"] =
        json!({"overrides": [{"name": "os", "value": "flatcar"}]});
    world.settle();
    let mut images: Vec<&str> = world
        .of_kind("DevMachineTemplate")
        .iter()
        .map(|t| t["spec"]["template"]["spec"]["image"].as_str().unwrap())
        .collect();
    images.sort_unstable();
    assert_eq!(images, ["flatcar-v1.35.0-demo000", "ubuntu-v1.35.0"]);
}

// TO-292
#[test]
fn an_empty_endpoint_belongs_to_the_provider() {
    let mut world = World::in_memory();
    world.templates[0]["spec"]["template"]["spec"]["controlPlaneEndpoint"] = json!({"host": "", "port": 0});
    world.settle();
    assert_eq!(world.only("DevCluster")["spec"].get("controlPlaneEndpoint"), None);
}

// TO-068, TO-206, TO-209, TO-210, TO-344, TO-349
#[test]
fn refusals_name_object_and_field() {
    let refuse = |change: &dyn Fn(&mut World), object: &str, field: &str, part: &str| {
        let mut world = World::in_memory();
        change(&mut world);
        let error = world.plan().unwrap_err();
        assert_eq!(
            (error.object.as_str(), error.field.as_str()),
            (object, field),
            "{error}"
        );
        assert!(error.message.contains(part), "{error}");
    };
    let cluster = "Cluster default/demo000";
    let worker = "spec.topology.workers.machineDeployments[0]";
    refuse(
        &|w| w.cluster["spec"]["topology"]["version"] = "latest".into(),
        cluster,
        "spec.topology.version",
        "semantic",
    );
    refuse(
        &|w| w.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["class"] = "no".into(),
        cluster,
        &format!("{worker}.class"),
        "does not exist in ClusterClass default/in-memory",
    );
    refuse(
        &|w| w.cluster["spec"]["topology"]["workers"]["machinePools"] = json!([{"name": "x"}]),
        cluster,
        "spec.topology.workers.machinePools[0].class",
        "MachinePool class \"\" does not exist",
    );
    refuse(
        &|w| {
            w.class["spec"]["workers"]["machineDeployments"][0]
                .as_object_mut()
                .unwrap()
                .remove("healthCheck");
            w.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["healthCheck"] = json!({"enabled": true});
        },
        cluster,
        &format!("{worker}.healthCheck.enabled"),
        "neither",
    );
    refuse(
        &|w| drop(w.templates.remove(0)),
        "ClusterClass default/in-memory",
        "spec.infrastructure.templateRef",
        "does not exist",
    );
    refuse(
        &|w| {
            w.settle();
            let key = w
                .objects
                .keys()
                .find(|(k, _)| k == "KubeadmControlPlane")
                .unwrap()
                .clone();
            w.objects.get_mut(&key).unwrap()["metadata"]["labels"] = json!({});
        },
        &{
            let mut world = World::in_memory();
            world.settle();
            format!(
                "KubeadmControlPlane default/{}",
                world.only("KubeadmControlPlane")["metadata"]["name"].as_str().unwrap()
            )
        },
        "metadata.labels[topology.cluster.x-k8s.io/owned]",
        "not topology owned",
    );
}

// TO-086, TO-118, TO-121, TO-144: the class that new users start with.
#[test]
fn the_quick_start_class_is_patched_by_its_variables() {
    let class = include_str!("../../../../examples/clusterclass-quick-start.yaml");
    let cluster = include_str!("../../../../examples/cluster-quick-start.yaml");
    let mut cluster = crate::testing::yaml(cluster).remove(0);
    cluster["metadata"]["uid"] = "u".into();
    cluster["spec"]["topology"]["variables"] = json!([
        {"name": "startupDuration", "value": "7s"},
        {"name": "certSANs", "value": ["a.example.com"]},
        {"name": "nodeLabel", "value": "blue"},
    ]);
    let mut world = World::new(class, cluster);
    world.settle();
    for template in world.of_kind("DevMachineTemplate") {
        let backend = &template["spec"]["template"]["spec"]["backend"]["inMemory"];
        for part in ["vm", "node", "etcd", "apiServer"] {
            assert_eq!(backend[part]["provisioning"]["startupDuration"], "7s");
        }
    }
    let server = &world.only("KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["apiServer"];
    assert_eq!(server["certSANs"], json!(["a.example.com"]));
    let node =
        &world.only("KubeadmConfigTemplate")["spec"]["template"]["spec"]["joinConfiguration"]["nodeRegistration"];
    let last = node["kubeletExtraArgs"].as_array().unwrap().last().unwrap();
    check(
        last,
        json!({"name": "node-labels", "value": "node.cluster.x-k8s.io/pool=blue"}),
    );
}
