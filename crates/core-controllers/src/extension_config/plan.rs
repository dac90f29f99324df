//! What to do about an ExtensionConfig: pure.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use windlass_api::annotations::INJECT_CA_FROM_SECRET;
use windlass_api::conditions::DISCOVERED;
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Blocked, Decision, Moment, Note, Seen};

use super::observe::{Observed, Question};

/// The key of the CA certificate in a Secret.
const CA: &str = "ca.crt";
/// How long the answer of an extension counts.
const VALID: SignedDuration = SignedDuration::from_mins(10);

/// The decision about one ExtensionConfig.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The CA certificates that go into the spec.
    pub(crate) bundle: Option<ByteString>,
    /// Why the CA certificates of the Secret cannot be used.
    pub(crate) unusable: Option<String>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// The obstacle.
    pub(crate) blocked: Option<Blocked>,
    /// When the extension is asked again.
    pub(crate) requeue: Option<Duration>,
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }
}

/// Decides. The CA certificates go first: the change of the spec is the event that discovery waits for.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    if seen.config.is_deleting() {
        return plan.into();
    }
    let have = seen.config.spec.client_config.ca_bundle.as_ref();
    match authority(seen) {
        Some(Ok(want)) if have != Some(&want) => {
            let secret = seen
                .config
                .metadata
                .annotation(INJECT_CA_FROM_SECRET)
                .unwrap_or_default();
            plan.notes.push(Note::new(format!(
                "{CA} of Secret {secret} goes into spec.clientConfig.caBundle"
            )));
            plan.bundle = Some(want);
            return plan.into();
        }
        Some(Err(why)) => {
            let why = format!("annotation {INJECT_CA_FROM_SECRET}: {why}");
            plan.notes.push(Note::new(why.clone()));
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            plan.unusable = Some(why);
            if have.is_none() {
                return plan.into();
            }
        }
        Some(Ok(_)) | None => {}
    }
    match &seen.discovery {
        None if is_due(seen, now) => return Decision::Ask(Question::Discovery),
        None => {}
        Some(Ok(handlers)) => {
            let count = handlers.len();
            plan.notes
                .push(Note::new(format!("the extension has answered: {count} handlers")));
            // Where it answers what it did before, nothing is written and no event comes.
            plan.requeue = Some(VALID.unsigned_abs());
        }
        Some(Err(why)) => plan.blocked = Some(Blocked::failed("DiscoveryFailed", why.as_str())),
    }
    plan.into()
}

/// The CA certificates of the Secret, or why there are none. None without an annotation.
fn authority(seen: &Observed) -> Option<Result<ByteString, String>> {
    let name = seen
        .config
        .metadata
        .annotation(INJECT_CA_FROM_SECRET)
        .unwrap_or_default();
    Some(match seen.secret.as_ref()? {
        Seen::Found(secret) => {
            let data = secret.data.as_ref().and_then(|data| data.get(CA));
            let filled = data.filter(|data| !data.0.is_empty()).cloned();
            filled.ok_or_else(|| format!("Secret {name} has no {CA}"))
        }
        Seen::NotFound => Err(format!("Secret {name} does not exist")),
        Seen::Failed(why) => Err(why.clone()),
    })
}

/// Whether the extension is asked: its answer for this spec is not recorded, or too old.
fn is_due(seen: &Observed, now: &Moment) -> bool {
    let condition = windlass_conditions::get(seen.config.conditions(), DISCOVERED);
    let is_recorded = condition.is_some_and(|condition| {
        condition.status == "True" && condition.observed_generation == seen.config.metadata.generation
    });
    !is_recorded || seen.asked.is_none_or(|asked| now.elapsed(asked, VALID))
}
