//! Rules that depend on time: each of them schedules the reconcile at which its answer changes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Decision, Moment, Seen};
use windlass_controlplane_kubeadm::facts::Facts;
use windlass_controlplane_kubeadm::names::{DELETE_MACHINE, REMEDIATION_FOR};
use windlass_controlplane_kubeadm::plan::{Action, Plan, plan};
use windlass_controlplane_kubeadm::status::{Done, status};

use crate::world::{World, set};

/// The next deadlines of plan and status.
fn deadlines(world: &World) -> [Option<Timestamp>; 2] {
    let (planned, told) = (Moment::at(world.now), Moment::at(world.now));
    let plan = world.plan_at(&planned);
    status(&world.facts(), &plan, &Done::default(), &told);
    [planned.next_deadline(), told.next_deadline()]
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// When half of the life of the administrator's certificate is over: the only deadline of a control plane at rest.
fn rest(world: &World) -> Timestamp {
    let (certificate, _) = world.kubeconfig.as_ref().unwrap();
    certificate.not_after() - SignedDuration::from_hours(24 * 365) / 2
}

fn first(world: &World) -> String {
    world.machines.keys().next().unwrap().clone()
}

#[test]
fn a_settled_control_plane_waits_only_for_the_renewal_of_its_kubeconfig_and_looks_at_etcd() {
    let mut world = World::settled(3);
    assert_eq!(deadlines(&world), [Some(rest(&world)), None]);
    assert!(world.plan().notes.is_empty());
    assert_eq!(world.plan().requeue, Some(Duration::from_mins(10)));
    world.now = rest(&world);
    let renewed = |action: &Action| matches!(action, Action::WriteKubeconfig { replace: true, .. });
    assert!(world.plan().actions.iter().any(renewed));
}

#[test]
fn old_findings_are_given_up_when_their_grace_ends() {
    let mut world = World::settled(3);
    let conditions = &mut world.control_plane.conditions;
    let initialized = conditions.iter().find(|c| c.type_ == "Initialized").unwrap();
    let end = initialized.last_transition_time.0 + seconds(300);
    world.reachable = false;
    assert_eq!(deadlines(&world)[0], Some(end));
    world.now = end;
    assert_eq!(deadlines(&world)[0], Some(rest(&world)));
    let components = |world: &World| world.plan().health.unwrap().components;
    assert_eq!(components(&world).reason, "ConnectionDown");
    assert_eq!(components(&world).message, "Remote connection not established yet");
    // The grace begins with the outage when there was no success, and else with the last success.
    let (since, heard) = (end - seconds(200), end - seconds(100));
    world.outage = Some((since, None));
    assert_eq!(deadlines(&world)[0], Some(since + seconds(300)));
    world.outage = Some((since, Some(heard)));
    assert_eq!(deadlines(&world)[0], Some(heard + seconds(300)));
    world.now = heard + seconds(300);
    let expect = format!("Last successful probe at {}", heard.strftime("%Y-%m-%dT%H:%M:%SZ"));
    assert_eq!(components(&world).message, expect);
}

#[test]
fn a_process_that_has_just_started_gives_up_no_findings() {
    let mut world = World::settled(3);
    world.reconcile(usize::MAX);
    world.reachable = false;
    world.outage = None;
    world.now += seconds(3600);
    assert_eq!(deadlines(&world)[0], Some(rest(&world)));
    let plan = world.plan();
    assert_eq!(plan.health.unwrap().components.reason, "Healthy");
    let given_up = |action: &Action| match action {
        Action::SetMachineConditions { conditions, .. } => conditions.iter().any(|c| c.status != "True"),
        _ => false,
    };
    assert!(!plan.actions.iter().any(given_up), "{:?}", plan.actions);
    assert_eq!(plan.requeue, None, "the connection reports its first attempt");
}

#[test]
fn a_rollout_begins_at_the_time_that_was_set() {
    let mut world = World::settled(1);
    let after = world.now + seconds(3600);
    world.control_plane.rollout_after = Some(after);
    assert_eq!(deadlines(&world)[0], Some(after));
    // Machines made after that time are no concern of it.
    world.control_plane.rollout_after = Some(crate::world::start());
    assert_eq!(deadlines(&world)[0], Some(rest(&world)));
}

#[test]
fn machines_are_replaced_before_their_certificates_expire() {
    let mut world = World::settled(1);
    world.control_plane.rollout_before_days = Some(30);
    let machine = first(&world);
    let expiry = world.now + SignedDuration::from_hours(24 * 31);
    world.machines.get_mut(&machine).unwrap().certificates_expiry = Some(expiry);
    let notice = world.now + SignedDuration::from_hours(24);
    assert_eq!(deadlines(&world)[0], Some(notice));
    world.now = notice;
    let health = world.plan().health.unwrap();
    assert_eq!(
        health.machines[0].up_to_date.differences,
        ["Certificates will expire soon"]
    );
}

#[test]
fn a_new_node_has_time_until_its_member_is_expected() {
    let mut world = World::settled(3);
    let machine = first(&world);
    world.members.retain(|m| m.name != machine);
    // The Nodes of the world are as old as itself.
    world.now = crate::world::start() + seconds(119);
    assert_eq!(deadlines(&world)[0], Some(crate::world::start() + seconds(120)));
    assert!(world.plan().health.unwrap().matching.matches);
    world.now += seconds(1);
    assert!(!world.plan().health.unwrap().matching.matches);
}

#[test]
fn remediation_is_tried_again_when_its_limits_end() {
    let mut world = World::settled(3);
    let machine = first(&world);
    let now = world.now;
    let remediated = world.machines.get_mut(&machine).unwrap();
    set(
        &mut remediated.conditions,
        "HealthCheckSucceeded",
        "False",
        "UnhealthyNode",
        now,
    );
    set(
        &mut remediated.conditions,
        "OwnerRemediated",
        "False",
        "WaitingForRemediation",
        now,
    );
    let last = json!({ "machine": "old", "timestamp": now.to_string(), "retryCount": 2 });
    remediated.annotations.insert(REMEDIATION_FOR.into(), last.to_string());
    world.control_plane.remediation.max_retry = Some(2);
    // A Machine that was healthy for an hour starts a new count: the refusal ends then.
    assert_eq!(deadlines(&world)[0], Some(now + seconds(3600)));
    world.control_plane.remediation.retry_period = Duration::from_mins(5);
    assert_eq!(deadlines(&world)[0], Some(now + seconds(300)));
}

#[test]
fn trouble_is_reported_once_it_lasts() {
    let mut world = World::settled(3);
    let machine = first(&world);
    world.broken.push(machine.clone());
    world.reconcile(usize::MAX);
    let since = world.now;
    assert_eq!(deadlines(&world)[1], Some(since + seconds(10)));
    let message = |world: &World| {
        let status = status(&world.facts(), &world.plan(), &Done::default(), &Moment::at(world.now));
        status["conditions"][0]["message"].as_str().unwrap().to_owned()
    };
    world.now += seconds(9);
    assert_eq!(message(&world), "");
    world.now += seconds(1);
    assert!(
        message(&world).contains("2 of 3 Machines have healthy"),
        "{}",
        message(&world)
    );
    assert_eq!(deadlines(&world)[1], None);
}

#[test]
fn etcd_has_time_for_its_first_answer() {
    let mut world = World::settled(1);
    world.reachable = false;
    world.control_plane.conditions.retain(|c| c.type_ != "Available");
    let initialized = world.control_plane.conditions.iter().find(|c| c.type_ == "Initialized");
    let end = initialized.unwrap().last_transition_time.0 + seconds(120);
    world.now = end - seconds(1);
    assert_eq!(deadlines(&world)[1], Some(end));
    world.now = end;
    assert_eq!(deadlines(&world)[1], None);
}

#[test]
fn a_new_machine_has_time_for_its_first_conditions() {
    let mut world = World::new(1);
    world.reconcile(usize::MAX);
    let machine = world.machines.values().next().unwrap();
    let end = machine.created + seconds(10);
    // The Cluster has lost its endpoint, so that no condition comes up.
    world.cluster.endpoint = None;
    assert_eq!(deadlines(&world), [None, Some(end)]);
    world.now = end;
    assert_eq!(deadlines(&world), [None, None]);
}

#[test]
fn conditions_that_were_just_written_wait_for_their_pace() {
    let mut world = World::settled(3);
    let machine = first(&world);
    world.machines.get_mut(&machine).unwrap().conditions_age = Some(Duration::from_secs(1));
    let plan = world.plan();
    let written = |name: &str| {
        let of = |action: &Action| matches!(action, Action::SetMachineConditions { name: of, .. } if of == name);
        plan.actions.iter().any(of)
    };
    let others: Vec<_> = world.machines.keys().filter(|name| **name != machine).collect();
    assert!(!written(&machine) && others.iter().all(|name| written(name)));
    assert_eq!(plan.requeue, Some(Duration::from_secs(2)));
}

#[test]
fn a_machine_whose_node_cannot_be_looked_up_is_not_released() {
    let mut world = World::settled(3);
    let machine = first(&world);
    let released = |world: &World| {
        let release = |action: &Action| matches!(action, Action::ReleaseMachine { .. });
        world.plan().actions.into_iter().find(release)
    };
    world.machines.get_mut(&machine).unwrap().deleted = Some(world.now);
    world.advance(&machine);
    // Its Node was never linked; the identity at the provider leads to it.
    world.machines.get_mut(&machine).unwrap().node = None;
    world.unlinked = Some(machine.clone());
    let Some(Action::ReleaseMachine {
        member: Some(member), ..
    }) = released(&world)
    else {
        panic!("{:?}", world.plan().actions);
    };
    assert_eq!(member.name, machine);
    let unreadable = world.machines.get_mut(&machine).unwrap();
    unreadable.provider_id = None;
    unreadable.infra = Seen::Failed("no answer".into());
    assert_eq!(released(&world), None);
    let plan = world.plan();
    assert!(plan.blockers.etcd && plan.requeue.is_some());
    assert!(
        plan.notes.iter().any(|note| note.message.contains("no answer")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_control_plane_whose_status_was_lost_does_nothing_without_sight() {
    let mut world = World::settled(3);
    let (machine, now) = (first(&world), world.now);
    let conditions = &mut world.machines.get_mut(&machine).unwrap().conditions;
    set(conditions, "HealthCheckSucceeded", "False", "UnhealthyNode", now);
    set(conditions, "OwnerRemediated", "False", "WaitingForRemediation", now);
    world.control_plane.initialized = false;
    world.control_plane.conditions.clear();
    for outage in [None, Some((now, None))] {
        world.reachable = false;
        world.outage = outage;
        let plan = world.plan();
        assert!(!plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
    }
    world.reachable = true;
    let mut facts = world.facts();
    let Workload::Up(reached) = &mut facts.workload else {
        panic!("{:?}", facts.workload);
    };
    reached.kubeadm_config = Err("timed out".into());
    let plan = planned(&facts, &world);
    assert!(!plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
}

#[test]
fn leadership_leaves_a_machine_that_does_not_know_its_node_yet() {
    let mut world = World::settled(3);
    let led = world.members.iter().find(|member| member.id == world.leader);
    let name = led.unwrap().name.clone();
    world.unlinked = Some(name.clone());
    let machine = world.machines.get_mut(&name).unwrap();
    machine.node = None;
    machine.annotations.insert(DELETE_MACHINE.into(), String::new());
    world.control_plane.replicas = 1;
    let deletes = |action: &Action| matches!(action, Action::DeleteMachine { .. });
    let Some(Action::DeleteMachine { name: of, leader, .. }) = world.plan().actions.into_iter().find(deletes) else {
        panic!("{:?}", world.plan().actions);
    };
    assert_eq!(of, name);
    assert_eq!(leader.map(|leader| leader.from), Some(name));
}

#[test]
fn a_kube_proxy_that_cannot_be_read_is_polled_rarely_and_noted_once() {
    let world = World::settled(3);
    let answered = |why: &str| {
        let mut facts = world.facts();
        facts.answers.kube_proxy = Some(Seen::Failed(why.into()));
        facts.answers.core_dns = Some(Seen::NotFound);
        planned(&facts, &world)
    };
    let plan = answered("daemonsets.apps \"kube-proxy\" is forbidden");
    assert_eq!(plan.requeue, Some(Duration::from_mins(10)));
    assert_eq!(plan.notes.len(), 1);
    assert_eq!(plan.notes, answered("request 2 timed out").notes);
}

#[test]
fn certificates_are_not_read_before_a_disruptive_action() {
    let mut world = World::settled(3);
    let machine = first(&world);
    let node = world.machines[&machine].node.clone().unwrap();
    let unread = world.machines.get_mut(&machine).unwrap();
    if let Seen::Found(config) = &mut unread.config {
        config["metadata"]["annotations"] = json!({});
    }
    let decide = |world: &World| plan(&world.facts(), &Moment::at(world.now));
    let Decision::Ask(question) = decide(&world) else {
        panic!("the certificate of {node} is not asked for");
    };
    assert_eq!(question.certificates, [(node, 6443)]);
    world.control_plane.replicas = 1;
    let Decision::Plan(plan) = decide(&world) else {
        panic!("the deletion of a Machine waits for certificates");
    };
    assert!(plan.actions.iter().any(Action::disruptive), "{:?}", plan.actions);
}

#[test]
fn a_certificate_that_cannot_be_read_is_asked_for_again() {
    let mut world = World::new(1);
    let endpoint = json!({ "bindPort": 7443 });
    world.control_plane.kubeadm["initConfiguration"]["localAPIEndpoint"] = endpoint.clone();
    world.control_plane.kubeadm["joinConfiguration"]["controlPlane"] = json!({ "localAPIEndpoint": endpoint });
    world.run();
    let machine = first(&world);
    let unread = world.machines.get_mut(&machine).unwrap();
    unread.config_ref["name"] = "of-another-name".into();
    if let Seen::Found(config) = &mut unread.config {
        config["metadata"]["annotations"] = json!({});
    }
    let Decision::Ask(question) = plan(&world.facts(), &Moment::at(world.now)) else {
        panic!("the certificate is not asked for");
    };
    let (node, port) = question.certificates[0].clone();
    assert_eq!(port, 7443);
    let answered = |answer: Result<Timestamp, String>| {
        let mut facts = world.facts();
        facts.answers.certificates.insert(node.clone(), answer);
        facts.answers.kube_proxy = Some(Seen::Found(world.kube_proxy.clone()));
        facts.answers.core_dns = Some(Seen::NotFound);
        planned(&facts, &world)
    };
    let plan = answered(Err("connection refused".into()));
    assert_eq!(plan.requeue, Some(Duration::from_mins(10)));
    let expiry = world.now + seconds(3600);
    let config = "of-another-name".to_owned();
    let plan = answered(Ok(expiry));
    assert!(
        plan.actions.contains(&Action::RecordExpiry { config, expiry }),
        "{:?}",
        plan.actions
    );
    assert_eq!(
        plan.requeue,
        Some(Duration::from_mins(10)),
        "the certificate is known: etcd is looked at"
    );
}

#[test]
fn a_blocked_plan_is_not_tried_every_two_seconds() {
    let mut world = World::settled(3);
    let machine = first(&world);
    world.broken.push(machine);
    assert_eq!(world.plan().requeue, Some(Duration::from_secs(2)));
    let mut facts = world.facts();
    facts.unowned.push("foreign".into());
    let plan = planned(&facts, &world);
    assert!(plan.blocked.is_some());
    assert_eq!(plan.requeue, Some(Duration::from_secs(15)));
}

/// etcd and static pods send no events, so a broken one is looked at again: often at first, and at last every 15 seconds.
#[test]
fn a_component_that_stays_broken_is_looked_at_less_often() {
    let mut world = World::settled(3);
    let machine = first(&world);
    world.broken.push(machine);
    world.now += SignedDuration::from_hours(1);
    world.reconcile(usize::MAX);
    let broken = world.now;
    for (after, wait) in [(0, 2), (10, 2), (40, 5), (120, 15), (3600, 15)] {
        world.now = broken + seconds(after);
        assert_eq!(world.plan().requeue, Some(Duration::from_secs(wait)), "after {after} s");
    }
}

/// The plan, when nothing has to be asked.
pub(crate) fn planned(facts: &Facts, world: &World) -> Plan {
    match plan(facts, &Moment::at(world.now)) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("asks for {question:?}"),
    }
}
