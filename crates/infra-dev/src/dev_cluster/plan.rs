//! Decides about a DevCluster: pure. A port is kept for good: the one that the cluster has in the cloud, else the one in the spec, else a
//! free one. The cloud chooses that, as it reserves it in the same moment.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use windlass_controller_runtime::{Decision, Note, ObjectKey};

use super::HOST;
use super::observe::{Observed, Question};

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Create the load balancer of the cluster, or find it there, and write its address to the spec as the endpoint.
    ProvideEndpoint {
        /// The cluster.
        cluster: ObjectKey,
        /// The address of the load balancer.
        address: Address,
    },
    /// Delete the load balancer of the cluster.
    DeleteLoadBalancer(ObjectKey),
    /// Remove the finalizer.
    RemoveFinalizer,
}

/// The address of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// This one.
    At(SocketAddr),
    /// One with a free port, which the cloud chooses.
    FreePort {
        /// Ports that are not free, as they are in the specs of other DevClusters.
        taken: BTreeSet<u16>,
    },
}

/// The decision about one DevCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Effects, in order.
    pub(super) actions: Vec<Action>,
    /// Why there are no effects, and why a port is chosen.
    pub(super) notes: Vec<Note>,
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
    if !seen.has_cluster {
        // An owner that is gone, or whose event is still to come.
        plan.notes
            .push(Note::new(format!("gets no port before Cluster {cluster} exists")));
        return plan.into();
    }
    let address = match (seen.address, seen.port(), &seen.taken) {
        (Some(address), _, _) => Address::At(address),
        (None, Some(port), _) => Address::At(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        (None, None, None) => return Decision::Ask(Question::TakenPorts),
        (None, None, Some(taken)) => {
            plan.notes
                .push(Note::new(format!("gets the lowest port of {HOST} that is free")));
            Address::FreePort { taken: taken.clone() }
        }
    };
    plan.actions = vec![Action::ProvideEndpoint {
        cluster: cluster.clone(),
        address,
    }];
    plan.into()
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }
}
