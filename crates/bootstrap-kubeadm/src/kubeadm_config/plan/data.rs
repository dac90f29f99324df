//! Making bootstrap data: for the machine that makes the cluster, and for those that join it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use windlass_api::core::v1beta2::Cluster;
use windlass_api_kubeadm::bootstrap::{
    BootstrapTokenDiscovery, FileDiscoveryKubeConfig, JoinConfiguration, JoinControlPlane, KubeadmConfig,
    KubeadmConfigSpec, NodeRegistrationOptions, Taint,
};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Moment, ObjectKey, Seen};
use windlass_kubeadm::{BootstrapData, ClusterFacts, KubeadmError, Resolved, WriteFile, administrator};
use windlass_pki::Purpose;

use super::super::desired;
use super::super::observed::{Lock, Material, Observed, endpoint, is_standalone, spec_token};
use super::super::owner::ConfigOwner;
use super::pins::{self, Pins};
use super::{Action, Hidden, Lack, Plan, Verdict, certificates, wait_for_control_plane};

/// When to look again for a connection to the workload cluster.
const RECONNECT: Duration = Duration::from_secs(20);

/// When to look again at an init lock that another Machine holds.
const LOCK_HELD: Duration = Duration::from_secs(30);

/// Keeps workloads away from a node until its labels and taints are there.
const UNINITIALIZED_TAINT: &str = "node.cluster.x-k8s.io/uninitialized";

/// The machine that makes the cluster. While its data cannot be made, it does not keep others from making the cluster.
pub(super) fn init(plan: Plan, seen: &Observed, lock: &Seen<Lock>, material: &Material) -> Plan {
    let mut plan = initialize(plan, seen, lock, material);
    if plan.blocked.is_none() {
        return plan;
    }
    plan.actions.retain(|action| !matches!(action, Action::TakeLock { .. }));
    if let Some(release) = release_lock(seen, lock) {
        plan.actions.push(release);
        plan = plan.note("the data cannot be made: the init lock is given back");
    }
    plan
}

/// Gives the init lock back, when the Machine holds it.
pub(super) fn release_lock(seen: &Observed, lock: &Seen<Lock>) -> Option<Action> {
    let (Seen::Found(lock), Seen::Found(owner), Some(cluster)) = (lock, &seen.owner, seen.cluster_key()) else {
        return None;
    };
    (lock.machine == owner.name()).then(|| Action::ReleaseLock {
        key: ObjectKey::new(cluster.namespace, desired::lock_name(&cluster.name)),
        uid: lock.uid.clone(),
    })
}

fn initialize(plan: Plan, seen: &Observed, lock: &Seen<Lock>, material: &Material) -> Plan {
    let (Seen::Found(cluster), Seen::Found(owner)) = (&seen.cluster, &seen.owner) else {
        return plan;
    };
    let mut plan = match take_lock(plan, lock, cluster, owner.name()) {
        ControlFlow::Continue(plan) => plan,
        ControlFlow::Break(plan) => return plan,
    };
    if is_standalone(cluster) {
        plan = generate(plan, seen, material);
        if plan
            .actions
            .iter()
            .any(|action| matches!(action, Action::GenerateCertificates(_)))
        {
            return plan.wait(Lack::waiting(
                "Waiting for the certificates of the cluster",
                windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CONTROL_PLANE_AVAILABLE,
            ));
        }
    }
    plan = match check_certificates(plan, material, cluster) {
        ControlFlow::Continue(plan) => plan,
        ControlFlow::Break(plan) => return plan,
    };
    let facts = facts(cluster, owner);
    let spec = spec(seen);
    let named = spec
        .cluster_configuration
        .as_ref()
        .and_then(|configuration| configuration.control_plane_endpoint.clone());
    if let (None, Some(endpoint)) = (named, &facts.control_plane_endpoint) {
        plan.actions
            .push(Action::ApplySpec(Box::new(desired::control_plane_endpoint(
                &seen.config,
                endpoint,
            ))));
    }
    let files = certificates::files(&seen.config, &material.certificates);
    let data =
        resolve(material, &spec).and_then(|resolved| windlass_kubeadm::render_init(&spec, &facts, &files, &resolved));
    write(plan, seen, material, cluster, data)
}

/// A machine that joins.
pub(super) fn join(
    mut plan: Plan,
    seen: &Observed,
    (material, connection): (&Material, &Workload<()>),
    control_plane: bool,
    now: &Moment,
) -> Plan {
    let (Seen::Found(cluster), Seen::Found(owner)) = (&seen.cluster, &seen.owner) else {
        return plan;
    };
    plan = match check_certificates(plan, material, cluster) {
        ControlFlow::Continue(plan) => plan,
        ControlFlow::Break(plan) => return plan,
    };
    if control_plane && let Some(lack) = certificates::without_key(&seen.config, material, cluster) {
        let why = lack.message.clone();
        plan.certificates = Verdict::InternalError(lack);
        return plan.fail(why);
    }
    let spec = spec(seen);
    let mut join = spec.join_configuration.clone().unwrap_or_default();
    if control_plane {
        join.control_plane.get_or_insert_with(JoinControlPlane::default);
    } else if join.control_plane.is_some() {
        return plan.fail(
            "spec.joinConfiguration.controlPlane is set, but the Machine is a worker; remove it, or label the Machine as \
             control plane",
        );
    }
    let address = endpoint(cluster);
    if address.is_none() && needs_address(&join) {
        return plan.wait(Lack::waiting(
            "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set",
            windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE,
        ));
    }
    let mut files = Vec::new();
    if control_plane {
        files = certificates::files(&seen.config, &material.certificates);
    }
    let mut kubeconfig = None;
    plan = match discover(
        plan,
        seen,
        (material, connection),
        (&mut join, &mut kubeconfig),
        &address.unwrap_or_default(),
        now,
    ) {
        ControlFlow::Continue(plan) => plan,
        ControlFlow::Break(plan) => return plan,
    };
    if !control_plane {
        add_uninitialized_taint(&mut join);
    }
    let mut rendered = spec.clone();
    if let Some(bundle) = certificates::mixed(material, &files)
        && let Err(error) = administrator::trust_bundle(&mut rendered, &mut join, bundle)
    {
        return plan.fail(error.to_string());
    }
    let data = resolve(material, &spec).and_then(|mut resolved| {
        // As in Cluster API, after the files of the user: of two with one path the last one stays.
        resolved.files.extend(kubeconfig);
        windlass_kubeadm::render_join(&rendered, &join, &facts(cluster, owner), &files, &resolved)
    });
    write(plan, seen, material, cluster, data)
}

/// Whether the machine needs the address of its Cluster to find it: the spec may have another, or a file that is on the machine.
fn needs_address(join: &JoinConfiguration) -> bool {
    let discovery = join.discovery.as_ref();
    if let Some(file) = discovery.and_then(|discovery| discovery.file.as_ref()) {
        let has_server = |config: &FileDiscoveryKubeConfig| {
            let cluster = config.cluster.as_ref();
            cluster.is_some_and(|cluster| cluster.server.is_some())
        };
        return file.kube_config.as_ref().is_some_and(|config| !has_server(config));
    }
    let token = discovery.and_then(|discovery| discovery.bootstrap_token.as_ref());
    token.is_none_or(|token| token.api_server_endpoint.is_none())
}

/// Makes sure that this machine alone may run `kubeadm init`; the plan to stop with is an error.
fn take_lock(mut plan: Plan, lock: &Seen<Lock>, cluster: &Cluster, name: &str) -> ControlFlow<Plan, Plan> {
    let stale = match lock {
        Seen::Found(lock) if lock.machine == name => return ControlFlow::Continue(plan),
        Seen::Found(lock) if lock.holder_exists => {
            let note = format!("Machine {} holds the init lock", lock.machine);
            // A lock that is given back sends no event.
            plan.requeue = Some(LOCK_HELD);
            return ControlFlow::Break(plan.note(note).wait(wait_for_control_plane()));
        }
        Seen::Found(lock) => Some(lock.uid.clone()),
        Seen::NotFound => None,
        Seen::Failed(why) => return ControlFlow::Break(plan.fail(format!("Failed to read the init lock: {why}"))),
    };
    plan.actions.push(Action::TakeLock {
        stale,
        object: Box::new(desired::lock(cluster, name)),
    });
    ControlFlow::Continue(plan)
}

/// Adds what is missing among the certificates that are ours to make.
fn generate(mut plan: Plan, seen: &Observed, material: &Material) -> Plan {
    let missing: Vec<_> = certificates::missing(&material.certificates)
        .into_iter()
        .filter(|purpose| !certificates::is_users(&seen.config, *purpose))
        .collect();
    if !missing.is_empty() {
        plan.actions.push(Action::GenerateCertificates(missing));
    }
    plan
}

fn check_certificates(mut plan: Plan, material: &Material, cluster: &Cluster) -> ControlFlow<Plan, Plan> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    match certificates::lacking(&material.certificates, name) {
        None => {
            plan.certificates = Verdict::Available;
            ControlFlow::Continue(plan)
        }
        Some(verdict) => {
            if let Verdict::InternalError(lack) = &verdict {
                plan = plan.note(lack.message.clone());
                // A damaged Secret is worth an error; one that is missing wakes us when it comes.
                if material.certificates.values().any(|secret| secret.failure().is_some()) {
                    plan = plan.block(lack.message.clone());
                }
            }
            plan.certificates = verdict;
            ControlFlow::Break(plan.wait(Lack::waiting(
                "Waiting for the certificates of the cluster",
                windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CONTROL_PLANE_AVAILABLE,
            )))
        }
    }
}

/// Fills in how the machine finds its cluster: by a bootstrap token, or by a kubeconfig that the spec describes, which is another file.
fn discover(
    mut plan: Plan,
    seen: &Observed,
    (material, connection): (&Material, &Workload<()>),
    (join, kubeconfig): (&mut JoinConfiguration, &mut Option<WriteFile>),
    address: &str,
    now: &Moment,
) -> ControlFlow<Plan, Plan> {
    let Some(Seen::Found(authority)) = material.certificates.get(&Purpose::ClusterCa) else {
        return ControlFlow::Continue(plan);
    };
    let discovery = join.discovery.get_or_insert_default();
    if let Some(file) = &discovery.file {
        *kubeconfig = windlass_kubeadm::discovery::kubeconfig_file(file, address, &authority.crt);
        return ControlFlow::Continue(plan);
    }
    let token = discovery.bootstrap_token.get_or_insert_default();
    let before = token.clone();
    token.api_server_endpoint.get_or_insert_with(|| address.to_owned());
    match pins::judge(seen, material) {
        // Data that is there goes with the pins in the spec.
        Pins::Outdated if !has_data(seen) => token.ca_cert_hashes.clear(),
        Pins::Unknown(why) => return ControlFlow::Break(plan.fail(why)),
        Pins::Foreign => plan = plan.note(pins::FOREIGN),
        Pins::Outdated | Pins::Kept | Pins::Ask => {}
    }
    // Also beside unsafeSkipCAVerification, as in v1.14: a pin that is known is checked.
    if token.ca_cert_hashes.is_empty() {
        match pins::of(authority) {
            Ok(pins) => token.ca_cert_hashes = pins,
            Err(why) => return ControlFlow::Break(plan.fail(why)),
        }
    }
    if token.token.is_none() {
        if let Some(why) = connection.unknown() {
            // A connection that comes up wakes us; the timer is for one whose news got lost.
            plan.requeue = Some(RECONNECT);
            return ControlFlow::Break(plan.wait(Lack::waiting(
                format!("Waiting for the connection to the workload cluster: {why}"),
                windlass_api_kubeadm::v1beta1::reasons::WAITING_FOR_CONTROL_PLANE_AVAILABLE,
            )));
        }
        token.token = Some(seen.fresh_token.reveal());
        plan.actions.push(Action::CreateToken {
            token: seen.fresh_token.clone(),
            expires: super::token::end(seen, now),
        });
    }
    apply_if_changed(&mut plan, seen, &before, token);
    plan.requeue = Some(super::super::token::refresh_interval(seen.token_ttl).unsigned_abs());
    ControlFlow::Continue(plan)
}

/// Keeps what was found out in the spec, where people and later passes see it: a token that exists is not made twice.
fn apply_if_changed(
    plan: &mut Plan,
    seen: &Observed,
    before: &BootstrapTokenDiscovery,
    after: &BootstrapTokenDiscovery,
) {
    if before != after {
        plan.actions
            .push(Action::ApplySpec(Box::new(desired::bootstrap_token_discovery(
                &seen.config,
                after,
            ))));
    }
}

/// Whether the data was made, though the status may not say so.
fn has_data(seen: &Observed) -> bool {
    let secret = seen.data_secret.found();
    secret.is_some_and(|secret| desired::owned_by(secret, &seen.config) == desired::Ownership::Ours)
}

/// Renders once more with another token, for machines whose token has vanished before they used it, or ends soon. `why` says which.
pub(super) fn rejoin(plan: Plan, seen: &Observed, why: &str, now: &Moment) -> Plan {
    let mut config = (*seen.config).clone();
    if let Some(discovery) = config
        .spec
        .as_mut()
        .and_then(|spec| spec.join_configuration.as_mut())
        .and_then(|join| join.discovery.as_mut())
        && let Some(token) = discovery.bootstrap_token.as_mut()
    {
        token.token = None;
    }
    let why = format!("{why}: the data is made again with a new one");
    again(plan, seen, Arc::new(config), why, now)
}

/// Renders once more with the pins of the authority as it is now, for machines that are still to come.
pub(super) fn repin(plan: Plan, seen: &Observed, now: &Moment) -> Plan {
    let why = "the authority of the cluster has changed: the data of the MachinePool is made again with its pins";
    again(plan, seen, Arc::clone(&seen.config), why.to_owned(), now)
}

/// Renders once more, and replaces the data that is there.
fn again(mut plan: Plan, seen: &Observed, config: Arc<KubeadmConfig>, why: String, now: &Moment) -> Plan {
    let (Some(material), Some(connection), Seen::Found(owner)) = (&seen.material, &seen.connection, &seen.owner) else {
        return plan;
    };
    let again = Observed {
        config,
        owner: seen.owner.clone(),
        cluster: seen.cluster.clone(),
        data_secret: Seen::NotFound,
        lock: None,
        material: None,
        connection: None,
        token_expires: None,
        pins_set_by: seen.pins_set_by.clone(),
        fresh_token: seen.fresh_token.clone(),
        token_ttl: seen.token_ttl,
    };
    if let Seen::Found(secret) = &seen.data_secret
        && let desired::Ownership::Foreign(owner) = desired::owned_by(secret, &seen.config)
    {
        let name = secret.metadata.name.clone().unwrap_or_default();
        return plan.fail(taken(&name, &owner));
    }
    let uid = seen.data_secret.found().and_then(|secret| secret.metadata.uid.clone());
    let inputs = (material, connection);
    let rendered = join(Plan::default(), &again, inputs, owner.is_control_plane(), now);
    // The spec comes last: what it names counts as made, so a token or a pin that the data does not have yet must not be there.
    let (specs, others): (Vec<_>, Vec<_>) = rendered
        .actions
        .into_iter()
        .partition(|action| matches!(action, Action::ApplySpec(_)));
    for action in others.into_iter().chain(specs) {
        plan.actions.push(match (action, &uid) {
            (Action::CreateData(content), Some(uid)) => Action::ReplaceData {
                uid: uid.clone(),
                content,
            },
            (other, _) => other,
        });
    }
    plan.blocked = rendered.blocked.or(plan.blocked);
    // The timer of the token goes on while the data waits for something else.
    plan.requeue = rendered.requeue.or(plan.requeue);
    plan.note(why)
}

fn add_uninitialized_taint(join: &mut JoinConfiguration) {
    let registration = join
        .node_registration
        .get_or_insert_with(NodeRegistrationOptions::default);
    let taints = registration.taints.get_or_insert_with(Vec::new);
    if !taints.iter().any(|taint| taint.key == UNINITIALIZED_TAINT) {
        taints.push(Taint {
            key: UNINITIALIZED_TAINT.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
}

/// The last step: the Secret, complete, in one write.
fn write(
    mut plan: Plan,
    seen: &Observed,
    material: &Material,
    cluster: &Cluster,
    data: Result<BootstrapData, KubeadmError>,
) -> Plan {
    let data = match data {
        Ok(data) => data,
        Err(error) => {
            // What was planned before (a lock, a token) has no use without data.
            plan.actions.clear();
            return plan.fail(error.to_string());
        }
    };
    for warning in &data.warnings {
        plan = plan.note(warning.clone());
    }
    let cluster_name = cluster.metadata.name.as_deref().unwrap_or_default();
    let name = seen.config.metadata.name.clone().unwrap_or_default();
    let content = Hidden(desired::data_secret(
        &seen.config,
        cluster_name,
        &data,
        certificates::mark(material),
    ));
    match &seen.data_secret {
        Seen::NotFound => plan.actions.push(Action::CreateData(content)),
        Seen::Failed(why) => return plan.fail(format!("Failed to read Secret {name}: {why}")),
        Seen::Found(secret) => match desired::owned_by(secret, &seen.config) {
            desired::Ownership::Ours if spec_token(&seen.config).is_some() || plan.requeue.is_none() => {
                plan = plan.note("the data Secret is there: only the status is missing");
            }
            desired::Ownership::Ours | desired::Ownership::Adoptable => plan.actions.push(Action::ReplaceData {
                uid: secret.metadata.uid.clone().unwrap_or_default(),
                content,
            }),
            desired::Ownership::Foreign(owner) => {
                plan.actions.clear();
                return plan.fail(taken(&name, &owner));
            }
        },
    }
    plan.data = Verdict::Available;
    plan.data_secret_name = Some(name);
    plan
}

/// That a Secret with the name of the data belongs to another object.
fn taken(name: &str, owner: &str) -> String {
    format!("Secret {name} is controlled by {owner}; bootstrap data needs this name: delete or rename that Secret")
}

fn resolve(material: &Material, spec: &KubeadmConfigSpec) -> Result<Resolved, KubeadmError> {
    let version = match &material.control_plane_version {
        Seen::Found(version) => Some(version.as_str()),
        Seen::NotFound => None,
        Seen::Failed(why) => {
            return Err(KubeadmError::Field {
                field: "spec.files".to_owned(),
                why: format!("the version that templates see cannot be read: {why}"),
            });
        }
    };
    windlass_kubeadm::resolve(spec, version, &|reference| {
        material.references.0.get(reference).map(Vec::as_slice)
    })
}

fn spec(seen: &Observed) -> KubeadmConfigSpec {
    seen.config.spec.clone().unwrap_or_default()
}

fn facts(cluster: &Cluster, owner: &ConfigOwner) -> ClusterFacts {
    let network = cluster.spec.cluster_network.clone().unwrap_or_default();
    ClusterFacts {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        kubernetes_version: owner.version().unwrap_or_default().to_owned(),
        control_plane_endpoint: endpoint(cluster),
        dns_domain: network.service_domain,
        pod_subnets: network.pods.map(|ranges| ranges.cidr_blocks).unwrap_or_default(),
        service_subnets: network.services.map(|ranges| ranges.cidr_blocks).unwrap_or_default(),
    }
}
