//! Lifecycle hooks of the Runtime SDK: when each is called, and what waits for it.
//!
//! A plan goes on as if a hook that was not asked yet had passed, so that all hooks on the way to the next step are asked in one round, in
//! order, up to the first that does not pass. What is still to be called stands in an annotation of the Cluster: a hook that has passed, and
//! whose mark could not be removed, is called again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_api::PendingHooks;

use crate::keys;
use crate::upgrade::UpgradePlan;

/// A hook in the life of a Cluster with a topology. Its deletion is not among them: the controller that deletes the Cluster calls that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// Before the first object of the topology.
    BeforeClusterCreate,
    /// When the control plane was initialized. Does not block.
    AfterControlPlaneInitialized,
    /// Before an upgrade.
    BeforeClusterUpgrade,
    /// Before the control plane gets the next version.
    BeforeControlPlaneUpgrade,
    /// When the control plane has a new version.
    AfterControlPlaneUpgrade,
    /// Before the workers get the next version.
    BeforeWorkersUpgrade,
    /// When the workers have a new version.
    AfterWorkersUpgrade,
    /// After an upgrade.
    AfterClusterUpgrade,
}

impl Hook {
    /// Its name in the Runtime SDK.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeClusterCreate => "BeforeClusterCreate",
            Self::AfterControlPlaneInitialized => "AfterControlPlaneInitialized",
            Self::BeforeClusterUpgrade => "BeforeClusterUpgrade",
            Self::BeforeControlPlaneUpgrade => "BeforeControlPlaneUpgrade",
            Self::AfterControlPlaneUpgrade => "AfterControlPlaneUpgrade",
            Self::BeforeWorkersUpgrade => "BeforeWorkersUpgrade",
            Self::AfterWorkersUpgrade => "AfterWorkersUpgrade",
            Self::AfterClusterUpgrade => "AfterClusterUpgrade",
        }
    }
}

/// What extensions are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The hook.
    pub hook: Hook,
    /// The version before, where the hook has one.
    pub from: String,
    /// The version after.
    pub to: String,
    /// The versions that the control plane still goes through.
    pub control_plane: Vec<String>,
    /// The versions that the workers still go through.
    pub workers: Vec<String>,
}

impl Call {
    /// A call without versions.
    pub(crate) fn about(hook: Hook) -> Self {
        Self {
            hook,
            from: String::new(),
            to: String::new(),
            control_plane: Vec::new(),
            workers: Vec::new(),
        }
    }
}

/// What extensions have answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What comes next may come.
    Passed,
    /// Not yet: ask again in so many seconds.
    Blocks {
        /// In how many seconds.
        seconds: i32,
        /// Why.
        message: String,
    },
    /// There is no answer.
    Failed(String),
}

/// The question for the versions that an upgrade goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The name of the handler.
    pub handler: String,
    /// The version of the control plane.
    pub from_control_plane: String,
    /// The oldest version of the workers; empty without workers.
    pub from_workers: String,
    /// The version that the upgrade ends with.
    pub to: String,
}

/// A question for an upgrade plan, and its answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAnswer {
    /// The question.
    pub request: PlanRequest,
    /// The versions, as the extension says them.
    pub answer: Result<UpgradePlan, String>,
}

/// Who serves hooks for a Cluster, and what they have answered.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// The hooks that extensions serve.
    pub served: BTreeSet<String>,
    /// Why it is not known which hooks are served.
    pub unknown: Option<String>,
    /// The answers in this reconcile.
    pub answers: BTreeMap<Hook, Answer>,
}

/// A hook that something waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocking {
    /// The hook.
    pub hook: Hook,
    /// Why.
    pub message: String,
    /// When it is asked again, in seconds. None when an event shows that it blocks no more.
    pub seconds: Option<i32>,
}

/// The hooks of one plan.
pub(crate) struct Calls<'a> {
    hooks: &'a Hooks,
    /// The names of hooks that are still to be called, those of others included.
    pending: PendingHooks,
    before: PendingHooks,
    /// What is to be asked, in order.
    pub(crate) asked: Vec<Call>,
    /// What blocks.
    pub(crate) blocking: Vec<Blocking>,
    /// What could not be asked.
    pub(crate) failed: Option<(Hook, String)>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(cluster: &Value, hooks: &'a Hooks) -> Self {
        let marks = cluster
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(keys::PENDING_HOOKS))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let pending = PendingHooks::read(marks);
        Self {
            hooks,
            before: pending.clone(),
            pending,
            asked: Vec::new(),
            blocking: Vec::new(),
            failed: None,
        }
    }

    /// Whether a hook is still to be called.
    pub(crate) fn is_pending(&self, hook: Hook) -> bool {
        self.pending.contains(hook.name())
    }

    fn is_served(&self, hook: Hook) -> bool {
        self.hooks.served.contains(hook.name())
    }

    /// Remembers that a hook is to be called later, if an extension serves it.
    pub(crate) fn mark(&mut self, hook: Hook) {
        if self.is_served(hook) {
            self.pending.insert(hook.name());
        }
    }

    /// Remembers that an upgrade has begun: the hook after it is to be called. Nothing but hooks and the steps of a chain asks for that.
    pub(crate) fn mark_upgrade(&mut self, is_chain: bool) {
        let of_upgrades = [
            Hook::BeforeClusterUpgrade,
            Hook::BeforeControlPlaneUpgrade,
            Hook::AfterControlPlaneUpgrade,
            Hook::BeforeWorkersUpgrade,
            Hook::AfterWorkersUpgrade,
            Hook::AfterClusterUpgrade,
        ];
        if is_chain || of_upgrades.into_iter().any(|hook| self.is_served(hook)) {
            self.pending.insert(Hook::AfterClusterUpgrade.name());
        }
    }

    /// Whether what comes after the hook may come.
    pub(crate) fn passes(&mut self, call: Call) -> bool {
        let hook = call.hook;
        if let Some(why) = &self.hooks.unknown {
            self.failed.get_or_insert((hook, why.clone()));
            return false;
        }
        if !self.is_served(hook) {
            return true;
        }
        match self.hooks.answers.get(&hook) {
            None => {
                self.asked.push(call);
                true
            }
            Some(Answer::Passed) => true,
            Some(Answer::Blocks { seconds, message }) => {
                self.block(hook, message.clone(), Some(*seconds));
                false
            }
            Some(Answer::Failed(why)) => {
                self.failed.get_or_insert((hook, why.clone()));
                false
            }
        }
    }

    /// The same for a hook that is called only if it is marked. The mark goes when it has passed.
    pub(crate) fn completes(&mut self, call: Call) -> bool {
        let hook = call.hook;
        if !self.is_pending(hook) {
            return true;
        }
        let passed = self.passes(call);
        if passed {
            self.pending.remove(hook.name());
        }
        passed
    }

    pub(crate) fn block(&mut self, hook: Hook, message: String, seconds: Option<i32>) {
        self.blocking.push(Blocking { hook, message, seconds });
    }

    /// The annotation as it is to be, if it changes: null when no hook is left.
    pub(crate) fn annotation(&self) -> Option<Value> {
        let text = self.pending.value().map_or(Value::Null, Value::from);
        (self.pending != self.before).then_some(text)
    }
}

/// What hooks block, in one line; none if nothing. `what` is what waits.
pub(crate) fn line(blocking: &[Blocking], what: &str) -> Option<String> {
    let one = |one: &Blocking| {
        let name = one.hook.name();
        if one.message.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {}", one.message)
        }
    };
    let all: Vec<String> = blocking.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("Following hooks are blocking {what}: {}", all.join("; ")))
}
