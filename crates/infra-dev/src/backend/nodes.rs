//! What kubeadm and the kubelet leave in a workload cluster, as plain objects: pure.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api_ext::annotations;

use super::authority::Bundle;
use super::cluster_info;
use super::endpoint::Endpoint;

/// The annotation that the kubelet puts on the API object of a static Pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A Node to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeSpec {
    /// The Node's name.
    pub(crate) name: String,
    /// Its provider ID.
    pub(crate) provider_id: String,
    /// The version of its kubelet.
    pub(crate) version: String,
    /// Whether it belongs to the control plane.
    pub(crate) control_plane: bool,
    /// The public keys of authorities that kubeadm accepts on the machine; any without pins.
    pub(crate) pins: Vec<String>,
    /// Whether kubeadm ran on the machine before this process started.
    pub(crate) joined: bool,
}

fn at(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A Node, without its status.
pub(super) fn node(spec: &NodeSpec) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": spec.name, "labels": { "kubernetes.io/hostname": spec.name } },
        "spec": { "providerID": spec.provider_id },
    });
    if spec.control_plane {
        node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
        node["spec"]["taints"] = json!([{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }]);
    }
    node
}

/// The status of a Node whose kubelet is well.
pub(super) fn node_status(spec: &NodeSpec, now: Timestamp) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "lastHeartbeatTime": at(now), "lastTransitionTime": at(now) });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": spec.name },
        "status": {
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
            "nodeInfo": {
                "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": spec.version, "machineID": "", "operatingSystem": "",
                "osImage": "", "systemUUID": "",
            },
        },
    })
}

/// What the kubelet of a Node reports, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kubelet {
    /// The Node is ready.
    #[default]
    Well,
    /// The kubelet does not accept an API server as a client. A real one reports on, while logs and commands fail; here it shows.
    Unreached,
    /// The Node is not ready.
    NotReady,
    /// No more.
    Silent,
}

impl Kubelet {
    /// Status, reason and message of the condition Ready, and the key of the taint that the node lifecycle controller sets.
    fn ready(self) -> (&'static str, &'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Well => ("True", "KubeletReady", "kubelet is posting ready status", None),
            Self::Unreached => {
                let message = "an API server cannot connect to the kubelet";
                (
                    "False",
                    "KubeletNotReady",
                    message,
                    Some("node.kubernetes.io/not-ready"),
                )
            }
            Self::NotReady => {
                let message = "container runtime is down";
                (
                    "False",
                    "KubeletNotReady",
                    message,
                    Some("node.kubernetes.io/not-ready"),
                )
            }
            Self::Silent => {
                let message = "Kubelet stopped posting node status.";
                (
                    "Unknown",
                    "NodeStatusUnknown",
                    message,
                    Some("node.kubernetes.io/unreachable"),
                )
            }
        }
    }
}

/// The changes of specification and status of a Node by what its kubelet reports.
pub(super) fn reported(node: &Value, kubelet: Kubelet, now: Timestamp) -> (Value, Value) {
    let (status, reason, message, taint) = kubelet.ready();
    let list = |at: &Value| at.as_array().cloned().unwrap_or_default();
    let of_kubelets = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let mut taints = list(&node["spec"]["taints"]);
    taints.retain(|taint| !of_kubelets.iter().any(|key| taint["key"] == *key));
    let effects = ["NoSchedule", "NoExecute"].iter();
    taints.extend(taint.iter().flat_map(|key| {
        effects
            .clone()
            .map(move |effect| json!({ "key": key, "effect": effect }))
    }));
    let mut conditions = list(&node["status"]["conditions"]);
    for condition in &mut conditions {
        if condition["type"] == "Ready" {
            condition["status"] = json!(status);
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
            condition["lastTransitionTime"] = json!(at(now));
        } else if kubelet == Kubelet::Silent {
            condition["status"] = json!("Unknown");
        } else {
            condition["status"] = json!("False");
        }
    }
    (
        json!({ "spec": { "taints": taints } }),
        json!({ "status": { "conditions": conditions } }),
    )
}

/// The change of the status of a Pod by what the kubelet of its Node reports.
pub(super) fn pod_readiness(kubelet: Kubelet, now: Timestamp) -> Value {
    let status = if kubelet == Kubelet::Well { "True" } else { "False" };
    json!({ "status": { "conditions": [{ "type": "Ready", "status": status, "lastTransitionTime": at(now) }] } })
}

/// The static Pod of an etcd member.
pub(super) const ETCD: &str = "etcd";
/// The static Pods of a control plane Node.
pub(super) const COMPONENTS: [&str; 4] = [ETCD, "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The name of a static Pod.
pub(super) fn pod_name(component: &str, node: &str) -> String {
    format!("{component}-{node}")
}

fn image(component: &str, version: &str) -> String {
    if component == ETCD {
        "registry.k8s.io/etcd:3.6.6-0".to_owned()
    } else {
        format!("registry.k8s.io/{component}:{version}")
    }
}

/// A static Pod, without its status.
pub(super) fn pod(component: &str, node: &str, version: &str, etcd: &Value) -> Value {
    let mut annotations = json!({ (MIRROR): node });
    if component == ETCD
        && let (Some(own), Some(more)) = (annotations.as_object_mut(), etcd.as_object())
    {
        own.extend(more.clone());
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(component, node),
            "namespace": "kube-system",
            "labels": { "component": component, "tier": "control-plane" },
            "annotations": annotations,
        },
        "spec": { "nodeName": node, "containers": [{ "name": component, "image": image(component, version) }] },
    })
}

/// What an etcd Pod says of its member.
pub(super) fn etcd_annotations(cluster: u64, member: u64) -> Value {
    json!({ (annotations::ETCD_CLUSTER_ID): cluster.to_string(), (annotations::ETCD_MEMBER_ID): member.to_string() })
}

/// The status of a Pod that runs.
pub(super) fn pod_status(component: &str, node: &str, version: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": pod_name(component, node), "namespace": "kube-system" },
        "status": {
            "phase": "Running",
            "startTime": at(now),
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": at(now) }],
            "containerStatuses": [{
                "name": component, "image": image(component, version), "imageID": "", "ready": true, "started": true,
                "restartCount": 0, "state": { "running": { "startedAt": at(now) } },
            }],
        },
    })
}

/// The version of kubeadm on a machine: that of the image of this cloud, unless the Machine has a version.
pub(super) fn kubeadm_version(version: &str) -> &str {
    if version.is_empty() { "v1.36.0" } else { version }
}

/// The ConfigMap in which kubeadm keeps its configuration.
pub(super) const KUBEADM_CONFIG: &str = "kubeadm-config";
/// The key of the configuration.
pub(super) const CLUSTER_CONFIGURATION: &str = "ClusterConfiguration";

/// What `kubeadm init` leaves in the cluster. `configuration` is what it stores for the machines that join, which find the API server at
/// `endpoint` and trust `authorities`.
pub(super) fn kubeadm_objects(
    version: &str,
    configuration: &str,
    endpoint: &Endpoint,
    authorities: &Bundle,
) -> Vec<Value> {
    let container = |name: &str, image: String| json!([{ "name": name, "image": image }]);
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "kubeadm:get-nodes" },
            "rules": [{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "kubeadm:get-nodes" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubeadm:get-nodes" },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                "name": "system:bootstrappers:kubeadm:default-node-token",
            }],
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": KUBEADM_CONFIG, "namespace": "kube-system" },
            "data": { (CLUSTER_CONFIGURATION): configuration },
        }),
        cluster_info::config_map(endpoint, authorities),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": { "name": "kube-proxy", "namespace": "kube-system", "labels": { "component": "kube-proxy" } },
            "spec": {
                "selector": { "matchLabels": { "k8s-app": "kube-proxy" } },
                "template": {
                    "metadata": { "labels": { "k8s-app": "kube-proxy" } },
                    "spec": { "containers": container("kube-proxy", format!("registry.k8s.io/kube-proxy:{version}")) },
                },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "coredns", "namespace": "kube-system" },
            "data": { "Corefile": ".:53 {\n    forward . /etc/resolv.conf\n}\n" },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "coredns", "namespace": "kube-system" },
            "spec": {
                "selector": { "matchLabels": { "k8s-app": "kube-dns" } },
                "template": {
                    "metadata": { "labels": { "k8s-app": "kube-dns" } },
                    "spec": { "containers": container("coredns", "registry.k8s.io/coredns/coredns:v1.10.1".to_owned()) },
                },
            },
        }),
    ]
}
