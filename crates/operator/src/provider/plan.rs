//! What to do about a declared provider, decided from facts alone.
//!
//! [`intent`] says what is desired, by the declaration and the releases that there are. A release that is not there yet is asked for in two
//! steps: its files, which [`contract`] and [`rollback`] may refuse, and the release rendered from them, which may share objects with
//! another provider. [`upkeep`] keeps what is installed as it is.

mod built_in;
pub mod contract;
pub mod removal;
pub mod rollback;
mod untrusted;
mod upkeep;

use std::time::Duration;

use jiff::SignedDuration;
use windlass_api::kind::ApiKind;
use windlass_api_operator::{Api, ProviderType, inventory, keys, reasons as known};
use windlass_controller_runtime::{Decision, EventType, Moment, Note, ObjectKey, Until};
use windlass_provider_components::version::Version;

use super::blocked::{Blocked, Stage};
use super::desired::{DesiredRelease, Occasion, Question, inputs};
use super::facts::{Facts, Fetched, Rendered};
use crate::awaited::Awaited;
use crate::kept::{Release, State};
use crate::names::reasons;
use crate::objects::ObjectRef;
use upkeep::upkeep;

/// How long an attempt is repeated before it is given up and taken back.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// How long the value of a label may be.
const LONGEST_LABEL: usize = 63;

/// What is desired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A release has to be fetched and rendered.
    Render(DesiredRelease),
    /// The release that is kept as the next one has to be installed.
    Resume,
    /// The next release is no longer desired: what it brought has to go.
    Revert,
    /// What is installed never came up, for this reason: what was there before has to take its place again.
    Back(String),
    /// What is installed is what is desired.
    Rest,
    /// Everything has to go.
    Remove {
        /// Objects of the provider that no kept release lists.
        lost: Vec<ObjectRef>,
    },
    /// Nothing was ever installed; the declaration may go.
    Release,
    /// It is built in, so there is nothing to install.
    BuiltIn,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Takes the claim to the provider, unless another declaration than the observed holder has it by now.
    Claim {
        /// The uid of the holder that the plan knows of.
        holder: Option<String>,
    },
    /// Watches what is installed, and compares it with how it was left.
    TakeUp,
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
    /// Deletes Secrets that look like kept releases and were not written by the operator, and those that are no longer needed.
    Sweep,
    /// Brings storage versions up to date, now that whatever converts runs.
    Settle,
    /// Keeps and applies certificates that were issued again, as they are about to end.
    Renew,
    /// Deletes everything that is installed but for definitions and namespaces.
    Remove {
        /// Objects of the provider that no kept release lists.
        lost: Vec<ObjectRef>,
    },
    /// Takes what was installed of a provider that is built in now out of its way, and forgets it.
    Retire {
        /// The objects to delete.
        objects: Vec<ObjectRef>,
    },
    /// Forgets what was kept, and lets the declaration go.
    Forget,
}

impl Action {
    /// Whether this is done although an action before it in the same plan has failed. What keeps an installed provider working must not
    /// wait for something else that fails again and again. The steps from one release to another depend on one another.
    pub fn is_independent_of(&self, failed: &Self) -> bool {
        match failed {
            Self::Claim { .. } => false,
            Self::SetVersion(_) | Self::Discard => self.is_upkeep(),
            // It applies the current release, as the failed action was to do.
            _ if failed.is_upkeep() => *self == Self::Renew,
            _ => false,
        }
    }

    /// Whether it keeps the current release as it should be.
    fn is_upkeep(&self) -> bool {
        matches!(
            self,
            Self::SetVersion(_)
                | Self::Hold
                | Self::Restore
                | Self::TakeBack
                | Self::Repair(_)
                | Self::Settle
                | Self::Sweep
                | Self::Renew
        )
    }
}

/// Everything that was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in order; after a failure only what does not depend on it is done ([`Action::is_independent_of`]).
    pub actions: Vec<Action>,
    /// The obstacle.
    pub blocked: Option<Blocked>,
    /// What users should know. The condition ProviderInstalled has the notes without an event in its message.
    pub notes: Vec<Note>,
    /// When to reconcile again although all went well.
    pub requeue: Option<Duration>,
    /// Whether the files of the desired release were read, so that their changes until now are known.
    pub looked: bool,
    /// Whether an attempt that fails now is not repeated: it has failed for long enough.
    pub is_last_attempt: bool,
}

/// What is desired, or what is in the way of it.
pub fn intent(facts: &Facts, now: &Moment) -> Result<Intent, Blocked> {
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
    if let Some(built_in) = facts.built_in() {
        return built_in::intent(facts, built_in);
    }
    let label = facts.type_().label(&facts.me.key.name);
    if label.len() > LONGEST_LABEL {
        let message = format!(
            "metadata.name has {} characters, and may have {}: all objects of the provider carry it in a label; choose a shorter name",
            facts.me.key.name.len(),
            LONGEST_LABEL.saturating_sub(label.len() - facts.me.key.name.len())
        );
        return preflight(known::SPEC_VALIDATION_ERROR, message);
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

/// What is desired of the releases that there are.
fn releases(facts: &Facts, now: &Moment) -> Result<Intent, Blocked> {
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
    Ok(Intent::Render(DesiredRelease {
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
        && !rollback::is_stale(facts, next)
    {
        return Ok(Intent::Resume);
    }
    let inventory = match &facts.inventory {
        Ok(inventory) => inventory,
        Err(why) => {
            let message = format!("the inventory of installed providers cannot be read: {why}");
            return Err(Blocked::new(Stage::Preflight, reasons::KEPT_UNREADABLE, message).until(Until::Backoff));
        }
    };
    let namespace = &facts.me.key.namespace;
    if let Some(elsewhere) = inventory
        .iter()
        .find(|installed| installed.is_built_in || installed.namespace != *namespace)
    {
        let key = ObjectKey::new(elsewhere.namespace.as_str(), facts.type_().label(&facts.me.key.name));
        let message = if elsewhere.is_built_in {
            format!(
                "a Windlass manager has this provider built in, as version {}, as the inventory says; if none does any more, delete \
                 Provider {key} of clusterctl.cluster.x-k8s.io",
                elsewhere.version
            )
        } else {
            format!(
                "version {} of this provider is already installed in namespace {}, as the inventory of clusterctl says; declare it \
                 there, or remove it there first",
                elsewhere.version, elsewhere.namespace
            )
        };
        let installed = Awaited::one(inventory::Provider::API_VERSION, "Provider", &key);
        let blocked = Blocked::new(Stage::Preflight, reasons::INSTALLED_ELSEWHERE, message);
        return Err(blocked.awaiting([installed]));
    }
    let Some(installed) = inventory.first() else {
        return Ok(Intent::Render(DesiredRelease {
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
    Ok(Intent::Render(DesiredRelease {
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

/// What to do, or the facts that are missing to know it.
pub fn plan(facts: &Facts, now: &Moment) -> Decision<Plan, Question> {
    decide(facts, intent(facts, now), now)
}

/// What to do about an intent.
pub fn decide(facts: &Facts, intent: Result<Intent, Blocked>, now: &Moment) -> Decision<Plan, Question> {
    let mut plan = match intent {
        Ok(Intent::Render(desired)) => match replace(facts, &desired, now) {
            Decision::Plan(plan) => plan,
            ask @ Decision::Ask(_) => return ask,
        },
        Ok(Intent::Resume) => resuming(facts, now),
        Ok(Intent::Revert) => {
            let mut plan = upkeep(facts, now);
            // The version is written only into the declaration as it was observed, and all that follows writes to it.
            let at = usize::from(matches!(plan.actions.first(), Some(Action::SetVersion(_))));
            plan.actions.insert(at, Action::Discard);
            plan
        }
        Ok(Intent::Back(why)) => Plan {
            actions: vec![Action::GoBack {
                why,
                obstacle: rollback::obstacle(facts),
            }],
            ..Plan::default()
        },
        Ok(Intent::Rest) => upkeep(facts, now),
        Ok(Intent::Remove { lost }) => Plan {
            actions: vec![Action::Remove { lost }, Action::Forget],
            ..Plan::default()
        },
        Ok(Intent::Release) => built_in::released(facts),
        Ok(Intent::BuiltIn) => built_in::plan(facts, None),
        Err(blocked) if facts.built_in().is_some() => built_in::plan(facts, Some(blocked)),
        Err(blocked) => waiting(facts, blocked, now),
    };
    if plan.actions.contains(&Action::Renew) {
        match &facts.renewed {
            Some(Ok(_)) => {}
            None if facts.fetched.is_none() => return Decision::Ask(Question::Renewal),
            missing => {
                plan.actions.retain(|action| *action != Action::Renew);
                match missing {
                    // The next attempt must not wait for the end of another obstacle.
                    Some(Err(failed)) => {
                        plan.blocked = Some(match plan.blocked {
                            Some(blocked) => blocked.and(failed),
                            None => failed.clone(),
                        });
                    }
                    // They became due after the files were asked for.
                    _ => plan.requeue = Some(Duration::ZERO),
                }
            }
        }
    }
    if facts.built_in().is_none() && upkeep::is_comparable(facts) {
        plan.actions.insert(0, Action::TakeUp);
        // What the comparison shows is for the next plan.
        plan.requeue = Some(Duration::ZERO);
    }
    let is_held_by_me = facts.holder.as_deref() == Some(facts.me.uid.as_str());
    if !facts.me.deleting && !is_held_by_me && facts.rival().is_none() {
        let holder = facts.holder.clone();
        plan.actions.insert(0, Action::Claim { holder });
    }
    if facts.locked {
        let note = "spec.manager.debug is true: other changes of spec.manager have no effect until it is false";
        plan.notes.push(Note::new(note));
    }
    // What is kept of a built-in provider is only taken out of the way.
    if facts.built_in().is_none() {
        untrusted::report(facts, &mut plan);
    }
    if let Some(blocked) = &plan.blocked {
        let note = Note::event(EventType::Warning, blocked.reason, blocked.message.as_str());
        plan.notes.push(note);
    }
    plan.into()
}

/// Behind an obstacle, what is installed is kept as it is.
fn waiting(facts: &Facts, blocked: Blocked, now: &Moment) -> Plan {
    Plan {
        blocked: Some(blocked),
        ..upkeep(facts, now)
    }
}

/// Another release takes the place of what is installed, once its files and the release itself are there and may be installed.
fn replace(facts: &Facts, desired: &DesiredRelease, now: &Moment) -> Decision<Plan, Question> {
    // What could not be read has to be read again before its changes are known.
    let refused = |blocked: Blocked| {
        let looked = blocked.until != Until::Backoff;
        let plan = Plan {
            looked,
            ..waiting(facts, blocked, now)
        };
        plan.into()
    };
    match &facts.fetched {
        None => {
            return Decision::Ask(Question::Files {
                desired: desired.clone(),
                renew: upkeep(facts, now).actions.contains(&Action::Renew),
            });
        }
        Some(Err(blocked)) => return refused(blocked.clone()),
        Some(Ok(fetched)) => {
            if let Err(blocked) = check_files(facts, desired, fetched) {
                return refused(blocked);
            }
        }
    }
    let rendered = match &facts.rendered {
        None => return Decision::Ask(Question::Render(desired.clone())),
        Some(Err(blocked)) => return refused(blocked.clone()),
        Some(Ok(rendered)) => rendered,
    };
    let plan = match unshared(facts, rendered) {
        Err(blocked) => waiting(facts, blocked, now),
        Ok(()) => replacing(facts, desired, &rendered.sealed.release),
    };
    Decision::Plan(Plan { looked: true, ..plan })
}

/// Whether a release may be made of these files; or what is in the way.
fn check_files(facts: &Facts, desired: &DesiredRelease, fetched: &Fetched) -> Result<(), Blocked> {
    let declared = facts.declared.as_ref().ok();
    let fits = contract::check(facts, &fetched.version, &fetched.contract);
    fits.map_err(|blocked| blocked.awaiting(declared.into_iter().flat_map(inputs)))?;
    let recipe = fetched.recipe.as_ref().map_err(Clone::clone)?;
    untrusted::check_content(facts, &fetched.version, &recipe.content)?;
    match facts.next() {
        Some(failed) if desired.unless.as_ref() == Some(&recipe.content) => Err(rollback::taken_back(declared, failed)),
        _ => Ok(()),
    }
}

/// Whether other installed providers have none of the same objects; or what is in the way.
fn unshared(facts: &Facts, rendered: &Rendered) -> Result<(), Blocked> {
    if let Some((built_in, shared)) = facts.built_ins.owner_of(&rendered.sealed.release.index) {
        return Err(built_in::shared(built_in, shared));
    }
    for other in &rendered.others {
        let name = other.peer.told_to(facts.me.api);
        let theirs = other.objects.as_ref().map_err(|unread| {
            let message = format!("what is installed of {name} cannot be read: {}", unread.why);
            Blocked::new(Stage::Preflight, reasons::KEPT_UNREADABLE, message).until(Until::Backoff)
        })?;
        if let Some(shared) = rendered.sealed.release.shared(theirs) {
            let message = format!(
                "{shared} is of {name} already: the two have the same components, and only one of them can be installed; delete the \
                 other declaration, or this one"
            );
            let blocked = Blocked::new(Stage::Preflight, reasons::COMPONENTS_SHARED, message);
            // No watch shows labels.
            return Err(if other.by_label {
                blocked.until(Until::Backoff)
            } else {
                blocked
            });
        }
    }
    Ok(())
}

fn replacing(facts: &Facts, desired: &DesiredRelease, offered: &Release) -> Plan {
    let mut actions = Vec::new();
    let declared = facts.declared.as_ref().ok();
    if declared.is_some_and(|declared| declared.version.is_none()) {
        actions.push(Action::SetVersion(offered.version.clone()));
    }
    if desired.occasion != Occasion::Install {
        actions.push(Action::Check);
    }
    actions.push(Action::Keep);
    match desired.occasion {
        // What runs already is what is desired, or becomes it in place.
        Occasion::Install | Occasion::Adopt { .. } => {}
        Occasion::Upgrade { .. } => actions.extend([Action::Migrate, Action::Stop]),
        Occasion::Change => actions.push(Action::Stop),
    }
    actions.extend([Action::Install, Action::Prune, Action::Commit]);
    Plan {
        actions,
        notes: vec![committed(offered)],
        ..Plan::default()
    }
}

/// An attempt that was cut off is finished. What was done before is done again, as it is not known how far it came.
fn resuming(facts: &Facts, now: &Moment) -> Plan {
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
    let made = facts.next().map(|next| next.made);
    Plan {
        actions,
        notes: facts.next().map(committed).into_iter().collect(),
        is_last_attempt: made.is_some_and(|made| now.elapsed(made, PATIENCE)),
        ..Plan::default()
    }
}

/// The event that says that a release became the installed one.
fn committed(release: &Release) -> Note {
    let reason = if release.replaces {
        reasons::UPGRADED
    } else {
        reasons::INSTALLED
    };
    let message = format!("version {} is installed", release.version);
    Note::event(EventType::Normal, reason, message)
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<windlass_controller_runtime::Blocked> {
        self.blocked.as_ref().map(Blocked::for_driver)
    }
}

#[cfg(test)]
pub(crate) mod tests;
