//! Decides what to do next: pure, complete, and with at most one disruptive action at a time.

mod addons;
mod adopt;
pub mod certificates;
mod core_dns;
pub mod delete;
mod guards;
pub mod in_place;
mod init;
mod members;
pub mod preflight;
pub mod remediate;
mod rollout;
pub mod rotation;
mod scale_down;
mod scale_up;
mod sync;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use windlass_controller_runtime::{Blocked, Decision, EventType, MetadataChange, Moment, Note, StatusPace};
use windlass_etcd::MemberId;
use windlass_pki::Purpose;

use crate::core_dns::CoreDnsChange;
use crate::facts::{Control, CpMachine, Facts};
use crate::finding::Finding;
use crate::health::{self, Health};
use crate::question::Question;
use preflight::Blockers;
use rotation::{Progress, RotatedKubeconfig, StageChange};

/// A Machine to be made, with what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMachine {
    /// Name of all three objects.
    pub name: String,
    /// The Machine; absent when it exists and only lacks something.
    pub machine: Option<Value>,
    /// Identity of the Machine when it exists.
    pub uid: Option<String>,
    /// The KubeadmConfig, still without owner; absent when it exists.
    pub config: Option<Value>,
    /// The infrastructure machine, still without owner; absent when it exists.
    pub infra: Option<Value>,
}

/// Moves leadership away from a member before it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveLeader {
    /// Node of the leader.
    pub from: String,
    /// Members to lead instead, the best first, each with its Node.
    pub to: Vec<(MemberId, String)>,
}

/// A member that leaves etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Identity of the member.
    pub id: MemberId,
    /// Its name; empty when it never started.
    pub name: String,
    /// Nodes whose members may be asked to remove it, in order.
    pub through: Vec<String>,
}

/// What is written to the API server of the workload cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadChange {
    /// kubeadm's configuration in the cluster gets the new specification before Machines with it join.
    KubeadmConfig {
        /// `clusterConfiguration` of the control plane.
        configuration: Value,
        /// The Kubernetes version to come.
        version: String,
    },
    /// The role bindings that newer kubeadm versions rely on.
    Rbac {
        /// The Kubernetes version to come.
        version: String,
    },
    /// kube-proxy follows the Kubernetes version.
    KubeProxyImage {
        /// The image.
        image: String,
    },
    /// kubeadm's configuration in the cluster gets the settings of DNS.
    KubeadmDns {
        /// `clusterConfiguration.dns` of the control plane.
        dns: Value,
        /// The Kubernetes version, which decides the format.
        version: String,
    },
    /// CoreDNS follows the settings of DNS.
    CoreDns(CoreDnsChange),
    /// Machines that join learn which authorities to trust.
    ClusterInfo {
        /// The certificates, PEM.
        authorities: String,
    },
    /// Aggregated API servers trust authorities no more.
    DropExtensionAuthorities {
        /// Of their certificates.
        fingerprints: BTreeSet<String>,
    },
}

/// One thing to do. Actions are done in order; the first that fails ends the attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The Cluster is made an owner of the infrastructure template, so that both are moved and deleted together.
    OwnTemplate {
        /// What is applied.
        object: Value,
    },
    /// A missing authority is made.
    CreateCertificate {
        /// What it is for.
        purpose: Purpose,
    },
    /// The control plane becomes the controller of a Secret.
    OwnSecret {
        /// What it is for.
        purpose: Purpose,
        /// The merge patch.
        patch: Value,
    },
    /// The administrator's kubeconfig is made, or made again.
    WriteKubeconfig {
        /// URL of the API server.
        server: String,
        /// There is one already, which is replaced.
        replace: bool,
    },
    /// A Machine is changed in place.
    ApplyMachine {
        /// Name of the Machine.
        name: String,
        /// What is applied.
        object: Value,
    },
    /// Fields of a Machine are changed, without touching anything else.
    PatchMachine {
        /// Name of the Machine.
        name: String,
        /// The merge patch.
        patch: Value,
    },
    /// Labels and annotations of a KubeadmConfig or infrastructure machine are changed in place.
    ChangeMetadata {
        /// The object, of which apiVersion, kind, namespace, name and uid count.
        object: Value,
        /// What changes.
        change: MetadataChange,
    },
    /// A Machine is made, or completed after an interruption.
    CreateMachine(Box<NewMachine>),
    /// A Machine is updated in place.
    BeginUpdate(Box<in_place::Update>),
    /// The conditions of a Machine that this controller owns.
    SetMachineConditions {
        /// Name of the Machine.
        name: String,
        /// All conditions of ours.
        conditions: Vec<Condition>,
    },
    /// An object of the workload cluster is changed.
    Workload(WorkloadChange),
    /// A Machine is deleted, after leadership has moved away from its member.
    DeleteMachine {
        /// Name of the Machine.
        name: String,
        /// Where leadership goes first.
        leader: Option<MoveLeader>,
        /// Why, for people.
        why: &'static str,
    },
    /// A deleting Machine may go: leadership moves, its member leaves, our hook comes off.
    ReleaseMachine {
        /// Name of the Machine.
        name: String,
        /// Where leadership goes first.
        leader: Option<MoveLeader>,
        /// The member that leaves.
        member: Option<LeavingMember>,
    },
    /// A member without a Machine leaves.
    RemoveMember(LeavingMember),
    /// Part of deleting the whole control plane: the hook comes off and the Machine is deleted.
    TearDownMachine {
        /// Name of the Machine.
        name: String,
        /// Our hook is there.
        hooked: bool,
        /// It is deleted already.
        deleting: bool,
    },
    /// An annotation of the control plane is set or, without a value, taken off.
    Annotate {
        /// Its key.
        key: &'static str,
        /// Its value.
        value: Option<String>,
    },
    /// The expiry of a Node's API server certificate is written to its KubeadmConfig.
    RecordExpiry {
        /// Name of the KubeadmConfig.
        config: String,
        /// When the certificate expires.
        expiry: Timestamp,
    },
    /// An authority goes to its next stage of a rotation.
    StageAuthority(Box<StageChange>),
    /// Workers made before a time are to be replaced in this stage of a rotation.
    MarkWorkers {
        /// Identity of the Secret of the cluster's authority.
        uid: String,
        /// Version of that Secret.
        resource_version: String,
        /// The time.
        before: Timestamp,
    },
    /// The administrator's kubeconfig follows a rotation.
    RotateKubeconfig(Box<RotatedKubeconfig>),
    /// A MachineDeployment replaces Machines made before a time.
    RollOut {
        /// Its name.
        deployment: String,
        /// The time.
        after: Timestamp,
    },
    /// The control plane is gone.
    RemoveFinalizer,
}

impl Action {
    /// True for what changes the set of Machines or members, or makes one unavailable; a plan holds at most one of these.
    pub fn disruptive(&self) -> bool {
        matches!(
            self,
            Self::DeleteMachine { .. } | Self::ReleaseMachine { .. } | Self::RemoveMember(_) | Self::BeginUpdate(_)
        ) || matches!(self, Self::CreateMachine(new) if new.machine.is_some())
    }
}

/// How far the control plane is, which decides what can be said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The Cluster's infrastructure is not there yet.
    #[default]
    WaitingForInfrastructure,
    /// The API server's address is not known yet.
    WaitingForEndpoint,
    /// Machines are managed.
    Running,
    /// The control plane is being deleted; the reason and message of the condition.
    Deleting(&'static str, String),
}

/// Everything that was decided.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// Why the plan is as it is; those with an event are for people.
    pub notes: Vec<Note>,
    /// How far the control plane is.
    pub stage: Stage,
    /// What was found about the Machines; absent before there can be any.
    pub health: Option<Health>,
    /// Why a change of the number of Machines cannot begin.
    pub blockers: Blockers,
    /// Answers to failed health checks, by Machine.
    pub remediation: Vec<(String, Finding)>,
    /// Number of Machines that a rollout replaces.
    pub rolling_out: usize,
    /// How far a rotation of the authorities is.
    pub rotation: Option<Progress>,
    /// When to look again for what sends no event.
    pub requeue: Option<Duration>,
    /// What keeps the plan from going further.
    pub blocked: Option<Blocked>,
}

impl Plan {
    /// The plan for a control plane of which nothing is left.
    pub(crate) fn gone() -> Self {
        Self {
            actions: vec![Action::RemoveFinalizer],
            ..Self::default()
        }
    }

    fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn note(&mut self, message: impl Into<String>) {
        self.notes.push(Note::new(message));
    }

    fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.notes.push(Note::event(EventType::Warning, reason, message));
    }

    /// Something is wrong that only a change of input can repair.
    fn block(&mut self, why: impl Into<String>) {
        self.blocked = Some(Blocked::failed("Blocked", why));
    }

    fn again_within(&mut self, wait: Duration) {
        self.requeue = Some(self.requeue.map_or(wait, |old| old.min(wait)));
    }
}

/// The shortest wait for what sends no event while the cluster changes: etcd and static pods.
const SETTLING: Duration = Duration::from_secs(2);
/// The same, when nothing has changed for a while.
const SLOW: Duration = Duration::from_secs(5);
/// What is looked at from time to time while something is wrong.
const TROUBLED: Duration = Duration::from_secs(15);
/// etcd sends no events: its alarms and members are looked at from time to time, also at rest. As often as Cluster API does.
const QUIET: Duration = Duration::from_mins(10);
/// The least time between two writes of the conditions of a Machine.
const MACHINE_STATUS_PACE: Duration = Duration::from_millis(300);

/// Decides what to do next, or asks for facts.
pub fn plan(facts: &Facts, now: &Moment) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    let mut question = Question::default();
    if facts.control_plane.deleting {
        delete::plan(facts, now, &mut plan);
    } else {
        steps(facts, now, &mut plan, &mut question);
        conditions(now, &mut plan);
    }
    debug_assert!(
        plan.actions.iter().filter(|a| a.disruptive()).count() <= 1,
        "more than one disruptive action: {:?}",
        plan.actions
    );
    if question.is_empty() {
        Decision::Plan(plan)
    } else {
        Decision::Ask(question)
    }
}

/// The order of decisions; a step that acts on members or Machines ends the plan.
fn steps(facts: &Facts, now: &Moment, plan: &mut Plan, question: &mut Question) {
    if facts.cluster.uid.is_empty() {
        return;
    }
    sync::own_template(facts, plan);
    // At once: garbage collection deletes Secrets that name only owners of before a restore.
    certificates::own_all(facts, plan);
    if !facts.cluster.infrastructure_provisioned {
        return;
    }
    // Not earlier: until then, users can bring their own authorities.
    certificates::make(facts, plan);
    plan.stage = Stage::WaitingForEndpoint;
    let Some(endpoint) = &facts.cluster.endpoint else {
        return;
    };
    plan.stage = Stage::Running;
    certificates::kubeconfig(facts, endpoint, now, plan);
    sync::machines(facts, plan);
    let health = health::assess(facts, now);
    // Whatever step ends the plan, these stay as they are.
    plan.rolling_out = rollout::outdated(&health).len();
    plan.remediation = remediate::answered(&health);
    let may_change = rotation::begin(facts, now, plan, question);
    let step = match adopt::plan(facts, plan, question) {
        Step::Rest if may_change => machines(facts, &health, now, plan, question),
        // Deletions that a user or a MachineHealthCheck began go on.
        Step::Rest if facts.reached().is_some() => {
            members::release_deleting(facts, &health, plan);
            Step::Ended
        }
        Step::Rest | Step::Ended => Step::Ended,
    };
    addons::expiry(facts, plan, question);
    if step == Step::Rest {
        addons::plan(facts, plan, question);
        core_dns::plan(facts, plan, question);
        rotation::advance(facts, &health, now, plan, question);
    }
    if !settled(&health) && !facts.machines.is_empty() {
        // A plan that is blocked fails. Its requeue limits the backoff, and the cause does not settle by itself. A workload cluster that
        // does not answer is not polled: its connection reports every attempt.
        if plan.blocked.is_some() {
            plan.again_within(TROUBLED);
        } else if facts.reached().is_some() {
            plan.again_within(settling(facts, &health, now));
        }
    }
    if facts.members().is_some() {
        plan.again_within(QUIET);
    }
    plan.health = Some(health);
}

/// Whether the planner goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing to do here; go on.
    Rest,
    /// Something is done or waited for; nothing else may begin.
    Ended,
}

/// A step of the sequence.
type Rule<'r> = &'r dyn Fn(&mut Plan, &mut Question) -> Step;

fn machines(facts: &Facts, health: &Health, now: &Moment, plan: &mut Plan, question: &mut Question) -> Step {
    if facts.is_blind() && !facts.machines.is_empty() {
        // What was found before the connection was lost does not hold any more.
        plan.note(format!(
            "Machines of the control plane are left as they are while Cluster {} cannot be reached",
            facts.cluster.name
        ));
        return Step::Ended;
    }
    let sequence: [Rule<'_>; 7] = [
        &|plan, _| members::remove_unexpected(facts, health, plan),
        &|plan, _| members::release_deleting(facts, health, plan),
        &|plan, _| guards::plan(facts, health, plan),
        &|plan, _| in_place::begin(facts, plan),
        &|plan, _| remediate::plan(facts, health, now, plan),
        &|plan, _| in_place::wait(facts, plan),
        &|plan, question| rollout::plan(facts, health, plan, question),
    ];
    for step in sequence {
        if step(plan, question) == Step::Ended {
            return Step::Ended;
        }
    }
    let current = facts.machines.len();
    let wanted = usize::try_from(facts.control_plane.replicas).unwrap_or_default();
    if current == 0 && wanted > 0 {
        return init::plan(facts, plan);
    }
    match current.cmp(&wanted) {
        std::cmp::Ordering::Less => scale_up::plan(facts, health, plan),
        std::cmp::Ordering::Greater => scale_down::plan(facts, health, &[], "scale down", plan),
        std::cmp::Ordering::Equal => Step::Rest,
    }
}

/// True when nothing is under way that sends no event.
fn settled(health: &Health) -> bool {
    unsettled(health).next().is_none()
}

/// The findings that may change without an event.
fn unsettled(health: &Health) -> impl Iterator<Item = &Finding> {
    let findings = std::iter::once(&health.components).chain(&health.etcd);
    findings.filter(|finding| finding.status != windlass_conditions::Status::True)
}

/// When to look again: soon after something changed, and less often the longer nothing does. A component that does not come up must not
/// cost requests every other second for as long as it lasts.
fn settling(facts: &Facts, health: &Health, now: &Moment) -> Duration {
    let conditions = &facts.control_plane.conditions;
    let since = unsettled(health).map(|finding| {
        let before = windlass_conditions::get(conditions, finding.kind);
        let lasts = before.filter(|before| finding.status.as_str() == before.status);
        lasts.map_or(now.now(), |before| before.last_transition_time.0)
    });
    let made = facts.machines.iter().map(|machine| machine.created);
    let changed = since.chain(made).max().unwrap_or(now.now());
    if now.elapsed(changed, SignedDuration::from_mins(2)) {
        TROUBLED
    } else if now.elapsed(changed, SignedDuration::from_secs(30)) {
        SLOW
    } else {
        SETTLING
    }
}

/// The conditions of every Machine, unless they were written a moment ago and the difference can wait.
fn conditions(now: &Moment, plan: &mut Plan) {
    let Some(health) = &plan.health else {
        return;
    };
    let mut actions = Vec::new();
    let mut later: Option<Duration> = None;
    for view in health
        .machines
        .iter()
        .filter(|view| view.facts.control == Control::Ours)
    {
        let machine = &view.facts;
        let answer = plan
            .remediation
            .iter()
            .filter(|(name, _)| *name == machine.name)
            .map(|(_, finding)| finding);
        let stamped: Vec<Condition> = view
            .findings
            .iter()
            .chain(answer)
            .map(|f| f.stamp(&machine.conditions, machine.generation, now.now()))
            .collect();
        match wait(machine, &stamped) {
            Some(wait) => later = Some(later.map_or(wait, |later| later.min(wait))),
            None => actions.push(Action::SetMachineConditions {
                name: machine.name.clone(),
                conditions: stamped,
            }),
        }
    }
    // Before anything disruptive, as the reasons for it should be readable while it happens, and before whatever the workload cluster
    // can refuse, as its failure ends the attempt and the conditions tell why. New Machines come first in time anyway, because they have
    // no conditions yet.
    let waits = |action: &Action| action.disruptive() || matches!(action, Action::Workload(_));
    let at = plan.actions.iter().position(waits).unwrap_or(plan.actions.len());
    plan.actions.splice(at..at, actions);
    if let Some(wait) = later {
        plan.again_within(wait);
    }
}

/// How long the write of the conditions of a Machine waits.
fn wait(machine: &CpMachine, conditions: &[Condition]) -> Option<Duration> {
    let present = || {
        let ours = |old: &&Condition| conditions.iter().any(|new| new.type_ == old.type_);
        let ours: Vec<&Condition> = machine.conditions.iter().filter(ours).collect();
        json!({ "conditions": ours })
    };
    let new = json!({ "conditions": conditions });
    StatusPace::wait_after(machine.conditions_age, (MACHINE_STATUS_PACE, true), present, &new)
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
