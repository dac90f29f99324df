//! Decides about a DevCluster: pure. A port is kept for good: the one that the cluster has in the cloud, else the one in the spec, else the
//! lowest that is free.

use std::net::{Ipv4Addr, SocketAddr};

use windlass_kit::{Blocked, Decision, Note, ObjectKey, Seen};

use super::observe::{Observed, Question};
use super::{HOST, PORT_UNAVAILABLE};
use crate::backend::CloudError;

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Create the load balancer of the cluster, or find it there.
    CreateLoadBalancer {
        /// The cluster.
        cluster: ObjectKey,
        /// Its address.
        address: SocketAddr,
        /// Whether the port was free when it was chosen, and no cluster had it before.
        is_new: bool,
    },
    /// Write the endpoint to the spec.
    SetEndpoint {
        /// The cluster that the load balancer belongs to.
        cluster: ObjectKey,
        /// The port.
        port: u16,
    },
    /// Delete the load balancer of the cluster.
    DeleteLoadBalancer(ObjectKey),
    /// Remove the finalizer.
    RemoveFinalizer,
}

/// The decision about one DevCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Effects, in order.
    pub(super) actions: Vec<Action>,
    /// Why there are no effects, and why a port was chosen.
    pub(super) notes: Vec<Note>,
    /// Why no port can be chosen.
    pub(super) blocked: Option<Blocked>,
}

/// Decides.
pub(super) fn plan(seen: &Observed) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    if seen.object.metadata.deletion_timestamp.is_some() {
        let delete = seen.cluster.clone().map(Action::DeleteLoadBalancer);
        plan.actions = delete.into_iter().chain([Action::RemoveFinalizer]).collect();
        return plan.into();
    }
    let Some(cluster) = &seen.cluster else {
        plan.notes.push(Note::new("gets no port before a Cluster owns it"));
        return plan.into();
    };
    match (seen.address, seen.port(), &seen.free) {
        (Some(address), _, _) => plan.listen(cluster, address, false),
        (None, Some(port), _) => plan.listen(cluster, local(port), false),
        (None, None, None) => return Decision::Ask(Question::FreePort),
        (None, None, Some(Seen::Found(port))) => {
            plan.notes.push(Note::new(format!(
                "gets port {port} of {HOST}, the lowest one that is free"
            )));
            plan.listen(cluster, local(*port), true);
        }
        (None, None, Some(Seen::NotFound)) => {
            let message = CloudError::NoPort(cluster.clone()).to_string();
            plan.blocked = Some(Blocked::failed(PORT_UNAVAILABLE, message));
        }
        (None, None, Some(Seen::Failed(why))) => {
            plan.blocked = Some(Blocked::failed(PORT_UNAVAILABLE, why.as_str()));
        }
    }
    plan.into()
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

impl Plan {
    fn listen(&mut self, cluster: &ObjectKey, address: SocketAddr, is_new: bool) {
        self.actions = vec![
            Action::CreateLoadBalancer {
                cluster: cluster.clone(),
                address,
                is_new,
            },
            Action::SetEndpoint {
                cluster: cluster.clone(),
                port: address.port(),
            },
        ];
    }
}

impl windlass_kit::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
