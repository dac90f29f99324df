//! What happens to the world of a cluster and not through it: connections are lost, managers restart, machines fail, objects lose
//! their finalizers, come back from a backup, or come from other programs. Nothing may be deleted, replaced or made twice because of it.

mod dark;
mod drain;
mod hostile;
mod lost;
mod others;
mod phases;
mod replaced;
mod restart;
mod restored;
mod trouble;

use std::collections::BTreeMap;

use windlass_api::core::Machine;
use windlass_testkit::{CLASS, ClusterOf, Env};

/// A class and a cluster of it that runs and is at rest.
async fn running(env: &Env, cluster: &ClusterOf) {
    env.apply_yaml(CLASS).await;
    cluster.apply(env).await;
    cluster.wait_running(env).await;
    env.rest().await;
}

/// The Machines by name, with the providerIDs of their hosts: what may not change when nothing is replaced.
async fn hosts(env: &Env) -> BTreeMap<String, String> {
    let machines = env.list::<Machine>().await;
    let host = |machine: Machine| {
        (
            machine.metadata.name.unwrap_or_default(),
            machine.spec.provider_id.unwrap_or_default(),
        )
    };
    machines.into_iter().map(host).collect()
}
