//! What to do about a declared provider, decided from facts alone.
//!
//! Deciding has three steps, as each needs what the one before asked for: [`intent`] says what is wanted of the releases that there
//! are, [`contract`] whether a release that was found may be installed, and [`plan`] what is done with what was rendered.

pub mod contract;
pub mod removal;
pub mod rollback;

use std::time::Duration;

use windlass_api::kind::ApiKind;
use windlass_api_operator::{Api, ProviderType, inventory, keys, reasons as known};
use windlass_components::version::Version;
use windlass_kit::{ObjectKey, Timestamp};

use super::facts::Facts;
use crate::awaited::Awaited;
use crate::kept::{Release, State};
use crate::names::reasons;
use crate::objects::ObjectRef;

/// How long until something is looked at again that could not be watched.
pub const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long until something is tried again at the latest that may be mended where nobody tells of it, such as in a repository.
pub const TRY_WITHIN: Duration = Duration::from_mins(5);
/// How long until a release is tried again that could not be installed.
pub const TRY_AGAIN: Duration = Duration::from_mins(10);

/// How often things are put back at once before pauses begin.
const FREE_REPAIRS: usize = 10;

/// What is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The condition that tells it.
    pub stage: Stage,
    /// A word for it.
    pub reason: &'static str,
    /// What it is, and what to do.
    pub message: String,
    /// When to look again.
    pub again: Again,
    /// Whose change is a reason to look again, too.
    pub awaited: Vec<Awaited>,
}

impl Blocked {
    /// In the way, until some event.
    pub fn new(stage: Stage, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            stage,
            reason,
            message: message.into(),
            again: Again::Event,
            awaited: Vec::new(),
        }
    }

    /// In the way until one of these changes.
    #[must_use]
    pub fn until(mut self, awaited: impl IntoIterator<Item = Awaited>) -> Self {
        self.awaited.extend(awaited);
        self
    }

    /// With another time to look again.
    #[must_use]
    pub fn again(mut self, again: Again) -> Self {
        self.again = again;
        self
    }
}

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// What has to be so before anything is done.
    Preflight,
    /// Installing, or replacing what is installed.
    Install,
    /// Coming back from being paused.
    Unpause,
    /// Removing.
    Remove,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When something changes that is watched.
    Event,
    /// When what it comes from changes; after delays that grow, where that is outside the cluster.
    Input,
    /// After a time.
    After(Duration),
    /// After delays that grow.
    Backoff,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A release has to be fetched and rendered.
    Render(Wish),
    /// The release that is kept as the next one has to be installed.
    Resume,
    /// The next release is no longer wanted: what it brought has to go.
    Revert,
    /// What is installed never came up, for this reason: what was there before has to take its place again.
    Back(String),
    /// What is installed is what is wanted.
    Rest,
    /// Everything has to go.
    Remove,
    /// Nothing was ever installed; the declaration may go.
    Release,
}

/// A release that is wished for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The version; the latest where nothing is said.
    pub version: Option<String>,
    /// Why it is rendered.
    pub occasion: Occasion,
    /// Whether it is installed without replicas.
    pub paused: bool,
    /// Not if it is made of this: that was tried.
    pub unless: Option<String>,
}

/// Why a release is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// There is none.
    Install,
    /// Another program has installed it.
    Adopt {
        /// The version that is installed.
        from: String,
    },
    /// Another version is installed.
    Upgrade {
        /// That version.
        from: String,
    },
    /// The version is installed with other settings.
    Change,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes the version that was chosen into the declaration.
    SetVersion(String),
    /// Keeps what was rendered as the next release.
    Keep,
    /// Asks the server whether it would take all of it.
    Check,
    /// Brings stored objects out of versions that the next release no longer has.
    Migrate,
    /// Stops what runs of other releases.
    Stop,
    /// Applies the next release.
    Install,
    /// Deletes what the next release lacks.
    Prune,
    /// Makes the next release the current one.
    Commit,
    /// Applies the current release again: all of it, or these objects.
    Repair(Option<Vec<ObjectRef>>),
    /// Puts what worked before in the place of what never came up, unless something speaks against it.
    GoBack {
        /// Why.
        why: String,
        /// What speaks against it.
        obstacle: Option<String>,
    },
    /// Takes back what a release changed that could not be installed.
    TakeBack,
    /// Deletes what a release that is not wanted brought, and forgets it.
    Discard,
    /// Scales the Deployments down and remembers what they had.
    Hold,
    /// Gives the Deployments their replicas back.
    Restore,
    /// Brings storage versions up to date, now that whatever converts runs.
    Settle,
    /// Issues certificates anew that are about to end.
    Renew,
    /// Deletes everything that is installed but for definitions and namespaces.
    Remove,
    /// Forgets what was kept, and lets the declaration go.
    Forget,
}

/// Everything that was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in order; what follows a failure is not done.
    pub actions: Vec<Action>,
    /// What is in the way.
    pub blocked: Option<Blocked>,
    /// What people should know beside.
    pub notes: Vec<String>,
    /// When to look again though all went well.
    pub requeue: Option<Duration>,
}

/// What is wanted, or what is in the way of it.
pub fn intent(facts: &Facts, now: Timestamp) -> Result<Intent, Blocked> {
    if facts.me.deleting {
        return removal::intent(facts);
    }
    let preflight = |reason, message: String| Err(Blocked::new(Stage::Preflight, reason, message));
    if let Err(problems) = &facts.declared {
        return preflight(problems.reason(), problems.to_string());
    }
    if let Err(unread) = &facts.kept {
        let message = format!("what is kept of the installed provider cannot be read: {}", unread.why);
        return Err(unread.blocks(Stage::Preflight, message));
    }
    if let Some(rival) = facts.rival() {
        let of = if facts.type_() == ProviderType::Core {
            "core provider"
        } else {
            "provider"
        };
        let message = format!(
            "there is already a declaration of this {of}: {}; delete one of the two",
            rival.told_to(facts.me.api)
        );
        return preflight(known::MORE_THAN_ONE_EXISTS, message);
    }
    let (is_core, is_new) = (facts.type_() == ProviderType::Core, facts.current().is_none());
    if is_core && facts.me.api == Api::V1Alpha2 && facts.me.key.name != keys::CORE {
        let message = format!("the core provider is named {}, not {}", keys::CORE, facts.me.key.name);
        return preflight(known::INCORRECT_CORE_PROVIDER_NAME, message);
    }
    if !is_core && is_new && facts.core().is_none() {
        let message = "no core provider is installed yet; declare a CoreProvider, or see its conditions".to_owned();
        return preflight(known::WAITING_FOR_CORE_PROVIDER_READY, message);
    }
    releases(facts, now)
}

/// What is wanted of the releases that there are.
fn releases(facts: &Facts, now: Timestamp) -> Result<Intent, Blocked> {
    let declared = facts.declared.as_ref().ok();
    let wanted = declared.and_then(|declared| declared.version.clone());
    let paused = contract::is_held(facts);
    let Some(current) = facts.current() else {
        return first(facts, wanted, paused);
    };
    // A version that was chosen once stays chosen when the field is emptied.
    let version = wanted.unwrap_or_else(|| current.version.clone());
    let same = current.is_for(&version, &facts.hash);
    if same || (paused && current.version == version) {
        return Ok(match rollback::failing(facts) {
            _ if facts.next().is_some() => Intent::Revert,
            Some(why) => Intent::Back(why),
            None => Intent::Rest,
        });
    }
    let next = facts.next().filter(|next| next.is_for(&version, &facts.hash));
    if next.is_some_and(|next| next.state == State::Next) {
        return Ok(Intent::Resume);
    }
    let occasion = if current.version == version {
        Occasion::Change
    } else {
        refuse_downgrade(&current.version, &version)?;
        Occasion::Upgrade {
            from: current.version.clone(),
        }
    };
    if let Some(failed) = next {
        return rollback::again(facts, failed, &occasion, paused, now);
    }
    Ok(Intent::Render(Wish {
        version: Some(version),
        occasion,
        paused,
        unless: None,
    }))
}

/// The same while nothing is installed by the operator.
fn first(facts: &Facts, wanted: Option<String>, paused: bool) -> Result<Intent, Blocked> {
    if paused {
        let message = "spec.paused is true: the provider is installed when it is no longer paused";
        return Err(Blocked::new(Stage::Install, reasons::PAUSED, message));
    }
    if let Some(next) = facts.next()
        && wanted.as_ref().is_none_or(|version| next.is_for(version, &facts.hash))
        && next.hash == facts.hash
    {
        return Ok(Intent::Resume);
    }
    let inventory = match &facts.inventory {
        Ok(inventory) => inventory,
        Err(why) => {
            let message = format!("the inventory of installed providers cannot be read: {why}");
            return Err(Blocked::new(Stage::Preflight, reasons::KEPT_UNREADABLE, message).again(Again::Backoff));
        }
    };
    let namespace = &facts.me.key.namespace;
    if let Some(elsewhere) = inventory.iter().find(|installed| installed.namespace != *namespace) {
        let message = format!(
            "version {} of this provider is already installed in namespace {}, as the inventory of clusterctl says; declare it \
             there, or remove it there first",
            elsewhere.version, elsewhere.namespace
        );
        let key = ObjectKey::new(elsewhere.namespace.as_str(), facts.type_().label(&facts.me.key.name));
        let installed = Awaited::one(inventory::Provider::API_VERSION, "Provider", &key);
        let blocked = Blocked::new(Stage::Preflight, reasons::INSTALLED_ELSEWHERE, message);
        return Err(blocked.until([installed]));
    }
    let Some(installed) = inventory.first() else {
        return Ok(Intent::Render(Wish {
            version: wanted,
            occasion: Occasion::Install,
            paused,
            unless: None,
        }));
    };
    let from = installed.version.clone();
    let version = wanted.unwrap_or_else(|| from.clone());
    refuse_downgrade(&from, &version)?;
    let occasion = if version == from {
        Occasion::Adopt { from }
    } else {
        Occasion::Upgrade { from }
    };
    Ok(Intent::Render(Wish {
        version: Some(version),
        occasion,
        paused,
        unless: None,
    }))
}

/// A lower patch is a version like any other; below that, stored objects could be lost on the way.
fn refuse_downgrade(from: &str, to: &str) -> Result<(), Blocked> {
    let (Ok(old), Ok(new)) = (Version::parse(from), Version::parse(to)) else {
        return Ok(());
    };
    if (new.major(), new.minor()) >= (old.major(), old.minor()) {
        return Ok(());
    }
    let message = format!("version {from} is installed and cannot become {to}: only the patch number may go down");
    Err(Blocked::new(
        Stage::Preflight,
        known::UNSUPPORTED_PROVIDER_DOWNGRADE,
        message,
    ))
}

/// What to do about an intent. `offered` is what was rendered for it, where it asked for that.
pub fn plan(
    facts: &Facts,
    intent: &Result<Intent, Blocked>,
    offered: Option<&Result<Release, Blocked>>,
    now: Timestamp,
) -> Plan {
    let mut plan = match (intent, offered) {
        (Ok(Intent::Render(wish)), Some(Ok(offered))) => replacing(facts, wish, offered),
        (Ok(Intent::Render(_)), Some(Err(blocked))) | (Err(blocked), _) => Plan {
            blocked: Some(blocked.clone()),
            ..upkeep(facts, now)
        },
        (Ok(Intent::Resume), _) => resuming(facts),
        (Ok(Intent::Revert), _) => {
            let mut plan = upkeep(facts, now);
            plan.actions.insert(0, Action::Discard);
            plan
        }
        (Ok(Intent::Back(why)), _) => Plan {
            actions: vec![Action::GoBack {
                why: why.clone(),
                obstacle: rollback::obstacle(facts),
            }],
            ..Plan::default()
        },
        (Ok(Intent::Rest | Intent::Render(_)), _) => upkeep(facts, now),
        (Ok(Intent::Remove), _) => Plan {
            actions: vec![Action::Remove, Action::Forget],
            ..Plan::default()
        },
        (Ok(Intent::Release), _) => Plan {
            actions: vec![Action::Forget],
            ..Plan::default()
        },
    };
    if facts.locked {
        let note = "spec.manager.debug is true: other changes of spec.manager have no effect until it is false";
        plan.notes.push(note.to_owned());
    }
    plan
}

fn replacing(facts: &Facts, wish: &Wish, offered: &Release) -> Plan {
    let mut actions = Vec::new();
    let declared = facts.declared.as_ref().ok();
    if declared.is_some_and(|declared| declared.version.is_none()) {
        actions.push(Action::SetVersion(offered.version.clone()));
    }
    if wish.occasion != Occasion::Install {
        actions.push(Action::Check);
    }
    actions.push(Action::Keep);
    match wish.occasion {
        // What runs already is what is wanted, or becomes it in place.
        Occasion::Install | Occasion::Adopt { .. } => {}
        Occasion::Upgrade { .. } => actions.extend([Action::Migrate, Action::Stop]),
        Occasion::Change => actions.push(Action::Stop),
    }
    actions.extend([Action::Install, Action::Prune, Action::Commit]);
    Plan {
        actions,
        ..Plan::default()
    }
}

/// An attempt that was cut off is finished. What was done before is done again, as nobody knows how far it came.
fn resuming(facts: &Facts) -> Plan {
    let mut actions = Vec::new();
    if facts.current().is_some() {
        actions.extend([Action::Migrate, Action::Stop]);
    }
    actions.extend([Action::Install, Action::Prune, Action::Commit]);
    if let (Some(next), Ok(declared)) = (facts.next(), &facts.declared)
        && declared.version.is_none()
    {
        actions.insert(0, Action::SetVersion(next.version.clone()));
    }
    Plan {
        actions,
        ..Plan::default()
    }
}

/// What keeps an installed provider as it is.
fn upkeep(facts: &Facts, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let (Some(current), false) = (facts.current(), facts.me.deleting) else {
        return plan;
    };
    if facts.rival().is_some() {
        return plan;
    }
    if let Ok(declared) = &facts.declared
        && declared.version.is_none()
    {
        plan.actions.push(Action::SetVersion(current.version.clone()));
    }
    let asked = facts.declared.as_ref().is_ok_and(|declared| declared.paused);
    let held = contract::is_held(facts);
    if held && !asked {
        plan.blocked = contract::unpause(facts);
    }
    if held != current.paused {
        plan.actions.push(if held { Action::Hold } else { Action::Restore });
    }
    if held {
        // Whoever pauses wants to change something by hand.
        return plan;
    }
    if rollback::is_unfinished(facts) {
        plan.actions.push(Action::TakeBack);
    } else if !facts.watched {
        plan.actions.push(Action::Repair(None));
    } else if !facts.drifted.is_empty() {
        let wait = patience(facts.repairs, now);
        if wait.is_zero() {
            let drifted = facts.drifted.iter().cloned().collect();
            plan.actions.push(Action::Repair(Some(drifted)));
        } else {
            plan.requeue = Some(wait);
            let first = facts.drifted.iter().next().map(ToString::to_string);
            plan.notes.push(format!(
                "{} is changed by somebody again and again",
                first.unwrap_or_default()
            ));
        }
    }
    if !current.migrated && is_available(facts) {
        plan.actions.push(Action::Settle);
    }
    if let Some(renew) = current.renew {
        if renew <= now {
            plan.actions.push(Action::Renew);
        } else {
            let due = renew.duration_since(now).unsigned_abs();
            plan.requeue = Some(plan.requeue.map_or(due, |sooner| sooner.min(due)));
        }
    }
    plan
}

/// How long to wait before something is put back that was put back before: somebody may want it otherwise just as firmly.
fn patience((count, last): (usize, Option<Timestamp>), now: Timestamp) -> Duration {
    let Some(last) = last.filter(|_| count > FREE_REPAIRS) else {
        return Duration::ZERO;
    };
    let doublings = u32::try_from(count - FREE_REPAIRS).unwrap_or(u32::MAX).min(7);
    let pause = Duration::from_secs(2_u64.saturating_pow(doublings));
    pause.saturating_sub(now.duration_since(last).unsigned_abs())
}

/// Whether all Deployments are available, and those of what is installed: watches may still show the ones before.
pub fn is_available(facts: &Facts) -> bool {
    let id = facts.current().map(Release::id);
    let is_up = |running: &Option<crate::objects::Running>| {
        let running = running.as_ref().filter(|running| running.release == id);
        let available = running.and_then(|running| running.available.as_ref());
        available.is_some_and(|(status, _, _)| status == "True")
    };
    facts.running.iter().all(|(_, running)| is_up(running))
}

impl windlass_kit::Plan for Plan {
    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }
}

#[cfg(test)]
pub(crate) mod tests;
