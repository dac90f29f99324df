//! Kubernetes' own kinds: the codecs of those that controllers write, and narrow views of those that are only read.
//!
//! A view has the fields that a controller looks at, under the names that they have in Kubernetes, and leaves out the rest.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{
    AttachedVolume, ConfigMap, ContainerState, Event, KeyToPath, NodeAddress, NodeCondition, NodeSystemInfo,
    ObjectReference, PodCondition, Secret, Taint,
};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Serialize};

crate::codec!(
    ClusterRoleBinding,
    ConfigMap,
    DaemonSet,
    Deployment,
    Event,
    Namespace,
    Node,
    PersistentVolume,
    Pod,
    Secret,
    ValidatingWebhookConfiguration,
    VolumeAttachment,
);

crate::parts!(OwnerReference);

/// Defines a view: a kind with metadata and some of its fields.
macro_rules! view {
    (
        $(#[doc = $doc:literal])+
        $kind:ident, $group:literal, $version:literal, $plural:literal, $scope:ty,
        { $( $(#[doc = $field_doc:literal])+ $field:ident: $type:ty, )* }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $kind {
            /// Standard object metadata.
            #[serde(default)]
            pub metadata: ObjectMeta,
            $( $(#[doc = $field_doc])+ #[serde(default)] pub $field: $type, )*
        }

        impl kube_core::Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;
            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

view!(
    /// A Node of a workload cluster.
    Node, "", "v1", "nodes", ClusterResourceScope,
    {
        /// What the Node is.
        spec: Option<NodeSpec>,
        /// What its kubelet reports.
        status: Option<NodeStatus>,
    }
);

/// What a Node is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The name of the machine at its infrastructure provider.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Its taints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
    /// Whether no new Pods are scheduled to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unschedulable: Option<bool>,
}

/// What a kubelet reports of its Node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Where the Node can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<NodeAddress>>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<NodeCondition>>,
    /// Its versions and identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeSystemInfo>,
    /// The volumes that are attached to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes_attached: Option<Vec<AttachedVolume>>,
}

view!(
    /// A Pod of a workload cluster.
    Pod, "", "v1", "pods", NamespaceResourceScope,
    {
        /// What it runs with.
        spec: PodSpec,
        /// What became of it.
        status: Option<PodStatus>,
    }
);

/// What a Pod runs with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodSpec {
    /// Its volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<PodVolume>>,
}

/// A volume of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodVolume {
    /// The claim that it comes from, if it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
}

/// The claim that a volume of a Pod comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// The name of the PersistentVolumeClaim, in the namespace of the Pod.
    #[serde(default)]
    pub claim_name: String,
}

/// What became of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PodCondition>>,
    /// Its containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_statuses: Option<Vec<ContainerStatus>>,
}

/// What became of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// What it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ContainerState>,
    /// What it was before it was restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_state: Option<ContainerState>,
}

view!(
    /// A volume that is attached to a Node, or is to be.
    VolumeAttachment, "storage.k8s.io", "v1", "volumeattachments", ClusterResourceScope,
    {
        /// Where it is attached.
        spec: VolumeAttachmentSpec,
        /// Whether it is attached now.
        status: VolumeAttachmentStatus,
    }
);

/// Where a volume is attached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// The name of the Node.
    #[serde(default)]
    pub node_name: String,
    /// What is attached.
    #[serde(default)]
    pub source: VolumeAttachmentSource,
}

/// What is attached by a VolumeAttachment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachmentSource {
    /// The name of the PersistentVolume; none when the volume is defined in the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_name: Option<String>,
}

/// Whether a volume is attached now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeAttachmentStatus {
    /// Whether the attachment has succeeded and was not undone.
    #[serde(default)]
    pub attached: bool,
}

view!(
    /// A volume of a workload cluster.
    PersistentVolume, "", "v1", "persistentvolumes", ClusterResourceScope,
    {
        /// What it is.
        spec: PersistentVolumeSpec,
    }
);

/// What a PersistentVolume is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// The claim that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ObjectReference>,
    /// Its name at a CSI driver, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi: Option<CsiSource>,
}

/// The name of a volume at its CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsiSource {
    /// The name of the driver.
    #[serde(default)]
    pub driver: String,
    /// The name that the driver gave the volume.
    #[serde(default)]
    pub volume_handle: String,
}

view!(
    /// A Namespace of a workload cluster.
    Namespace, "", "v1", "namespaces", ClusterResourceScope,
    {}
);

view!(
    /// A DaemonSet of a workload cluster.
    DaemonSet, "apps", "v1", "daemonsets", NamespaceResourceScope,
    {
        /// What it runs.
        spec: DaemonSetSpec,
    }
);

view!(
    /// A Deployment of a workload cluster.
    Deployment, "apps", "v1", "deployments", NamespaceResourceScope,
    {
        /// What it runs.
        spec: DeploymentSpec,
    }
);

/// What a Deployment runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeploymentSpec {
    /// Its Pods.
    #[serde(default)]
    pub template: PodTemplate,
}

/// What a DaemonSet runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonSetSpec {
    /// Its Pods.
    #[serde(default)]
    pub template: PodTemplate,
}

/// What a Pod is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodTemplate {
    /// The Pod's specification.
    #[serde(default)]
    pub spec: PodTemplateSpec,
}

/// The specification of Pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodTemplateSpec {
    /// Its containers.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// Its volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<TemplateVolume>,
}

/// A volume of a Pod that is made from a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateVolume {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The ConfigMap whose keys are its files, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapFiles>,
}

/// Keys of a ConfigMap as files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigMapFiles {
    /// The name of the ConfigMap.
    #[serde(default)]
    pub name: String,
    /// The keys that are files; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<KeyToPath>,
}

/// A container of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its image.
    #[serde(default)]
    pub image: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::{Codec as _, Stored as _};

    #[test]
    fn views_have_the_names_of_kubernetes() {
        let node = json!({
            "metadata": {"name": "n"},
            "spec": {"providerID": "p", "taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true},
            "status": {
                "addresses": [{"address": "1.2.3.4", "type": "InternalIP"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        assert_eq!(Node::from_json(&node).unwrap().to_json(), node);
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"state": {"waiting": {"reason": "r"}}, "lastState": {"terminated": {"exitCode": 1}}}],
            },
        });
        assert_eq!(Pod::from_json(&pod).unwrap().to_json(), pod);
        let attachment = json!({
            "metadata": {}, "spec": {"nodeName": "n", "source": {"persistentVolumeName": "v"}}, "status": {"attached": true},
        });
        assert_eq!(VolumeAttachment::from_json(&attachment).unwrap().to_json(), attachment);
        let volume = json!({
            "metadata": {},
            "spec": {"claimRef": {"namespace": "a", "name": "c"}, "csi": {"driver": "d", "volumeHandle": "h"}},
        });
        assert_eq!(PersistentVolume::from_json(&volume).unwrap().to_json(), volume);
        let set =
            json!({"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        assert_eq!(DaemonSet::from_json(&set).unwrap().to_json(), set);
        let volumes =
            json!([{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "mode": 420, "path": "p"}]}}]);
        let deployment =
            json!({"metadata": {}, "spec": {"template": {"spec": {"containers": [], "volumes": volumes}}}});
        assert_eq!(Deployment::from_json(&deployment).unwrap().to_json(), deployment);
    }
}
