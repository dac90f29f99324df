//! What is planned in one situation.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use windlass_api::owner;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Decision, Moment, Seen};
use windlass_controlplane_kubeadm::core_dns::CoreDnsChange;
use windlass_controlplane_kubeadm::facts::{Control, Kubeconfig, SecretFacts};
use windlass_controlplane_kubeadm::names::{
    DELETE_MACHINE, PRE_TERMINATE_HOOK, REMEDIATION_FOR, REMEDIATION_IN_PROGRESS,
};
use windlass_controlplane_kubeadm::plan::{Action, WorkloadChange, plan};
use windlass_etcd::{Alarm, AlarmKind, Member, MemberId};

use crate::world::{World, authority_of, set, start};

/// The actions that matter, one line each; what only keeps things as they are is left out.
pub(crate) fn actions(world: &World) -> Vec<String> {
    let lines = world.plan().actions.into_iter().filter_map(|action| match action {
        Action::ApplyMachine { .. } | Action::ChangeMetadata { .. } | Action::SetMachineConditions { .. } => None,
        Action::OwnTemplate { .. } => Some("own template".to_owned()),
        Action::CreateCertificate { purpose } => Some(format!("certificate {}", purpose.suffix())),
        Action::OwnSecret { purpose, .. } => Some(format!("own {}", purpose.suffix())),
        Action::WriteKubeconfig { .. } => Some("kubeconfig".to_owned()),
        Action::CreateMachine(new) => {
            let spec = &new.config.as_ref().unwrap()["spec"];
            let how = if spec["joinConfiguration"].is_object() {
                "join"
            } else {
                "init"
            };
            let domain = new
                .machine
                .as_ref()
                .and_then(|m| m["spec"]["failureDomain"].as_str().map(str::to_owned));
            Some(format!("{how} {}", domain.unwrap_or_default()).trim().to_owned())
        }
        Action::BeginUpdate(update) => Some(format!("update {}", update.name)),
        Action::DeleteMachine { name, leader, why, .. } => {
            let leader = leader.map(|l| format!(", leader to {}", l.to[0].1)).unwrap_or_default();
            Some(format!("delete {name} ({why}{leader})"))
        }
        Action::ReleaseMachine { name, member, .. } => {
            let member = member
                .map(|member| format!(" with member {}", member.name))
                .unwrap_or_default();
            Some(format!("release {name}{member}"))
        }
        Action::RemoveMember(member) => Some(format!("remove member {}", member.name)),
        Action::Workload(WorkloadChange::KubeadmConfig { version, .. }) => Some(format!("kubeadm-config {version}")),
        Action::Workload(WorkloadChange::Rbac { .. }) => Some("rbac".to_owned()),
        Action::Annotate { key, value } => {
            let verb = if value.is_some() { "annotate" } else { "unannotate" };
            Some(format!("{verb} {}", key.rsplit('/').next().unwrap()))
        }
        Action::PatchMachine { name, patch } if patch["metadata"].is_object() => Some(format!("own {name}")),
        Action::PatchMachine { name, .. } => Some(format!("patch {name}")),
        Action::TearDownMachine { name, .. } => Some(format!("tear down {name}")),
        Action::Workload(WorkloadChange::KubeProxyImage { image }) => Some(format!("kube-proxy {image}")),
        Action::Workload(WorkloadChange::KubeadmDns { .. }) => Some("kubeadm-config dns".to_owned()),
        Action::Workload(WorkloadChange::CoreDns(CoreDnsChange::Corefile { data, .. })) => {
            Some(format!("write {}", data.into_keys().collect::<Vec<_>>().join(" ")))
        }
        Action::Workload(WorkloadChange::CoreDns(CoreDnsChange::Deployment { image, items, .. })) => {
            let key = items
                .map(|items| format!(" reading {}", items[0].key))
                .unwrap_or_default();
            Some(format!("coredns {}{key}", image.unwrap_or_default()))
        }
        Action::RecordExpiry { config, .. } => Some(format!("expiry {config}")),
        Action::StageAuthority(change) => Some(format!("{} goes to {:?}", change.purpose.suffix(), change.to)),
        Action::MarkWorkers { .. } => Some("mark workers".to_owned()),
        Action::Workload(WorkloadChange::ClusterInfo { .. }) => Some("cluster-info".to_owned()),
        Action::Workload(WorkloadChange::DropExtensionAuthorities { .. }) => Some("extension authorities".to_owned()),
        Action::RotateKubeconfig(rotated) => Some(format!("kubeconfig {:?}", rotated.signer)),
        Action::RollOut { deployment, .. } => Some(format!("roll out {deployment}")),
        Action::RemoveFinalizer => Some("remove finalizer".to_owned()),
    });
    lines.collect()
}

#[track_caller]
pub(crate) fn check(world: &World, expect: &[&str]) {
    assert_eq!(actions(world), expect);
}

pub(crate) fn name(world: &World, at: usize) -> String {
    let mut machines: Vec<_> = world.machines.values().collect();
    machines.sort_by_key(|m| m.created);
    machines[at].name.clone()
}

/// Users bring authorities of their own while the infrastructure is made.
#[test]
fn authorities_wait_for_the_infrastructure() {
    let mut world = World::new(3);
    world.cluster.infrastructure_provisioned = false;
    check(&world, &[]);
    world.cluster.infrastructure_provisioned = true;
    world.cluster.endpoint = None;
    check(
        &world,
        &[
            "certificate ca",
            "certificate etcd",
            "certificate proxy",
            "certificate sa",
        ],
    );
}

#[test]
fn the_first_machine_needs_only_an_endpoint() {
    let mut world = World::new(3);
    world.certificates = true;
    world.cluster.endpoint = None;
    check(&world, &[]);
    world.cluster.endpoint = Some(("h".into(), 6443));
    check(&world, &["kubeconfig", "init"]);
}

#[test]
fn a_second_machine_waits_until_the_first_is_healthy() {
    let mut world = World::new(3);
    world.reconcile(usize::MAX);
    check(&world, &[]);
    let first = name(&world, 0);
    for _ in 0..2 {
        world.advance(&first);
        check(&world, &[]);
    }
    world.advance(&first);
    check(&world, &["kubeadm-config v1.35.0", "rbac", "join"]);
    let blockers = world.plan().blockers;
    assert!(blockers.messages().is_empty());
    world.reconcile(usize::MAX);
    check(&world, &["expiry cp-00000"]);
}

#[test]
fn lost_authorities_stop_joins_instead_of_being_made_again() {
    let mut world = World::settled(1);
    world.certificates = false;
    world.control_plane.replicas = 3;
    check(&world, &[]);
    let blockers = world.plan().blockers;
    assert_eq!(blockers.messages(), ["* cluster certificates are missing or unknown"]);
}

#[test]
fn the_kubeconfig_is_made_again_when_half_of_its_life_is_over() {
    let mut world = World::settled(1);
    world.now += SignedDuration::from_hours(24 * 182);
    check(&world, &[]);
    world.now += SignedDuration::from_hours(24);
    check(&world, &["kubeconfig"]);
}

#[test]
fn a_control_plane_without_kubeadm_settings_comes_up_and_rests() {
    for version in ["v1.30.0", "v1.35.0", "v1.36.0"] {
        let mut world = World::new(1);
        world.control_plane.kubeadm = json!({});
        world.control_plane.version = version.into();
        world.kube_proxy = format!("registry.k8s.io/kube-proxy:{version}");
        world.certificates = true;
        let plan = world.plan();
        let first = plan.actions.iter().find_map(|action| match action {
            Action::CreateMachine(new) => new.config.clone(),
            _ => None,
        });
        // An empty object would be refused by the schema.
        let spec = first.unwrap().get("spec").cloned();
        assert_ne!(spec, Some(json!({})), "{version}");
        assert_eq!(spec.is_none(), version != "v1.35.0", "{version}");
        world.run();
        check(&world, &[]);
    }
}

#[test]
fn a_taint_is_missing_only_where_the_machine_or_kubeadm_asks_for_it() {
    let told = |taints: serde_json::Value, registration: Option<serde_json::Value>| {
        let mut world = World::settled(1);
        let machine = world.machines.values_mut().next().unwrap();
        machine.taints = taints;
        match (registration, &mut machine.config) {
            (Some(registration), Seen::Found(config)) => {
                config["spec"]["initConfiguration"]["nodeRegistration"] = registration;
            }
            (_, config) => *config = Seen::NotFound,
        }
        let mut facts = world.facts();
        let Workload::Up(reached) = &mut facts.workload else {
            panic!("{:?}", facts.workload);
        };
        reached.nodes.as_mut().unwrap()[0].role_taint = false;
        let moment = Moment::at(world.now);
        let health = windlass_controlplane_kubeadm::health::assess(&facts, &moment);
        let findings = &health.machines[0].findings;
        let set = findings
            .iter()
            .find(|finding| finding.kind == "NodeKubeadmLabelsAndTaintsSet");
        set.unwrap().reason.clone()
    };
    let role = json!([{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }]);
    assert_eq!(told(json!(null), Some(json!({}))), "NotSet");
    assert_eq!(told(json!(null), Some(json!({ "taints": [] }))), "Set");
    assert_eq!(told(json!(null), Some(json!({ "taints": role }))), "NotSet");
    assert_eq!(told(role, Some(json!({ "taints": [] }))), "NotSet");
    // What kubeadm was given is not known.
    assert_eq!(told(json!(null), None), "Set");
}

#[test]
fn an_old_authority_does_not_shorten_the_life_of_kubeconfigs() {
    let mut world = World::settled(1);
    world.authority = authority_of(start() - SignedDuration::from_hours(24 * 365 * 3));
    let mut renewals = Vec::new();
    for day in 0..3 * 365 {
        world.now = start() + SignedDuration::from_hours(24 * day);
        let plan = world.plan();
        for action in &plan.actions {
            if let Action::WriteKubeconfig { replace: true, .. } = action {
                renewals.push(day);
                world.act(action);
            }
        }
    }
    assert_eq!(renewals, [183, 366, 549, 732, 915]);
}

#[test]
fn a_renewed_kubeconfig_keeps_its_server() {
    let mut world = World::settled(1);
    world.kubeconfig.as_mut().unwrap().1 = "https://bastion:443".into();
    world.now += SignedDuration::from_hours(24 * 200);
    let servers = world.plan().actions.into_iter().filter_map(|action| match action {
        Action::WriteKubeconfig { server, .. } => Some(server),
        _ => None,
    });
    assert_eq!(servers.collect::<Vec<_>>(), ["https://bastion:443"]);
}

#[test]
fn machines_are_spread_over_failure_domains() {
    let mut world = World::new(3);
    world.cluster.failure_domains = vec!["a".into(), "b".into()];
    world.run();
    let mut domains: Vec<_> = world
        .machines
        .values()
        .filter_map(|m| m.failure_domain.clone())
        .collect();
    domains.sort();
    assert_eq!(domains, ["a", "a", "b"]);
    // The fullest domain gives one up, its oldest first.
    world.control_plane.replicas = 1;
    let deleted = actions(&world);
    let oldest = world
        .machines
        .values()
        .filter(|m| m.failure_domain.as_deref() == Some("a"));
    let oldest = oldest.min_by_key(|m| m.created).unwrap();
    assert!(
        deleted[0].starts_with(&format!("delete {}", oldest.name)),
        "{deleted:?}"
    );
}

#[test]
fn the_domain_with_most_candidates_gives_one_up() {
    let mut world = World::new(5);
    world.cluster.failure_domains = vec!["a".into(), "b".into()];
    world.run();
    let domain = |world: &World, name: &str| world.machines[name].failure_domain.clone().unwrap();
    let names: Vec<String> = (0..5).map(|at| name(&world, at)).collect();
    let (fuller, other): (Vec<&String>, Vec<&String>) = names.iter().partition(|n| domain(&world, n) == "a");
    assert_eq!((fuller.len(), other.len()), (3, 2));
    for marked in other.iter().copied().chain([fuller[0]]) {
        let machine = world.machines.get_mut(marked).unwrap();
        machine.annotations.insert(DELETE_MACHINE.into(), String::new());
    }
    world.control_plane.replicas = 3;
    let planned = actions(&world);
    assert!(planned[0].starts_with(&format!("delete {} ", other[0])), "{planned:?}");
}

#[test]
fn an_outdated_machine_with_a_broken_member_is_replaced_first() {
    let mut world = World::settled(3);
    let broken = name(&world, 1);
    let member = world.members.iter().find(|m| m.name == broken).unwrap().id;
    world.alarms = vec![Alarm {
        member,
        kind: AlarmKind::NoSpace,
    }];
    world.control_plane.max_surge = 0;
    world.control_plane.version = "v1.36.0".into();
    world.control_plane.generation += 1;
    let planned = actions(&world);
    let delete = format!("delete {broken} ");
    assert!(planned.iter().any(|a| a.starts_with(&delete)), "{planned:?}");
}

#[test]
fn scale_down_moves_leadership_and_takes_what_users_marked() {
    let mut world = World::settled(3);
    world.control_plane.replicas = 1;
    let (first, newest) = (name(&world, 0), name(&world, 2));
    check(&world, &[&format!("delete {first} (scale down, leader to {newest})")]);
    let marked = name(&world, 1);
    let machine = world.machines.get_mut(&marked).unwrap();
    machine.annotations.insert(DELETE_MACHINE.into(), String::new());
    check(&world, &[&format!("delete {marked} (scale down)")]);
}

#[test]
fn a_deleted_machine_goes_once_only_our_hook_holds_it() {
    let mut world = World::settled(3);
    let first = name(&world, 0);
    world.machines.get_mut(&first).unwrap().deleted = Some(world.now);
    check(&world, &[]);
    world.advance(&first);
    let other = format!("{}/other", "pre-terminate.delete.hook.machine.cluster.x-k8s.io");
    world
        .machines
        .get_mut(&first)
        .unwrap()
        .annotations
        .insert(other.clone(), String::new());
    check(&world, &[]);
    world.machines.get_mut(&first).unwrap().annotations.remove(&other);
    check(&world, &[&format!("release {first} with member {first}")]);
}

#[test]
fn two_machines_that_users_deleted_go_one_after_the_other() {
    let mut world = World::settled(3);
    let (first, second) = (name(&world, 0), name(&world, 1));
    for name in [&first, &second] {
        world.machines.get_mut(name).unwrap().deleted = Some(world.now);
        world.advance(name);
    }
    let planned = actions(&world);
    assert_eq!(planned.len(), 1, "{planned:?}");
    world.reconcile(usize::MAX);
    check(&world, &[]);
}

#[test]
fn a_member_is_not_removed_when_the_others_could_not_go_on() {
    let mut world = World::settled(3);
    let (first, second) = (name(&world, 0), name(&world, 1));
    world.broken.push(second.clone());
    world.machines.get_mut(&first).unwrap().deleted = Some(world.now);
    world.advance(&first);
    // The second's API server is down, but its etcd still answers: the first may go.
    check(&world, &[&format!("release {first} with member {first}")]);
    // While the second has no vote, the third alone would be left: no Machine may go.
    let member = world.members.iter_mut().find(|m| m.name == second).unwrap();
    member.learner = true;
    check(&world, &[]);
}

#[test]
fn a_member_without_machine_is_removed_when_no_machine_is_on_the_way() {
    let mut world = World::settled(3);
    world.members.push(Member {
        id: MemberId(99),
        name: "stranger".into(),
        ..Member::default()
    });
    world.reconcile(0);
    check(&world, &["remove member stranger"]);
    let first = name(&world, 0);
    world.machines.get_mut(&first).unwrap().node = None;
    assert!(!actions(&world).iter().any(|a| a.starts_with("remove")));
}

#[test]
fn an_upgrade_prepares_the_cluster_and_then_adds_a_machine() {
    let mut world = World::settled(3);
    world.control_plane.version = "v1.36.0".into();
    check(&world, &["kubeadm-config v1.36.0", "rbac", "join"]);
}

#[test]
fn an_upgrade_waits_for_the_topology() {
    let mut world = World::settled(3);
    world.cluster.topology_version = Some("v1.37.0".into());
    world.control_plane.version = "v1.36.0".into();
    check(&world, &[]);
    let blockers = world.plan().blockers;
    assert_eq!(
        blockers.messages(),
        ["* waiting for a version upgrade to v1.37.0 to be propagated"]
    );
    // On the way to v1.37.0 the topology passes v1.36.0.
    world.cluster.upgrade_step = Some("v1.36.0".into());
    assert_eq!(actions(&world).len(), 3);
}

#[test]
fn changes_of_the_specification_replace_machines_and_labels_do_not() {
    let mut world = World::settled(3);
    world.control_plane.machine_labels.insert("team".into(), "a".into());
    world.control_plane.deletion = json!({ "nodeDrainTimeoutSeconds": 5 });
    check(&world, &[]);
    world.control_plane.kubeadm["joinConfiguration"]["nodeRegistration"]["criSocket"] = json!("unix:///other");
    world.control_plane.kubeadm["initConfiguration"]["nodeRegistration"]["criSocket"] = json!("unix:///other");
    assert!(actions(&world).contains(&"join".to_owned()));
}

#[test]
fn what_the_bootstrap_controller_adds_is_no_change() {
    let mut world = World::settled(3);
    for machine in world.machines.values_mut() {
        let Seen::Found(config) = &mut machine.config else {
            panic!()
        };
        let spec = &mut config["spec"];
        spec["clusterConfiguration"]["controlPlaneEndpoint"] = json!("127.0.0.1:6443");
        spec["files"] = json!([]);
        if spec["joinConfiguration"].is_object() {
            spec["joinConfiguration"]["discovery"] = json!({ "bootstrapToken": { "token": "a.b" } });
            spec["joinConfiguration"]["nodeRegistration"]["imagePullPolicy"] = json!("IfNotPresent");
        }
    }
    world.control_plane.kubeadm["clusterConfiguration"]["dns"] = json!({ "imageTag": "v1.12" });
    check(&world, &[]);
}

#[test]
fn another_template_replaces_machines() {
    let mut world = World::settled(1);
    world.control_plane.template.name = "tmpl-2".into();
    check(&world, &["kubeadm-config v1.35.0", "rbac", "join"]);
}

#[test]
fn rollouts_can_be_asked_for_by_time() {
    let mut world = World::settled(1);
    world.control_plane.rollout_after = Some(world.now + SignedDuration::from_secs(10));
    check(&world, &[]);
    world.now += SignedDuration::from_secs(10);
    assert!(actions(&world).contains(&"join".to_owned()));
    world.control_plane.rollout_after = None;
    world.control_plane.rollout_before_days = Some(30);
    let first = name(&world, 0);
    let expiry = world.now + SignedDuration::from_hours(24 * 31);
    world.machines.get_mut(&first).unwrap().certificates_expiry = Some(expiry);
    check(&world, &[]);
    world.now += SignedDuration::from_hours(25);
    assert!(actions(&world).contains(&"join".to_owned()));
}

fn fail_health_check(world: &mut World, name: &str) {
    let now = world.now;
    let conditions = &mut world.machines.get_mut(name).unwrap().conditions;
    set(conditions, "HealthCheckSucceeded", "False", "UnhealthyNode", now);
    set(conditions, "OwnerRemediated", "False", "WaitingForRemediation", now);
}

#[test]
fn an_unhealthy_machine_is_deleted_and_remembered() {
    let mut world = World::settled(3);
    let second = name(&world, 1);
    fail_health_check(&mut world, &second);
    check(
        &world,
        &[
            &format!("delete {second} (remediation)"),
            "annotate remediation-in-progress",
        ],
    );
    world.reconcile(usize::MAX);
    assert!(world.control_plane.annotations.contains_key(REMEDIATION_IN_PROGRESS));
    world.run();
    assert_eq!(world.machines.len(), 3);
    assert!(!world.control_plane.annotations.contains_key(REMEDIATION_IN_PROGRESS));
    let replacement = name(&world, 2);
    assert!(world.machines[&replacement].annotations[REMEDIATION_FOR].contains(&second));
    assert_eq!(world.last_status["lastRemediation"]["machine"], second);
}

#[test]
fn nothing_is_done_to_machines_without_a_connection() {
    let mut world = World::settled(3);
    // With an external etcd no member has to be asked, so that nothing else would stop it.
    world.control_plane.managed_etcd = false;
    let second = name(&world, 1);
    fail_health_check(&mut world, &second);
    world.control_plane.version = "v1.36.0".into();
    world.reachable = false;
    world.outage = Some((world.now, Some(world.now)));
    check(&world, &[]);
    let plan = world.plan();
    assert!(
        plan.notes.iter().any(|note| note.message.contains("cannot be reached")),
        "{:?}",
        plan.notes
    );
    assert_eq!(plan.rolling_out, 3, "the rollout has not ended");
    assert_eq!(plan.remediation[0].0, second, "the answer to the health check stays");
    world.control_plane.replicas = 5;
    check(&world, &[]);
}

#[test]
fn the_only_machine_and_the_last_healthy_one_are_not_remediated() {
    let mut world = World::settled(1);
    let first = name(&world, 0);
    fail_health_check(&mut world, &first);
    check(&world, &[]);
    let mut world = World::settled(3);
    let (first, second, third) = (name(&world, 0), name(&world, 1), name(&world, 2));
    world.broken.extend([second, third]);
    fail_health_check(&mut world, &first);
    check(&world, &[]);
}

#[test]
fn remediation_of_the_same_problem_has_limits() {
    let mut world = World::settled(3);
    let third = name(&world, 2);
    fail_health_check(&mut world, &third);
    let last = json!({ "machine": "old", "timestamp": world.now.to_string(), "retryCount": 2 });
    let machine = world.machines.get_mut(&third).unwrap();
    machine.annotations.insert(REMEDIATION_FOR.into(), last.to_string());
    world.control_plane.remediation.max_retry = Some(2);
    check(&world, &[]);
    world.control_plane.remediation.max_retry = Some(3);
    assert_eq!(actions(&world).len(), 2);
    world.control_plane.remediation.retry_period = std::time::Duration::from_mins(1);
    check(&world, &[]);
    let now = Moment::at(world.now);
    let planned = world.plan_at(&now);
    let said = &planned.remediation[0].1.message;
    assert!(said.contains("latest 1m0s (RetryPeriodSeconds)"), "{said}");
    assert_eq!(now.next_deadline(), Some(world.now + SignedDuration::from_secs(60)));
    world.now += SignedDuration::from_secs(60);
    assert_eq!(actions(&world).len(), 2);
}

#[test]
fn deletion_waits_for_workers_and_then_takes_all_at_once() {
    let mut world = World::settled(3);
    world.control_plane.deleting = true;
    world.workers = vec!["w1".into()];
    check(&world, &[]);
    world.workers.clear();
    assert_eq!(actions(&world).len(), 3);
    world.reconcile(usize::MAX);
    assert!(world.machines.values().all(|m| m.deleted.is_some()));
    assert!(
        world
            .machines
            .values()
            .all(|m| !m.annotations.contains_key(PRE_TERMINATE_HOOK))
    );
    world.run();
    assert!(!world.finalizer);
}

#[test]
fn with_an_external_etcd_no_member_is_touched() {
    let mut world = World::settled(3);
    world.control_plane.managed_etcd = false;
    world.control_plane.kubeadm["clusterConfiguration"]["etcd"] = json!({ "external": { "endpoints": ["https://e"] } });
    let first = name(&world, 0);
    world.machines.get_mut(&first).unwrap().deleted = Some(world.now);
    world.advance(&first);
    check(&world, &[&format!("release {first}")]);
}

/// Changes what is known of the owners of a Machine.
fn owned(world: &mut World, name: &str, control: Control, owners: Vec<OwnerReference>) {
    let machine = world.machines.get_mut(name).unwrap();
    (machine.control, machine.owners) = (control, owners);
}

#[test]
fn machines_that_lost_their_owner_are_taken_back_before_anything_else() {
    let mut world = World::settled(3);
    let second = name(&world, 1);
    owned(&mut world, &second, Control::Free, Vec::new());
    world.control_plane.replicas = 5;
    check(&world, &[&format!("own {second}")]);
    world.run();
    assert_eq!(world.machines.len(), 5);
    assert_eq!(world.machines[&second].owners[0].uid, "cp-uid");
}

#[test]
fn an_owner_from_before_a_restore_is_replaced_and_others_stay() {
    let mut world = World::settled(1);
    let first = name(&world, 0);
    let before = owner::controller(
        "controlplane.cluster.x-k8s.io/v1beta1",
        "KubeadmControlPlane",
        "cp",
        "before",
    );
    let other = owner::reference("example.io/v1", "Backup", "b", "backup");
    owned(&mut world, &first, Control::Outdated, vec![before, other.clone()]);
    world.run();
    let owners = &world.machines[&first].owners;
    assert_eq!(owners[0], other);
    assert_eq!((owners.len(), owners[1].uid.as_str()), (2, "cp-uid"));
    assert_eq!(owners[1].api_version, "controlplane.cluster.x-k8s.io/v1beta2");
}

#[test]
fn machines_of_users_are_adopted_unless_their_version_is_far_away() {
    let mut world = World::settled(1);
    let first = name(&world, 0);
    owned(&mut world, &first, Control::Free, Vec::new());
    let machine = world.machines.get_mut(&first).unwrap();
    machine.labels.remove("cluster.x-k8s.io/control-plane-name");
    machine.version = "v1.34.2".into();
    check(&world, &[&format!("own {first}")]);
    world.machines.get_mut(&first).unwrap().version = "v1.33.0".into();
    check(&world, &[]);
    let plan = world.plan();
    let why = plan.blocked.unwrap().message;
    assert!(why.contains("\"v1.33.0\" is more than one minor version away"), "{why}");
    // Users know the version of a Machine that names none.
    world.machines.get_mut(&first).unwrap().version = String::new();
    check(&world, &[&format!("own {first}")]);
    world.machines.get_mut(&first).unwrap().version = "v1.35.0".into();
    world.cluster.refers_here = false;
    check(&world, &[]);
    // What was not adopted does not go with the control plane.
    world.control_plane.deleting = true;
    check(&world, &["remove finalizer"]);
}

#[test]
fn machines_of_users_are_adopted_together_or_not_at_all() {
    let mut world = World::settled(3);
    for index in 0..2 {
        let name = name(&world, index);
        owned(&mut world, &name, Control::Free, Vec::new());
        let machine = world.machines.get_mut(&name).unwrap();
        machine.labels.remove("cluster.x-k8s.io/control-plane-name");
    }
    let [first, second, third] = [0, 1, 2].map(|index| name(&world, index));
    world.machines.get_mut(&second).unwrap().version = "v1.33.0".into();
    check(&world, &[]);
    assert!(world.plan().blocked.unwrap().message.contains(&second));
    // What was the control plane's own comes back anyway.
    owned(&mut world, &third, Control::Free, Vec::new());
    check(&world, &[&format!("own {third}")]);
    world.machines.get_mut(&second).unwrap().version = "v1.36.0".into();
    check(
        &world,
        &[
            &format!("own {first}"),
            &format!("own {second}"),
            &format!("own {third}"),
        ],
    );
}

#[test]
fn a_control_plane_that_was_deleted_meanwhile_takes_no_machine_back() {
    let mut world = World::settled(1);
    let first = name(&world, 0);
    owned(&mut world, &first, Control::Free, Vec::new());
    for (answer, message) in [
        (Ok(true), "has just been deleted"),
        (Err("no answer".to_owned()), "no answer"),
    ] {
        world.deleted_meanwhile = answer;
        check(&world, &[]);
        let why = world.plan().blocked.unwrap().message;
        assert!(why.contains(message), "{why}");
    }
    world.deleted_meanwhile = Ok(false);
    check(&world, &[&format!("own {first}")]);
}

#[test]
fn secrets_that_lost_their_owner_are_taken_back() {
    let world = World::new(1);
    let owned = |control: Control, generated: bool| {
        let mut facts = world.facts();
        let secret = SecretFacts {
            control,
            generated,
            ..SecretFacts::default()
        };
        facts.certificates[0].secret = Seen::Found(secret.clone());
        facts.kubeconfig = Kubeconfig::Found {
            secret,
            expires: None,
            server: None,
        };
        let Decision::Plan(plan) = plan(&facts, &Moment::at(world.now)) else {
            panic!("something is asked for");
        };
        let owned = plan
            .actions
            .iter()
            .filter(|action| matches!(action, Action::OwnSecret { .. }));
        owned.count()
    };
    assert_eq!(owned(Control::Free, true), 2);
    assert_eq!(owned(Control::Outdated, true), 2);
    assert_eq!(owned(Control::Outdated, false), 2);
    assert_eq!(owned(Control::Config, true), 2);
    assert_eq!(owned(Control::Free, false), 0, "a user brought it");
    assert_eq!(owned(Control::Other, true), 0);
    assert_eq!(owned(Control::Ours, true), 0);
}
