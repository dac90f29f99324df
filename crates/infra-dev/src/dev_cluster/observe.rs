//! Everything the DevCluster controller reads. The only reader.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::labels;
use windlass_api_ext::infrastructure::DevCluster;
use windlass_controller_runtime::{Cx, ObjectKey};

use crate::backend::Cloud;

/// What was read.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The DevCluster.
    pub(super) object: Arc<DevCluster>,
    /// The Cluster that it belongs to.
    pub(super) cluster: Option<ObjectKey>,
    /// The address that the cluster has in the simulated cloud.
    pub(super) address: Option<SocketAddr>,
    /// The ports in the specs of the other DevClusters, once the plan has asked for them.
    pub(super) taken: Option<BTreeSet<u16>>,
}

/// What the plan may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The ports of the other DevClusters.
    TakenPorts,
}

impl Observed {
    pub(super) fn new(cloud: &Cloud, object: Arc<DevCluster>) -> Self {
        let cluster = cluster_key(&object.metadata);
        let address = cluster.as_ref().and_then(|key| cloud.address(key, Ipv4Addr::LOCALHOST));
        Self {
            object,
            cluster,
            address,
            taken: None,
        }
    }

    /// The port in the spec.
    pub(super) fn port(&self) -> Option<u16> {
        port_of(&self.object)
    }
}

pub(super) fn observe(cloud: &Cloud, object: Arc<DevCluster>) -> Observed {
    Observed::new(cloud, object)
}

/// Reads the ports of the other DevClusters. After a restart the cloud does not know them yet.
pub(super) fn answer(cx: &Cx, mut seen: Observed, question: Question) -> Observed {
    let Question::TakenPorts = question;
    let own = &seen.object.metadata.uid;
    let all = cx.cache::<DevCluster>().all();
    let others = all.iter().filter(|other| other.metadata.uid != *own);
    seen.taken = Some(others.filter_map(|other| port_of(other)).collect());
    seen
}

fn port_of(object: &DevCluster) -> Option<u16> {
    let endpoint = object.spec.as_ref()?.control_plane_endpoint.as_ref()?;
    u16::try_from(endpoint.port?).ok().filter(|port| *port > 0)
}

/// The Cluster an object belongs to: its owner, or what its label names while it is being deleted.
fn cluster_key(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let namespace = metadata.namespace.as_deref()?;
    let owner = metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == "Cluster");
    let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    let name = owner.map(|owner| &owner.name).or(label)?;
    Some(ObjectKey::new(namespace, name))
}
