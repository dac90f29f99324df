//! Reads what a rotation of authorities needs. Without one that is asked for or under way, and with one authority, nothing is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::v1beta2::{Machine, MachineDeployment, MachinePool};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels::MACHINE_DEPLOYMENT_NAME;
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_pki::purpose::{TLS_CRT, VALUE};
use windlass_pki::rotation::{
    AUTHORITIES, NEXT_CRT, NEXT_KEY, ROTATION, ROTATION_DROPPED, ROTATION_HOLDS, ROTATION_SINCE, ROTATION_STAGE,
    ROTATION_WORKERS, blocks, check,
};
use windlass_pki::{KeyMaterial, Kubeconfig, Purpose};

use super::{convert, created};
use crate::facts::{Certificate, Control, ControlPlane};
use crate::rotation::{Authority, Data, ForeignKubeconfig, REPLACED_FOR, Rotation, State, Worker};
use crate::workload::WorkloadCluster;

/// How a certificate begins.
const BEGIN: &[u8] = b"-----BEGIN ";

/// What is known of a rotation, if there is one.
pub(super) fn read(
    cx: &Cx,
    own: &ControlPlane,
    cluster: &ObjectKey,
    (certificates, secrets): (&[Certificate], &BTreeMap<Purpose, Arc<Secret>>),
    (planes, workers): (&BTreeMap<String, Arc<Machine>>, &[Arc<Machine>]),
) -> Option<Rotation> {
    let is_staged = |secret: &Arc<Secret>| annotation(secret, ROTATION_STAGE).is_some();
    if own.rotation_asked().is_none() && !secrets.values().any(is_staged) && !is_bundle(secrets) {
        return None;
    }
    let authorities = certificates.iter().filter_map(|certificate| {
        let secret = secrets.get(&certificate.purpose)?;
        let rotates = certificate.can_generate;
        Purpose::CONTROL_PLANE
            .contains(&certificate.purpose)
            .then(|| authority(own, certificate.purpose, rotates, secret))
    });
    let data_secret = |name: &str| {
        let key = ObjectKey::new(cluster.namespace.as_str(), name);
        cx.cache::<Secret>().get(&key)
    };
    let data = |machine: &Arc<Machine>| {
        let bootstrap = &machine.spec.bootstrap;
        let is_kubeadm = bootstrap
            .config_ref
            .as_ref()
            .is_some_and(|config| config.kind == KubeadmConfig::KIND);
        let Some(name) = &bootstrap.data_secret_name else {
            return Data::Coming;
        };
        match data_secret(name).filter(|_| is_kubeadm) {
            None => Data::Unknown,
            Some(data) => annotation(&data, AUTHORITIES).map_or(Data::Unmarked, |mark| Data::Marked(mark.clone())),
        }
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
            .map(|(name, machine)| (name.clone(), data(machine)))
            .collect(),
        workers: workers
            .iter()
            .map(|machine| Worker {
                name: machine.metadata.name.clone().unwrap_or_default(),
                created: created(&machine.metadata),
                node: node(machine),
                deployment: label(machine, MACHINE_DEPLOYMENT_NAME),
                data: data(machine),
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
        unread: Some("the workload cluster is not reached".to_owned()),
        foreign_kubeconfig: secrets
            .get(&Purpose::Kubeconfig)
            .filter(|secret| convert::control(&secret.metadata, own) != Control::Ours)
            .map(|secret| foreign(secret, secrets)),
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
) -> Result<BTreeMap<String, Timestamp>, String> {
    let names: BTreeSet<String> = machines.filter_map(|machine| node(machine)).collect();
    let nodes = connection.nodes(&names).await?;
    let known = nodes.into_iter().filter(|node| names.contains(&node.name));
    Ok(known.filter_map(|node| Some((node.name, node.created?))).collect())
}

/// Whether the cluster has more than one authority already.
fn is_bundle(secrets: &BTreeMap<Purpose, Arc<Secret>>) -> bool {
    let secret = secrets.get(&Purpose::ClusterCa);
    let crt = secret.and_then(|secret| secret.data.as_ref()?.get(TLS_CRT));
    let crt = crt.map_or(&b""[..], |crt| &crt.0);
    crt.windows(BEGIN.len()).filter(|part| *part == BEGIN).nth(1).is_some()
}

/// A kubeconfig that another keeps. One that cannot be read trusts nothing.
fn foreign(secret: &Secret, secrets: &BTreeMap<Purpose, Arc<Secret>>) -> ForeignKubeconfig {
    let value = |secret: &Secret, key: &str| Some(text(Some(&secret.data.as_ref()?.get(key)?.0)));
    let kubeconfig = value(secret, VALUE).unwrap_or_default();
    let signs = secrets
        .get(&Purpose::ClusterCa)
        .and_then(|secret| value(secret, TLS_CRT));
    let signs = signs.and_then(|crt| windlass_pki::Certificate::from_pem(&crt).ok());
    let client = Kubeconfig::client_certificate_of(&kubeconfig).ok();
    ForeignKubeconfig {
        trusts: Kubeconfig::authorities_of(&kubeconfig).unwrap_or_default(),
        is_older: signs
            .zip(client)
            .is_some_and(|(signs, client)| client.not_before() < signs.not_before()),
    }
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
        dropped: annotation(secret, ROTATION_DROPPED)
            .map(|text| text.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        next: blocks(&next.crt).ok().and_then(|blocks| blocks.into_iter().next()),
        broken: fits.err().map(|error| error.to_string()).or_else(next_fits),
        holds: annotation(secret, ROTATION_HOLDS).cloned(),
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
