//! The founding proposal's third and fourth example, with AWS kinds that no controller implements: as they are printed, and put right.

use serde_json::{Value, json};

use crate::env::{DEFINITIONS, Env, VSPHERE, condition, differs, documents, name};

/// Class and Cluster as the proposal prints them, in the shape of v1beta2 and without the dots that stand for the rest.
const PRINTED: &str = include_str!("founding/variables.yaml");

/// Kinds, and templates for them, of another provider.
fn for_aws(yaml: &str) -> Vec<Value> {
    let text = yaml.replace("VSphere", "AWS").replace("vsphere", "aws");
    documents(
        &text
            .replace("server:", "region:")
            .replace("template: {type: string}", "instanceType: {type: string}"),
    )
}

/// The example with the rest of a class around it.
fn printed() -> (Value, Value) {
    let mut all = documents(PRINTED).into_iter();
    let (mut class, mut cluster) = (all.next().unwrap(), all.next().unwrap());
    let around = for_aws(VSPHERE).pop().unwrap();
    for part in ["infrastructure", "controlPlane", "workers"] {
        class["spec"][part] = around["spec"][part].clone();
    }
    let topology = &mut cluster["spec"]["topology"];
    topology["version"] = json!("v1.31.1");
    topology["controlPlane"] = json!({"replicas": 3});
    topology["workers"] = json!({"machineDeployments": [{"class": "linux-worker", "name": "md", "replicas": 1}]});
    (class, cluster)
}

/// What the proposal means.
fn put_right(class: &mut Value) {
    let spec = &mut class["spec"];
    spec["variables"][1]["required"] = false.into();
    let patches = &mut spec["patches"];
    patches[0]["definitions"][0]["selector"]["matchResources"] = json!({"infrastructureCluster": true});
    for (n, path) in [(0, "region"), (1, "instanceType")] {
        patches[n]["definitions"][0]["jsonPatches"][0]["path"] = json!(format!("/spec/template/spec/{path}"));
    }
    patches[1]["definitions"][0]["jsonPatches"][0]["valueFrom"]["variable"] = "controlPlaneMachineType".into();
}

async fn start() -> Env {
    let env = Env::start_with(for_aws(DEFINITIONS)).await;
    let templates = for_aws(VSPHERE)
        .into_iter()
        .filter(|object| object["kind"] != "ClusterClass");
    for mut template in templates {
        if template["kind"] == "AWSMachineTemplate" {
            let spec = template["spec"]["template"]["spec"].as_object_mut().unwrap();
            spec.remove("template");
            spec.insert("instanceType".to_owned(), "t3.small".into());
        }
        env.apply(template).await;
    }
    env
}

/// Region, type of the control plane's machines and type of the workers' machines of a Cluster.
async fn is_running(env: &Env, cluster: &str, expected: [&str; 3]) {
    env.wait(&format!("{cluster} with {expected:?}"), async || {
        let of = |object: &Value| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster;
        let infrastructure = env.generated("AWSCluster").await.into_iter().find(|one| of(one))?;
        let control_plane = env
            .generated("KubeadmControlPlane")
            .await
            .into_iter()
            .find(|one| of(one))?;
        let deployment = env
            .generated("MachineDeployment")
            .await
            .into_iter()
            .find(|one| of(one))?;
        let mut found = vec![infrastructure["spec"]["region"].clone()];
        for reference in [
            &control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"],
            &deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"],
        ] {
            let template = env.get("AWSMachineTemplate", reference.as_str()?).await?;
            found.push(template["spec"]["template"]["spec"]["instanceType"].clone());
        }
        (found == expected).then_some(())
    })
    .await;
}

// TO-071, TO-079, TO-127, TO-134, TO-142: each slip of the printed class is refused by itself, with the field.
#[tokio::test]
async fn the_printed_class_is_refused_for_each_of_its_slips() {
    let env = start().await;
    let (class, _) = printed();
    let patch = "spec.patches[0].definitions[0]";
    for (slip, pointer, expected) in [
        (
            "required",
            "/spec/variables/1",
            "spec.variables[1].required: Required value".to_owned(),
        ),
        (
            "matchResources",
            "/spec/patches/0/definitions/0/selector",
            format!("{patch}.selector.matchResources: Required value"),
        ),
        (
            "path",
            "/spec/patches/0/definitions/0/jsonPatches/0",
            "path must start with \"/spec".to_owned(),
        ),
        (
            "valueFrom",
            "/spec/patches/1/definitions/0/jsonPatches/0",
            "variable with name machineType cannot be found".to_owned(),
        ),
    ] {
        let mut with_slip = class.clone();
        put_right(&mut with_slip);
        let as_printed = class.pointer(pointer).unwrap().get(slip).cloned();
        let part = with_slip.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        match as_printed {
            Some(as_printed) => drop(part.insert(slip.to_owned(), as_printed)),
            None => drop(part.remove(slip)),
        }
        let answer = env.refused(&with_slip).await;
        assert!(answer.contains(&expected), "{slip}: {answer}");
    }
    env.stop().await;
}

// TO-062, TO-071, TO-085, TO-086, TO-094, TO-095, TO-108, TO-115, TO-117, TO-125, TO-128, TO-132, TO-133, TO-138, TO-148, TO-361, TO-363, TO-364, TO-365:
// put right, one class gives Clusters in two regions, and a larger control plane later.
#[tokio::test]
async fn the_class_put_right_gives_clusters_that_differ_by_their_variables() {
    let env = start().await;
    let (mut class, cluster) = printed();
    put_right(&mut class);
    env.apply(class).await;
    env.wait("the class", async || {
        let class = env.get("ClusterClass", "my-cluster-class").await?;
        (class["status"]["observedGeneration"] == class["metadata"]["generation"]).then_some(())
    })
    .await;
    for (variables, part) in [
        (json!([]), "required variable \"region\" must be set"),
        (json!([{"name": "region", "value": 5}]), "must be of type string"),
        (
            json!([{"name": "region", "value": "a"}, {"name": "zone", "value": "b"}]),
            "spec.topology.variables[zone]",
        ),
    ] {
        let mut bad = cluster.clone();
        bad["spec"]["topology"]["variables"] = variables;
        let answer = env.refused(&bad).await;
        assert!(answer.contains(part), "{answer}");
    }
    // A value for one worker set is none for the Cluster.
    let mut bad = cluster.clone();
    bad["spec"]["topology"]["variables"].take();
    let of_workers = json!({"overrides": [{"name": "region", "value": "a"}]});
    bad["spec"]["topology"]["workers"]["machineDeployments"][0]["variables"] = of_workers;
    assert!(
        env.refused(&bad)
            .await
            .contains("required variable \"region\" must be set")
    );

    let mut other = cluster.clone();
    other["metadata"]["name"] = "other".into();
    other["spec"]["topology"]["variables"] = json!([{"name": "region", "value": "eu-west-1"}]);
    other["spec"]["topology"]["workers"]["machineDeployments"][0]["variables"] =
        json!({"overrides": [{"name": "controlPlaneMachineType", "value": "of-workers"}]});
    for cluster in [cluster, other] {
        env.apply(cluster).await;
    }
    is_running(&env, "my-cluster", ["us-east-1", "t3.large", "t3.small"]).await;
    is_running(&env, "other", ["eu-west-1", "t3.large", "t3.small"]).await;
    let stored = env.get("Cluster", "my-cluster").await.unwrap();
    let both =
        json!([{"name": "region", "value": "us-east-1"}, {"name": "controlPlaneMachineType", "value": "t3.large"}]);
    assert_eq!(differs(&stored["spec"]["topology"]["variables"], &both), None);

    let before = env.deployment_of("my-cluster").await;
    let larger =
        json!([{"name": "region", "value": "us-east-1"}, {"name": "controlPlaneMachineType", "value": "t3.xlarge"}]);
    env.merge(
        "Cluster",
        "my-cluster",
        json!({"spec": {"topology": {"variables": larger}}}),
    )
    .await;
    is_running(&env, "my-cluster", ["us-east-1", "t3.xlarge", "t3.small"]).await;
    is_running(&env, "other", ["eu-west-1", "t3.large", "t3.small"]).await;
    let after = env.deployment_of("my-cluster").await;
    assert_eq!(
        (name(&before), &before["spec"]),
        (name(&after), &after["spec"]),
        "workers are not touched"
    );
    env.wait("the report", async || {
        let cluster = env.get("Cluster", "my-cluster").await?;
        (condition(&cluster, "TopologyReconciled")?["status"] == "True").then_some(())
    })
    .await;
    env.stop().await;
}
