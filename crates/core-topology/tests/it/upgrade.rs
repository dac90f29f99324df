//! One upgrade of a topology with every kind of part: who waits for whom, and what does not wait.

use serde_json::{Value, json};

use crate::env::{Env, cluster, condition, example, name};

const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";
const LATE: &str = "late";
const OLD: &str = "v1.31.1";
const NEW: &str = "v1.32.0";

/// A class whose images follow the version of their place, and whose infrastructure follows that of the Cluster.
fn class(class: &mut Value) {
    let version = |kind: &str, place: Value, field: &str, of: &str| {
        json!({
            "selector": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "matchResources": place},
            "jsonPatches": [{"op": "add", "path": format!("/spec/template/spec/{field}"),
                "valueFrom": {"variable": format!("builtin.{of}.version")}}],
        })
    };
    class["spec"]["patches"] = json!([{"name": "images", "definitions": [
        version("VSphereClusterTemplate", json!({"infrastructureCluster": true}), "thumbprint", "cluster.topology"),
        version("VSphereMachineTemplate", json!({"controlPlane": true}), "template", "controlPlane"),
        version("VSphereMachineTemplate", json!({"machineDeploymentClass": {"names": ["*"]}}), "template", "machineDeployment"),
    ]}]);
    let reference =
        |api: &str, kind: &str, name: &str| json!({"templateRef": {"apiVersion": api, "kind": kind, "name": name}});
    class["spec"]["workers"]["machinePools"] = json!([{
        "class": "pool",
        "bootstrap": reference("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", "existing-boot-ref"),
        "infrastructure": reference("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachinePoolTemplate", "pool"),
    }]);
}

struct World(Env);

impl World {
    async fn start() -> Self {
        let env = Env::start().await;
        env.apply(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePoolTemplate",
            "metadata": {"name": "pool", "namespace": "bar"},
            "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
        }))
        .await;
        for object in example(class) {
            env.apply(object).await;
        }
        let mut cluster = cluster();
        cluster["spec"]["topology"]["workers"]["machinePools"] =
            json!([{"class": "pool", "name": "mp-0", "replicas": 1}]);
        env.apply(cluster).await;
        env.reconciled("ReconcileSucceeded").await;
        env.control_plane_runs(OLD).await;
        Self(env)
    }

    async fn control_plane(&self) -> Value {
        self.0.generated("KubeadmControlPlane").await.remove(0)
    }

    /// The version of a worker set, and that in its template of Machines.
    async fn versions(&self, entry: &str) -> (String, String) {
        let deployment = self.0.deployment(entry).await;
        let spec = &deployment["spec"]["template"]["spec"];
        let template = spec["infrastructureRef"]["name"].as_str().unwrap();
        let template = self.0.get("VSphereMachineTemplate", template).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (
            text(&spec["version"]),
            text(&template["spec"]["template"]["spec"]["template"]),
        )
    }

    async fn pool_version(&self) -> Value {
        let pool = self.0.of_entry("MachinePool", "mp-0").await.remove(0);
        pool["spec"]["template"]["spec"]["version"].clone()
    }

    /// Waits until worker sets have these versions, and their templates too; looks that the others have kept theirs.
    async fn run(&self, new: &[&str], old: &[&str]) {
        self.0
            .wait(&format!("{new:?} at the new version"), async || {
                for entry in new {
                    if self.0.of_entry("MachineDeployment", entry).await.is_empty()
                        || self.versions(entry).await.0 != NEW
                    {
                        return None;
                    }
                }
                Some(())
            })
            .await;
        for (entries, version) in [(new, NEW), (old, OLD)] {
            for entry in entries {
                assert_eq!(
                    self.versions(entry).await,
                    (version.to_owned(), version.to_owned()),
                    "{entry}"
                );
            }
        }
    }

    /// A Machine of a worker set that runs this version.
    async fn machine(&self, entry: &str, version: &str) {
        let deployment = self.0.deployment(entry).await;
        self.0
            .apply(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"name": format!("m-{entry}"), "namespace": "bar",
                    "labels": deployment["spec"]["selector"]["matchLabels"]},
                "spec": {"clusterName": "foo", "version": version, "bootstrap": {"dataSecretName": "data"},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereMachine", "name": "m"}},
            }))
            .await;
    }

    async fn says(&self, reason: &str, part: &str) {
        self.0
            .wait(&format!("{reason} with {part:?}"), async || {
                let cluster = self.0.get("Cluster", "foo").await?;
                let found = condition(&cluster, "TopologyReconciled")?;
                (found["reason"] == reason && found["message"].as_str()?.contains(part)).then_some(())
            })
            .await;
    }
}

async fn takes_all_at_once(world: &World, control_plane: &Value) {
    let env = &world.0;
    // A user holds the version back.
    let hold =
        |value: Value| json!({"metadata": {"annotations": {"before-upgrade.hook.cluster.cluster.x-k8s.io/me": value}}});
    env.merge("Cluster", "foo", hold(json!(""))).await;
    env.control_plane_runs(OLD).await;
    world
        .says("ClusterUpgrading", "before-upgrade.hook.cluster.cluster.x-k8s.io/me")
        .await;
    assert_eq!(world.control_plane().await["spec"]["version"], OLD);

    // It takes version, label and its own template in one write; the workers wait for it.
    env.merge("Cluster", "foo", hold(Value::Null)).await;
    let expected = json!({"spec": {"version": NEW}, "metadata": {"labels": {"with": "version"}}});
    let upgrading = env.becomes("KubeadmControlPlane", name(control_plane), expected).await;
    let reference = |object: &Value| object["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"].clone();
    assert_ne!(reference(&upgrading), reference(control_plane));
    let machines = env
        .get("VSphereMachineTemplate", reference(&upgrading).as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(machines["spec"]["template"]["spec"]["template"], NEW);
    world
        .says("ClusterUpgrading", "MachineDeployment late creation deferred")
        .await;
    world.run(&[], &[BIG, SMALL, WINDOWS]).await;
    assert_eq!(env.deployment(BIG).await["spec"]["replicas"], 5);
    assert!(env.of_entry("MachineDeployment", LATE).await.is_empty());
}

// TO-036, TO-053, TO-152, TO-163, TO-258, TO-269, TO-303, TO-304, TO-306, TO-307, TO-308, TO-309, TO-311, TO-312, TO-313, TO-317, TO-352, TO-357
#[tokio::test]
async fn each_part_waits_for_its_turn_and_takes_all_changes_at_once() {
    let world = World::start().await;
    let env = &world.0;
    let control_plane = world.control_plane().await;
    for entry in [BIG, SMALL, WINDOWS] {
        world.machine(entry, OLD).await;
    }
    // A control plane that is scaling is left alone. Everything else that changes waits with it, but for the health checks.
    let status = json!({"versions": [{"version": OLD, "replicas": 2}], "replicas": 2, "upToDateReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    env.status("KubeadmControlPlane", name(&control_plane), status).await;
    env.topology(|topology| {
        topology["version"] = NEW.into();
        topology["controlPlane"]["metadata"]["labels"] = json!({"with": "version"});
        let workers = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
        workers[0]["replicas"] = 8.into();
        workers.push(json!({"class": "linux-worker", "name": LATE, "replicas": 1}));
    })
    .await;
    world.says("ClusterUpgrading", "scaling").await;
    let seconds = |seconds: u32| json!({"checks": {"nodeStartupTimeoutSeconds": seconds}});
    let mut class = env.get("ClusterClass", "mixed").await.unwrap();
    class["spec"]["controlPlane"]["healthCheck"] = seconds(240);
    class["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = seconds(250);
    env.merge("ClusterClass", "mixed", json!({"spec": class["spec"]})).await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    env.becomes(
        "VSphereCluster",
        name(&infrastructure),
        json!({"spec": {"thumbprint": NEW}}),
    )
    .await;
    let big = env.deployment(BIG).await;
    for (object, seconds) in [(&control_plane, 240), (&big, 250)] {
        let expected = json!({"spec": {"checks": {"nodeStartupTimeoutSeconds": seconds}}});
        env.becomes("MachineHealthCheck", name(object), expected).await;
    }
    world.run(&[], &[BIG, SMALL, WINDOWS]).await;
    let waits = world.control_plane().await;
    assert_eq!(
        (&waits["spec"]["version"], waits["metadata"]["labels"].get("with")),
        (&json!(OLD), None)
    );

    takes_all_at_once(&world, &control_plane).await;

    // One worker set after the other, in the order of the list, with its replicas. The new one comes at the new version.
    let hold = |annotation: &'static str, n: usize| {
        move |topology: &mut Value| {
            topology["workers"]["machineDeployments"][n]["metadata"] = json!({"annotations": {annotation: ""}});
        }
    };
    env.topology(hold("topology.cluster.x-k8s.io/defer-upgrade", 2)).await;
    env.control_plane_runs(NEW).await;
    world.run(&[BIG, LATE], &[SMALL, WINDOWS]).await;
    assert_eq!(env.deployment(BIG).await["spec"]["replicas"], 8);
    world
        .says("ClusterUpgrading", "MachineDeployment foo-small-pool-of-machines-1")
        .await;
    let concurrency =
        |n: Value| json!({"metadata": {"annotations": {"topology.cluster.x-k8s.io/upgrade-concurrency": n}}});
    env.merge("Cluster", "foo", concurrency(json!("2"))).await;
    world.run(&[BIG, LATE, SMALL], &[WINDOWS]).await;

    assert_eq!(
        world.pool_version().await,
        OLD,
        "a pool waits for all MachineDeployments, but not for those that are deferred"
    );

    // The last one is held by its annotations, whatever the concurrency.
    for entry in [BIG, SMALL] {
        world.machine(entry, NEW).await;
    }
    for annotation in [
        "topology.cluster.x-k8s.io/defer-upgrade",
        "topology.cluster.x-k8s.io/hold-upgrade-sequence",
    ] {
        env.topology(hold(annotation, 2)).await;
        world.says("MachineDeploymentsUpgradeDeferred", "deferred using").await;
        world.run(&[], &[WINDOWS]).await;
    }
    assert!(
        env.deployment(WINDOWS).await["metadata"]
            .get("annotations")
            .is_none_or(|all| all.get("topology.cluster.x-k8s.io/hold-upgrade-sequence").is_none())
    );
    env.topology(|topology| topology["workers"]["machineDeployments"][2]["metadata"] = Value::Null)
        .await;
    world.run(&[WINDOWS], &[]).await;
    world.machine(WINDOWS, NEW).await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(world.pool_version().await, NEW);
    let events = env.list("Event").await;
    let told = |part: &str| {
        events
            .iter()
            .any(|event| event["reason"] == "TopologyUpdate" && event["message"].as_str().unwrap().contains(part))
    };
    assert!(told(NEW), "{events:#?}");
    world.0.stop().await;
}

// TO-305: the same upgrade is asked for all the time, and each of these holds it back.
#[tokio::test]
async fn a_control_plane_takes_a_version_only_when_it_and_all_workers_rest() {
    let world = World::start().await;
    let env = &world.0;
    let control_plane = world.control_plane().await;
    let (name, replicas) = (name(&control_plane), 3);
    let rests = json!({
        "versions": [{"version": OLD, "replicas": replicas}], "replicas": replicas, "upToDateReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    });
    let with = |field: &str, value: Value| {
        let mut status = rests.clone();
        status[field] = value;
        status
    };
    // Admission would refuse the version while the control plane is being provisioned.
    env.status("KubeadmControlPlane", name, with("replicas", 2.into()))
        .await;
    env.topology(|topology| topology["version"] = NEW.into()).await;
    let mut cases = vec![
        ("provisioned", with("versions", Value::Null)),
        (
            "KubeadmControlPlane",
            with("versions", json!([{"version": "v1.31.0", "replicas": 3}])),
        ),
    ];
    for counter in ["replicas", "upToDateReplicas", "readyReplicas", "availableReplicas"] {
        cases.push(("scaling", with(counter, 2.into())));
    }
    for (said, status) in cases {
        env.status("KubeadmControlPlane", name, status.clone()).await;
        world.says("ClusterUpgrading", said).await;
        env.quiet().await;
        assert_eq!(world.control_plane().await["spec"]["version"], OLD, "{status}");
    }
    // A Machine of a worker set, and a Node of a pool, that are not at the version of the set.
    world.machine(SMALL, "v1.31.0").await;
    env.status("KubeadmControlPlane", name, rests).await;
    let deployment = env.deployment(SMALL).await;
    world
        .says("ClusterUpgrading", deployment["metadata"]["name"].as_str().unwrap())
        .await;
    env.quiet().await;
    assert_eq!(world.control_plane().await["spec"]["version"], OLD);
    let pool = env.of_entry("MachinePool", "mp-0").await.remove(0);
    let pool = pool["metadata"]["name"].as_str().unwrap();
    let nodes = |version: &str| json!({"versions": [{"version": version, "replicas": 1}]});
    env.status("MachinePool", pool, nodes("v1.31.0")).await;
    world.machine(SMALL, OLD).await;
    world.says("ClusterUpgrading", pool).await;
    env.quiet().await;
    assert_eq!(world.control_plane().await["spec"]["version"], OLD);
    env.status("MachinePool", pool, nodes(OLD)).await;
    env.becomes("KubeadmControlPlane", name, json!({"spec": {"version": NEW}}))
        .await;
    world.0.stop().await;
}

// TO-305: build metadata counts.
#[tokio::test]
async fn a_control_plane_that_comes_to_another_build_is_upgrading() {
    let world = World::start().await;
    let env = &world.0;
    let control_plane = world.control_plane().await;
    let build = |number: u32| format!("{OLD}+build.{number}");
    let at = |version: &str| json!({"spec": {"version": version}});
    // Admission would want the end of each upgrade.
    let unchecked =
        json!({"metadata": {"annotations": {"unsafe.topology.cluster.x-k8s.io/disable-update-version-check": ""}}});
    env.merge("Cluster", "foo", unchecked).await;
    env.topology(|topology| topology["version"] = build(2).into()).await;
    env.becomes("KubeadmControlPlane", name(&control_plane), at(&build(2)))
        .await;
    env.control_plane_runs(&build(1)).await;
    env.topology(|topology| topology["version"] = NEW.into()).await;
    world.says("ClusterUpgrading", NEW).await;
    env.quiet().await;
    assert_eq!(world.control_plane().await["spec"]["version"], build(2));
    env.control_plane_runs(&build(2)).await;
    env.becomes("KubeadmControlPlane", name(&control_plane), at(NEW)).await;
    world.0.stop().await;
}

// TO-320
#[tokio::test]
async fn events_of_the_cluster_tell_versions_and_replaced_templates() {
    let world = World::start().await;
    let env = &world.0;
    let before = env.deployment(WINDOWS).await;
    let old = before["spec"]["template"]["spec"]["infrastructureRef"]["name"].clone();
    let told = async |reason: &str, parts: &[&str]| {
        env.wait(&format!("an event {reason} with {parts:?}"), async || {
            let events = env.list("Event").await;
            let is_it = |event: &&Value| {
                let message = event["message"].as_str().unwrap_or_default();
                event["reason"] == reason
                    && event["type"] == "Normal"
                    && event["involvedObject"]["kind"] == "Cluster"
                    && event["involvedObject"]["name"] == "foo"
                    && parts.iter().all(|part| message.contains(part))
            };
            events.iter().find(is_it).map(drop)
        })
        .await;
    };
    let control_plane = world.control_plane().await;
    for made in [&control_plane, &before] {
        let (kind, name) = (
            made["kind"].as_str().unwrap(),
            format!("{:?}", format!("bar/{}", name(made))),
        );
        told("TopologyCreate", &["Created", kind, &name]).await;
    }
    let patch = json!({"spec": {"template": {"spec": {"numCPUs": 16}}}});
    env.merge("VSphereMachineTemplate", "windows-vsphere-template", patch)
        .await;
    let replaces = format!("as a replacement for {old} (template rotation)");
    told("TopologyCreate", &["Created VSphereMachineTemplate", &replaces]).await;
    let set = format!("{:?}", format!("bar/{}", name(&before)));
    told("TopologyUpdate", &["Updated MachineDeployment", &set]).await;
    env.topology(|topology| topology["version"] = NEW.into()).await;
    let change = format!("with version change from {OLD} to {NEW}");
    told("TopologyUpdate", &["Updated KubeadmControlPlane", &change]).await;
    env.control_plane_runs(NEW).await;
    told("TopologyUpdate", &["Updated MachineDeployment", &set, &change]).await;
    env.reconciled("ReconcileSucceeded").await;
    env.topology(|topology| {
        topology["workers"]["machineDeployments"]
            .as_array_mut()
            .unwrap()
            .remove(2);
    })
    .await;
    told("TopologyDelete", &["Deleted MachineDeployment", &set]).await;
    world.0.stop().await;
}

// TO-159
#[tokio::test]
async fn a_patch_of_a_pool_sees_the_facts_of_its_entry() {
    let world = World::start().await;
    let env = &world.0;
    let pool = env.of_entry("MachinePool", "mp-0").await.remove(0);
    let facts = [
        "version",
        "class",
        "name",
        "topologyName",
        "replicas",
        "bootstrap.configRef.name",
        "infrastructureRef.name",
    ];
    let commands: Vec<String> = (facts.iter())
        .map(|fact| format!("- \"{{{{ .builtin.machinePool.{fact} }}}}\""))
        .collect();
    let patches = json!([{"name": "pools", "definitions": [{
        "selector": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
            "matchResources": {"machinePoolClass": {"names": ["pool"]}, "machineDeploymentClass": {"names": ["*"]}},
        },
        "jsonPatches": [{"op": "add", "path": "/spec/template/spec/preKubeadmCommands", "valueFrom": {"template":
            format!("{{{{ if .builtin.machinePool }}}}{}{{{{ else }}}}[other]{{{{ end }}}}", commands.join("\n"))}}],
    }]}]);
    env.merge("ClusterClass", "mixed", json!({"spec": {"patches": patches}}))
        .await;
    let reference = |path: &str| pool.pointer(path).unwrap().as_str().unwrap().to_owned();
    let (config, infrastructure) = (
        reference("/spec/template/spec/bootstrap/configRef/name"),
        reference("/spec/template/spec/infrastructureRef/name"),
    );
    let seen = json!([OLD, "pool", name(&pool), "mp-0", "1", config, infrastructure]);
    env.becomes("KubeadmConfig", &config, json!({"spec": {"preKubeadmCommands": seen}}))
        .await;
    // The templates of MachineDeployments have no pool.
    env.reconciled("ReconcileSucceeded").await;
    for template in env.generated("KubeadmConfigTemplate").await {
        let commands = &template["spec"]["template"]["spec"]["preKubeadmCommands"];
        assert!(commands.is_null() || *commands == json!(["other"]), "{template:#}");
    }
    world.0.stop().await;
}
