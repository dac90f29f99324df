//! Everything the DevCluster controller reads. The only reader.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::labels;
use windlass_api_ext::infrastructure::DevCluster;
use windlass_controller_runtime::owner::owner_of_kind;
use windlass_controller_runtime::{Cx, ObjectKey};

use crate::backend::Cloud;

/// What was read.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The DevCluster.
    pub(super) object: Arc<DevCluster>,
    /// The Cluster that it belongs to.
    pub(super) cluster: Option<ObjectKey>,
    /// Whether that Cluster exists.
    pub(super) has_cluster: bool,
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
        let cluster = if object.metadata.deletion_timestamp.is_none() {
            owner_key(&object.metadata)
        } else {
            former_key(&object.metadata)
        };
        let address = cluster.as_ref().and_then(|key| cloud.address(key, Ipv4Addr::LOCALHOST));
        Self {
            object,
            cluster,
            has_cluster: false,
            address,
            taken: None,
        }
    }

    /// The port in the spec.
    pub(super) fn port(&self) -> Option<u16> {
        port_of(&self.object)
    }
}

pub(super) fn observe(cx: &Cx, cloud: &Cloud, object: Arc<DevCluster>) -> Observed {
    let mut seen = Observed::new(cloud, object);
    let clusters = cx.cache::<Cluster>();
    seen.has_cluster = seen.cluster.as_ref().is_some_and(|key| clusters.get(key).is_some());
    seen
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

/// The Cluster that owns an object.
pub(super) fn owner_key(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let owner = owner_of_kind(metadata, Cluster::GROUP, Cluster::KIND)?;
    Some(ObjectKey::new(metadata.namespace.as_deref()?, owner.name.as_str()))
}

/// The Cluster that an object belonged to when its deletion began: the owner may be gone already.
fn former_key(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let named = || {
        let label = metadata.labels.as_ref()?.get(labels::CLUSTER_NAME)?;
        Some(ObjectKey::new(metadata.namespace.as_deref()?, label.as_str()))
    };
    owner_key(metadata).or_else(named)
}
