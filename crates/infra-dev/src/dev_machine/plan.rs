//! How a simulated machine starts and goes: pure. The virtual machine comes first, then the Node, then etcd and the API server of
//! a control plane machine side by side; each takes the time its spec says.
//!
//! A plan counts on its own actions: parts that they start are up in it. So no second reconcile is needed after it was carried out.

mod endpoint;

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::conditions::CONTROL_PLANE_INITIALIZED;
use windlass_api::reasons as core_reasons;
use windlass_api_ext::infrastructure::{DevMachineSpec, InMemoryComponentSpec};
use windlass_api_ext::{conditions as types, reasons};
use windlass_api_kubeadm::annotations::PRE_TERMINATE_CLEANUP;
use windlass_controller_runtime::{Blocked, Decision, Note, Triage as _};
use windlass_meta::{GoDuration, Moment};

use super::observe::{Observed, Question, was_up};
use super::timeline::{Part, Startup, up_at};
use crate::backend::{Before, Endpoint, Trouble};

/// Where the virtual machines of this backend claim to run.
const PROVIDER: &str = "in-memory://";

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the virtual machine.
    StartVm {
        /// When its start began. The epoch for one that ran before this process started: all its parts are up at once.
        started: Timestamp,
    },
    /// Register the Node.
    RegisterNode,
    /// Start the etcd member, the API server, the controller manager and the scheduler, for clients of this endpoint.
    StartControlPlane(Endpoint),
    /// Write the provider ID.
    SetProviderId(String),
    /// Mark the Machine as bootstrapped.
    MarkBootstrapped,
    /// Switch the virtual machine off and delete it.
    DeleteVm,
    /// Remove the finalizer of the DevMachine.
    RemoveFinalizer,
}

/// One part of the machine and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    /// The condition's type.
    pub(crate) type_: &'static str,
    /// Nothing when it is up, else the reason why not.
    pub(crate) waiting: Option<&'static str>,
    /// Words on it, for what the reason does not say.
    pub(crate) message: String,
}

/// The decision about one DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Effects, in order.
    pub(crate) actions: Vec<Action>,
    /// The parts, in the order in which they start.
    pub(crate) stages: Vec<Stage>,
    /// What the machine waits for.
    pub(crate) notes: Vec<Note>,
    /// Why the control plane cannot start.
    pub(crate) blocked: Option<Blocked>,
}

/// The provider ID of a machine.
pub(crate) fn provider_id(name: &str) -> String {
    format!("{PROVIDER}{name}")
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    if seen.deleting() {
        let mut actions = Vec::new();
        if seen.vm.is_some() {
            actions.push(Action::DeleteVm);
        }
        actions.push(Action::RemoveFinalizer);
        let plan = Plan {
            actions,
            ..Plan::default()
        };
        return plan.into();
    }
    let mut builder = Builder {
        seen,
        now,
        plan: Plan::default(),
        question: None,
    };
    builder.vm();
    builder.question.map_or(Decision::Plan(builder.plan), Decision::Ask)
}

struct Builder<'a> {
    seen: &'a Observed,
    now: &'a Moment,
    plan: Plan,
    question: Option<Question>,
}

impl Builder<'_> {
    fn stage(&mut self, type_: &'static str, waiting: Option<&'static str>) {
        self.plan.stages.push(Stage {
            type_,
            waiting,
            message: String::new(),
        });
    }

    /// What follows on a stage that is not up.
    fn wait_behind(&mut self, reason: &'static str, behind: &[&'static str]) {
        for type_ in behind {
            self.stage(type_, Some(reason));
        }
    }

    fn behind_vm(&self) -> &'static [&'static str] {
        if self.seen.is_control_plane() {
            &[
                types::NODE_PROVISIONED,
                types::ETCD_PROVISIONED,
                types::API_SERVER_PROVISIONED,
            ]
        } else {
            &[types::NODE_PROVISIONED]
        }
    }

    fn takes(&self, part: Part) -> Duration {
        startup(self.seen.machine.spec.as_ref(), part)
            .of(self.seen.machine.metadata.uid.as_deref().unwrap_or_default(), part)
    }

    /// Whether the simulated cloud keeps the machine from starting further.
    fn is_stuck(&self, by: Trouble) -> bool {
        self.seen.troubles.contains(&by)
    }

    /// Since when a part is up that starts at `started`.
    fn up_since(&self, started: Timestamp, part: Part) -> Option<Timestamp> {
        if part == Part::Vm && self.is_stuck(Trouble::SlowBoot) {
            return None;
        }
        let up = up_at(started, self.takes(part));
        self.now.reached(up).then_some(up)
    }

    fn vm(&mut self) {
        let recorded = was_up(&self.seen.machine, types::VM_PROVISIONED);
        let started = match (&self.seen.vm, self.blocked()) {
            (Some(vm), _) => vm.started,
            (None, _) if recorded => {
                let message = format!(
                    "{} ran before this process started: it goes on at once",
                    self.seen.name()
                );
                self.plan.notes.push(Note::new(message));
                self.start_vm(Timestamp::UNIX_EPOCH)
            }
            (None, Some((reason, message))) => {
                let why = if message.is_empty() { reason } else { &message };
                let message_of_note = format!("{} does not start yet: {why}", self.seen.name());
                self.plan.notes.push(Note::new(message_of_note));
                self.plan.stages.push(Stage {
                    type_: types::VM_PROVISIONED,
                    waiting: Some(reason),
                    message,
                });
                return self.wait_behind(reasons::WAITING_FOR_VM_PROVISIONED, self.behind_vm());
            }
            (None, None) => self.start_vm(self.now.now()),
        };
        let Some(up) = self.up_since(started, Part::Vm) else {
            self.stage(types::VM_PROVISIONED, Some(reasons::WAITING_FOR_STARTUP_TIMEOUT));
            return self.wait_behind(reasons::WAITING_FOR_VM_PROVISIONED, self.behind_vm());
        };
        self.stage(types::VM_PROVISIONED, None);
        let id = provider_id(self.seen.name());
        if self
            .seen
            .machine
            .spec
            .as_ref()
            .and_then(|spec| spec.provider_id.as_deref())
            != Some(id.as_str())
        {
            self.plan.actions.push(Action::SetProviderId(id));
        }
        self.node(up);
    }

    fn start_vm(&mut self, started: Timestamp) -> Timestamp {
        self.plan.actions.push(Action::StartVm { started });
        started
    }

    /// Why the virtual machine may not start yet.
    fn blocked(&self) -> Option<(&'static str, String)> {
        let spec = self.seen.machine.spec.as_ref();
        if spec.is_none_or(|spec| spec.backend.in_memory.is_none()) {
            let message =
                "spec.backend.inMemory is not set; the in-memory backend is the only one that this provider runs";
            return Some((reasons::FAILED, message.to_owned()));
        }
        let (Some(owner), Some(cluster)) = (&self.seen.owner, &self.seen.cluster) else {
            let message = "Waiting for the Machine and its Cluster to exist";
            return Some((
                core_reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
                message.to_owned(),
            ));
        };
        let status = cluster.status.as_ref();
        let done = status.and_then(|status| status.initialization.as_ref());
        if done.and_then(|done| done.infrastructure_provisioned) != Some(true) {
            return Some((core_reasons::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, String::new()));
        }
        if self.seen.is_control_plane()
            && let Err(waiting) = endpoint::endpoint(self.seen)
        {
            return Some(waiting);
        }
        if owner.spec.bootstrap.data_secret_name.is_some() {
            return None;
        }
        let initialized =
            status.is_some_and(|s| windlass_conditions::is_true(&s.conditions, CONTROL_PLANE_INITIALIZED));
        if !self.seen.is_control_plane() && !initialized {
            return Some((core_reasons::WAITING_FOR_CONTROL_PLANE_INITIALIZED, String::new()));
        }
        Some((core_reasons::WAITING_FOR_BOOTSTRAP_DATA, String::new()))
    }

    fn node(&mut self, vm_up: Timestamp) {
        let behind: &[&'static str] = &self.behind_vm()[1..];
        let Some(up) = self.up_since(vm_up, Part::Node) else {
            self.stage(types::NODE_PROVISIONED, Some(reasons::WAITING_FOR_STARTUP_TIMEOUT));
            return self.wait_behind(reasons::WAITING_FOR_NODE_PROVISIONED, behind);
        };
        if !self.seen.is_control_plane() {
            // A worker's kubelet registers with an API server that answers; the first one wakes every worker. One that had registered
            // waits as well, and what it has joined stays joined: a restart of this process changes no condition.
            let hangs = self.is_stuck(Trouble::JoinHangs);
            if !self.seen.api_server_up || hangs {
                let joined = !hangs && was_up(&self.seen.machine, types::NODE_PROVISIONED);
                let waiting = (!joined).then_some(reasons::WAITING_CONTROL_PLANE_INITIALIZED);
                return self.stage(types::NODE_PROVISIONED, waiting);
            }
            self.register();
            return self.stage(types::NODE_PROVISIONED, None);
        }
        self.stage(types::NODE_PROVISIONED, None);
        let vm = self.seen.vm.clone().unwrap_or_default();
        let etcd = self.up_since(up, Part::Etcd).is_some();
        let api_server = self.up_since(up, Part::ApiServer).is_some();
        self.stage(
            types::ETCD_PROVISIONED,
            (!etcd).then_some(reasons::WAITING_FOR_STARTUP_TIMEOUT),
        );
        // An API server without etcd does not answer, and a kubelet registers with one that does.
        let mut serving = etcd && api_server && !self.is_stuck(Trouble::JoinHangs);
        let (mut waiting, mut message) = (reasons::WAITING_FOR_STARTUP_TIMEOUT, String::new());
        if serving && !vm.api_server {
            match endpoint::endpoint(self.seen) {
                Ok(endpoint) => self.start_control_plane(endpoint),
                Err(why) => {
                    serving = false;
                    (waiting, message) = why;
                }
            }
        }
        if let Some(blocked) = &self.plan.blocked {
            serving = false;
            (waiting, message) = (reasons::FAILED, blocked.message.clone());
        }
        self.plan.stages.push(Stage {
            type_: types::API_SERVER_PROVISIONED,
            waiting: (!serving).then_some(waiting),
            message,
        });
        let joins = self.plan.blocked.is_none() && !self.is_stuck(Trouble::JoinHangs);
        if serving || self.seen.api_server_up && joins {
            self.register();
        }
    }

    fn start_control_plane(&mut self, endpoint: Endpoint) {
        match &self.seen.authorities {
            None => self.question = Some(Question::Authorities),
            Some(Ok(_)) => self.plan.actions.push(Action::StartControlPlane(endpoint)),
            Some(Err(error)) => self.plan.blocked = Some(Blocked::failed(error.reason(), error.to_string())),
        }
    }

    fn register(&mut self) {
        if !self.seen.vm.as_ref().is_some_and(|vm| vm.node) {
            if self.seen.pins.is_none() {
                self.question.get_or_insert(Question::Pins);
            }
            self.plan.actions.push(Action::RegisterNode);
        }
        let marked = |machine: &windlass_api::core::Machine| {
            let annotations = machine.metadata.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key(windlass_api_ext::annotations::MACHINE_BOOTSTRAPPED))
        };
        if self.seen.owner.as_ref().is_some_and(|owner| !marked(owner)) {
            self.plan.actions.push(Action::MarkBootstrapped);
        }
    }
}

/// What a control plane machine did before this process started. The kubeadm control plane provider removes its hook from a Machine that is being
/// deleted once it has removed the etcd member of the Machine, or when no etcd is needed any more as all Machines go.
pub(super) fn before(seen: &Observed) -> Before {
    if !was_up(&seen.machine, types::API_SERVER_PROVISIONED) {
        return Before::Nothing;
    }
    let has_left = seen.owner.as_ref().is_some_and(|owner| {
        let annotations = owner.metadata.annotations.as_ref();
        let hooked = annotations.is_some_and(|all| all.contains_key(PRE_TERMINATE_CLEANUP));
        let mut owners = owner.metadata.owner_references.iter().flatten();
        let is_kubeadm = owners.any(|owner| owner.kind == "KubeadmControlPlane");
        owner.metadata.deletion_timestamp.is_some() && is_kubeadm && !hooked
    });
    if has_left { Before::Left } else { Before::Joined }
}

/// The start-up time that the spec sets for a part; a part without one takes no time.
fn startup(spec: Option<&DevMachineSpec>, part: Part) -> Startup {
    let Some(backend) = spec.and_then(|spec| spec.backend.in_memory.as_ref()) else {
        return Startup::default();
    };
    let component: Option<&InMemoryComponentSpec> = match part {
        Part::Vm => backend.vm.as_ref(),
        Part::Node => backend.node.as_ref(),
        Part::Etcd => backend.etcd.as_ref(),
        Part::ApiServer => backend.api_server.as_ref(),
    };
    let Some(provisioning) = component.and_then(|component| component.provisioning.as_ref()) else {
        return Startup::default();
    };
    let duration: Option<GoDuration> = provisioning.startup_duration.parse().ok();
    Startup {
        duration: duration.map(GoDuration::to_std).unwrap_or_default(),
        jitter: provisioning
            .startup_jitter
            .as_deref()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
    }
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
