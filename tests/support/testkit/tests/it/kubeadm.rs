//! What kubeadm needs of the controllers: a configuration that it can read, and bootstrap data that stays.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, NAMESPACE, wait};

/// A cluster with another `kubeadmConfigSpec`.
async fn apply(env: &Env, cluster: &ByHand, kubeadm: Option<Value>) {
    for mut object in cluster.objects() {
        if object["kind"] == "KubeadmControlPlane" {
            object["spec"].as_object_mut().unwrap().remove("kubeadmConfigSpec");
            if let Some(kubeadm) = &kubeadm {
                object["spec"]["kubeadmConfigSpec"] = kubeadm.clone();
            }
        }
        env.apply(&object).await;
    }
}

/// kubeadm's configuration as it is stored in the workload cluster.
async fn configuration(env: &Env, cluster: &ByHand) -> Value {
    let client = super::life::workload(env, cluster.shape()).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let map = maps.get("kubeadm-config").await.unwrap();
    serde_saphyr::from_str(&map.data.unwrap()["ClusterConfiguration"]).unwrap()
}

#[tokio::test]
async fn a_control_plane_without_kubeadm_settings_runs_and_keeps_its_data() {
    let env = Env::start().await;
    let plain = ByHand::new("plain", 1, 1).managed().version("v1.36.0");
    apply(&env, &plain, None).await;
    let files = ByHand::new("files", 1, 0).managed().version("v1.30.0");
    apply(
        &env,
        &files,
        Some(json!({ "files": [{ "path": "/a", "content": "b" }] })),
    )
    .await;
    plain.shape().wait_running(&env).await;
    files.shape().wait_running(&env).await;

    // A Secret whose owners are lost is taken back, also after its Machine has joined.
    for machine in env.list::<Machine>().await {
        let name = machine.metadata.name.unwrap();
        let owners = |secret: &Secret| secret.metadata.owner_references.clone().unwrap_or_default();
        let key = ObjectKey::new(NAMESPACE, &name);
        let before = owners(&env.wait_for::<Secret>(&key, "there", |_| true).await);
        let lost = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
        let secrets = env.api::<Secret>();
        secrets.patch(&name, &PatchParams::default(), &lost).await.unwrap();
        env.wait_for::<Secret>(&key, "owned again", |secret| owners(secret) == before)
            .await;
    }
    env.stop().await;
}

#[tokio::test]
async fn an_upgrade_writes_the_configuration_in_the_format_of_the_new_kubeadm() {
    let env = Env::start().await;
    let arguments = |name: &str| json!({ "apiServer": { "extraArgs": [{ "name": name, "value": "1" }] } });
    let old = ByHand::new("up", 1, 0).managed().version("v1.30.0");
    apply(&env, &old, Some(json!({ "clusterConfiguration": arguments("old") }))).await;
    old.shape().wait_running(&env).await;
    assert_eq!(configuration(&env, &old).await["apiVersion"], "kubeadm.k8s.io/v1beta3");

    // Joins read the configuration: each of these versions would refuse that of the other one.
    let new = old.version("v1.31.0");
    apply(&env, &new, Some(json!({ "clusterConfiguration": arguments("new") }))).await;
    new.shape().wait_running(&env).await;
    let stored = configuration(&env, &new).await;
    assert_eq!(stored["apiVersion"], "kubeadm.k8s.io/v1beta4");
    assert_eq!(stored["kubernetesVersion"], "v1.31.0");
    assert_eq!(
        stored["apiServer"],
        json!({ "extraArgs": [{ "name": "new", "value": "1" }] })
    );
    assert_eq!(stored["clusterName"], "up");
    env.stop().await;
}

#[tokio::test]
async fn core_dns_comes_to_the_version_of_the_control_plane_with_its_corefile() {
    let env = Env::start().await;
    let cluster = ByHand::new("dns", 1, 0).managed().version("v1.36.0");
    apply(&env, &cluster, None).await;
    cluster.shape().wait_running(&env).await;
    // CoreDNS as kubeadm 1.20 left it.
    let client = super::life::workload(&env, cluster.shape()).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let deployments: Api<Deployment> = Api::namespaced(client, "kube-system");
    let corefile =
        ".:53 {\n    kubernetes cluster.local {\n        transfer to *\n    }\n    forward . /etc/resolv.conf\n}\n";
    let data = json!({ "data": { "Corefile": corefile, "users": "own" } });
    let change = PatchParams::default();
    maps.patch("coredns", &change, &Patch::Merge(&data)).await.unwrap();
    let items = |key: &str| json!([{ "key": key, "path": "Corefile" }]);
    let pods = json!({
        "containers": [{ "name": "coredns", "image": "registry.k8s.io/coredns:1.7.0" }],
        "volumes": [
            { "name": "config-volume", "configMap": { "name": "coredns", "items": items("Corefile") } },
            { "name": "of-the-user", "emptyDir": {} },
        ],
    });
    let old = json!({ "spec": { "template": { "spec": pods } } });
    deployments
        .patch("coredns", &change, &Patch::Strategic(&old))
        .await
        .unwrap();

    let dns = json!({ "clusterConfiguration": { "dns": { "imageTag": "v1.12.0" } } });
    apply(&env, &cluster, Some(dns)).await;
    let image = "registry.k8s.io/coredns/coredns:v1.12.0";
    let updated = |deployment: Deployment| {
        let pods = deployment.spec.template.spec?;
        (pods.containers.first()?.image.as_deref() == Some(image)).then_some(pods)
    };
    let mut looks = wait::looks();
    let pods = tokio::time::timeout(wait::TIMEOUT, async {
        loop {
            if let Some(pods) = updated(deployments.get("coredns").await.unwrap()) {
                return pods;
            }
            looks.tick().await;
        }
    });
    let pods = serde_json::to_value(pods.await.expect("CoreDNS was not updated")).unwrap();
    let volumes = pods["volumes"].as_array().unwrap();
    let volume = |name: &str| volumes.iter().find(|volume| volume["name"] == name);
    assert_eq!(
        volume("config-volume").unwrap()["configMap"]["items"],
        items("Corefile")
    );
    assert!(volume("of-the-user").is_some(), "{volumes:?}");
    let data = maps.get("coredns").await.unwrap().data.unwrap();
    assert_eq!(data["Corefile-backup"], corefile);
    assert!(
        data["Corefile"].contains("    transfer cluster.local {\n        to *\n    }\n"),
        "{data:?}"
    );
    assert_eq!(data["users"], "own");
    assert_eq!(
        configuration(&env, &cluster).await["dns"],
        json!({ "imageTag": "v1.12.0" })
    );
    env.stop().await;
}

/// Waits until kube-proxy of the workload cluster has this version.
async fn wait_kube_proxy(client: &kube::Client, version: &str) {
    let image = format!("registry.k8s.io/kube-proxy:{version}");
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let runs = |set: &DaemonSet| kube_proxy_image(set) == Some(image.as_str());
    let found = wait::until(sets, Some("kube-proxy"), |sets| sets.iter().any(runs)).await;
    assert!(found.is_some(), "kube-proxy is never {image}");
}

fn kube_proxy_image(set: &DaemonSet) -> Option<&str> {
    let pods = set.spec.template.spec.as_ref()?;
    pods.containers.first()?.image.as_deref()
}

/// Asserts that kubeadm has the permissions in the workload cluster that it relies on, as role and subject by the name of the binding.
async fn check_permissions(client: &kube::Client) {
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for (name, role, kind, subject) in [
        (
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            "User",
            "kube-apiserver-kubelet-client",
        ),
        (
            "kubeadm:cluster-admins",
            "cluster-admin",
            "Group",
            "kubeadm:cluster-admins",
        ),
        (
            "kubeadm:get-nodes",
            "kubeadm:get-nodes",
            "Group",
            "system:bootstrappers:kubeadm:default-node-token",
        ),
    ] {
        let binding = bindings
            .get(name)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let refers = (binding.role_ref.kind.as_str(), binding.role_ref.name.as_str());
        assert_eq!(refers, ("ClusterRole", role), "{name}");
        let subjects = binding.subjects.unwrap_or_default();
        let subjects: Vec<_> = subjects.iter().map(|s| (s.kind.as_str(), s.name.as_str())).collect();
        assert_eq!(subjects, [(kind, subject)], "{name}");
    }
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let rules = roles.get("kubeadm:get-nodes").await.unwrap().rules.unwrap_or_default();
    let nodes = |rule: &k8s_openapi::api::rbac::v1::PolicyRule| {
        rule.verbs == ["get"] && rule.resources.as_deref() == Some(&["nodes".to_owned()])
    };
    assert!(rules.iter().any(nodes), "{rules:?}");
}

/// Asserts that each Machine of the control plane is a member of etcd that votes, and that none was ever missing.
fn check_etcd(env: &Env, cluster: &ByHand) {
    let etcd = env.cloud().etcd(&cluster.key()).unwrap();
    let shape = cluster.shape();
    assert_eq!(etcd.members.len(), shape.control_plane, "{shape:?}: {etcd:?}");
    assert!(etcd.members.values().all(|votes| *votes), "{shape:?}: {etcd:?}");
    assert_eq!(etcd.most_missing, 0, "{shape:?}: {etcd:?}");
}

#[tokio::test]
async fn a_control_plane_goes_through_every_size_and_two_minor_versions() {
    let env = Env::start().await;
    let argument = json!({ "apiServer": { "extraArgs": [{ "name": "profiling", "value": "false" }] } });
    let mut cluster = ByHand::new("sizes", 1, 0).managed();
    for (replicas, version, format) in [
        (1, "v1.30.0", "v1beta3"),
        (3, "v1.30.0", "v1beta3"),
        (3, "v1.31.0", "v1beta4"),
        (5, "v1.31.0", "v1beta4"),
        (5, "v1.32.0", "v1beta4"),
        (3, "v1.32.0", "v1beta4"),
        (1, "v1.32.0", "v1beta4"),
    ] {
        let is_upgrade = cluster.shape().control_plane == replicas && version != "v1.30.0";
        cluster = cluster.control_plane(replicas).version(version);
        apply(&env, &cluster, Some(json!({ "clusterConfiguration": argument }))).await;
        cluster.wait_running(&env).await;
        check_etcd(&env, &cluster);
        let stored = configuration(&env, &cluster).await;
        assert_eq!(stored["kubernetesVersion"], version);
        assert_eq!(stored["apiVersion"], format!("kubeadm.k8s.io/{format}"));
        let client = super::life::workload(&env, cluster.shape()).await;
        wait_kube_proxy(&client, version).await;
        if is_upgrade {
            check_permissions(&client).await;
        }
    }
    env.delete("Cluster", "sizes").await;
    env.wait_gone("sizes").await;
    env.stop().await;
}

#[tokio::test]
async fn a_control_plane_begins_with_every_size() {
    let env = Env::start().await;
    let clusters = [1, 3, 5].map(|size| ByHand::new(&format!("begins-{size}"), size, 0).managed());
    for cluster in &clusters {
        cluster.apply(&env).await;
    }
    for cluster in &clusters {
        cluster.wait_running(&env).await;
        check_etcd(&env, cluster);
    }
    env.rest().await;
    assert_eq!(env.created("machines"), 9, "a Machine was made in vain");
    env.stop().await;
}

#[tokio::test]
async fn kube_proxy_is_left_alone_as_long_as_the_control_plane_says_so() {
    let env = Env::start().await;
    let old = ByHand::new("proxy", 1, 0).managed().version("v1.35.0");
    old.apply(&env).await;
    let plane = "proxy-control-plane";
    let skip = |value: Value| json!({ "metadata": { "annotations": { "controlplane.cluster.x-k8s.io/skip-kube-proxy": value } } });
    env.merge("KubeadmControlPlane", plane, &skip(json!(""))).await;
    old.wait_running(&env).await;
    let client = super::life::workload(&env, old.shape()).await;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let before = sets.get("kube-proxy").await.unwrap();

    let new = old.version("v1.36.0");
    new.apply(&env).await;
    new.wait_running(&env).await;
    env.rest().await;
    let after = sets.get("kube-proxy").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    assert_eq!(kube_proxy_image(&after), Some("registry.k8s.io/kube-proxy:v1.35.0"));

    env.merge("KubeadmControlPlane", plane, &skip(Value::Null)).await;
    wait_kube_proxy(&client, "v1.36.0").await;
    env.stop().await;
}
