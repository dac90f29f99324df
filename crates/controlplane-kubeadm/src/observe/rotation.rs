//! Reads what a rotation of authorities needs. Without one that is asked for or under way nothing is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::v1beta2::{Machine, MachineDeployment, MachinePool};
use windlass_api::labels::MACHINE_DEPLOYMENT_NAME;
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_pki::rotation::{
    AUTHORITIES, NEXT_CRT, NEXT_KEY, ROTATION, ROTATION_SINCE, ROTATION_STAGE, ROTATION_WORKERS, blocks, check,
};
use windlass_pki::{KeyMaterial, Purpose};

use super::{convert, created};
use crate::facts::{Certificate, Control, ControlPlane};
use crate::rotation::{Authority, REPLACED_FOR, Rotation, State, Worker};
use crate::workload::WorkloadCluster;

/// What is known of a rotation, if there is one.
pub(super) fn read(
    cx: &Cx,
    own: &ControlPlane,
    cluster: &ObjectKey,
    (certificates, secrets): (&[Certificate], &BTreeMap<Purpose, Arc<Secret>>),
    (planes, workers): (&BTreeMap<String, Arc<Machine>>, &[Arc<Machine>]),
) -> Option<Rotation> {
    let is_staged = |secret: &Arc<Secret>| annotation(secret, ROTATION_STAGE).is_some();
    if own.rotation_asked().is_none() && !secrets.values().any(is_staged) {
        return None;
    }
    let authorities = certificates.iter().filter_map(|certificate| {
        let secret = secrets.get(&certificate.purpose)?;
        let rotates = certificate.can_generate;
        Purpose::CONTROL_PLANE
            .contains(&certificate.purpose)
            .then(|| authority(own, certificate.purpose, rotates, secret))
    });
    let data = |machine: &Arc<Machine>| {
        let name = machine.spec.bootstrap.data_secret_name.as_deref()?;
        let data = cx
            .cache::<Secret>()
            .get(&ObjectKey::new(cluster.namespace.as_str(), name))?;
        Some(annotation(&data, AUTHORITIES).cloned())
    };
    let deployments = cx
        .cache::<MachineDeployment>()
        .by_cluster(&cluster.namespace, &cluster.name);
    let pools = cx.cache::<MachinePool>().by_cluster(&cluster.namespace, &cluster.name);
    Some(Rotation {
        authorities: authorities.collect(),
        kubeconfig: secrets
            .get(&Purpose::Kubeconfig)
            .and_then(|secret| annotation(secret, AUTHORITIES).cloned()),
        machines: planes
            .iter()
            .filter_map(|(name, machine)| Some((name.clone(), data(machine)?)))
            .collect(),
        workers: workers
            .iter()
            .map(|machine| Worker {
                name: machine.metadata.name.clone().unwrap_or_default(),
                created: created(&machine.metadata),
                node: node(machine),
                deployment: label(machine, MACHINE_DEPLOYMENT_NAME),
            })
            .collect(),
        deployments: deployments
            .iter()
            .map(|deployment| {
                let after = deployment
                    .spec
                    .rollout
                    .as_ref()
                    .and_then(|rollout| rollout.after.as_ref());
                (
                    deployment.metadata.name.clone().unwrap_or_default(),
                    after.map(|after| after.0),
                )
            })
            .collect(),
        joined: BTreeMap::new(),
        pools: pools
            .iter()
            .map(|pool| {
                let replaced = pool.metadata.annotations.as_ref().and_then(|all| all.get(REPLACED_FOR));
                (pool.metadata.name.clone().unwrap_or_default(), replaced.cloned())
            })
            .collect(),
    })
}

/// When the Nodes of all Machines were registered, as far as the workload cluster tells.
pub(super) async fn joined(
    connection: &dyn WorkloadCluster,
    machines: impl Iterator<Item = &Arc<Machine>>,
) -> BTreeMap<String, Timestamp> {
    let names: BTreeSet<String> = machines.filter_map(|machine| node(machine)).collect();
    let nodes = connection.nodes(&names).await.unwrap_or_default();
    let known = nodes.into_iter().filter(|node| names.contains(&node.name));
    known.filter_map(|node| Some((node.name, node.created?))).collect()
}

fn node(machine: &Machine) -> Option<String> {
    Some(machine.status.as_ref()?.node_ref.as_ref()?.name.clone())
}

fn label(machine: &Machine, key: &str) -> Option<String> {
    machine.metadata.labels.as_ref()?.get(key).cloned()
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a String> {
    secret.metadata.annotations.as_ref()?.get(key)
}

fn authority(own: &ControlPlane, purpose: Purpose, rotates: bool, secret: &Secret) -> Authority {
    let meta = &secret.metadata;
    let name = meta.name.as_deref().unwrap_or_default();
    let value = |key: &str| secret.data.as_ref()?.get(key).map(|bytes| bytes.0.as_slice());
    let current = KeyMaterial::read(name, value);
    let next = KeyMaterial {
        crt: text(value(NEXT_CRT)),
        key: text(value(NEXT_KEY)),
    };
    let trusted = current
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|current| blocks(&current.crt));
    let fits = current.and_then(|current| if rotates { check(purpose, &current) } else { Ok(()) });
    let has_next = !next.crt.is_empty() || !next.key.is_empty();
    let next_fits = || match check(purpose, &next) {
        Err(error) if has_next => Some(format!("{NEXT_CRT} and {NEXT_KEY}: {error}")),
        _ => None,
    };
    Authority {
        purpose,
        rotates,
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        is_ours: convert::control(meta, own) == Control::Ours,
        state: state(secret),
        trusted: trusted.unwrap_or_default(),
        next: blocks(&next.crt).ok().and_then(|blocks| blocks.into_iter().next()),
        broken: fits.err().map(|error| error.to_string()).or_else(next_fits),
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The state on a Secret. A time that cannot be read is that of the Secret: everything older is replaced.
fn state(secret: &Secret) -> Option<State> {
    let time = |key: &str| annotation(secret, key)?.parse::<Timestamp>().ok();
    Some(State {
        name: annotation(secret, ROTATION).cloned().unwrap_or_default(),
        stage: annotation(secret, ROTATION_STAGE)?.parse().ok()?,
        since: time(ROTATION_SINCE).unwrap_or_else(|| created(&secret.metadata)),
        workers: time(ROTATION_WORKERS),
    })
}
