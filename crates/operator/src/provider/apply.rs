//! The only writer: carries out a plan, action by action. After a failure, only actions that do not depend on the failed one follow.

mod install;
mod keep;
mod remove;
mod renew;
mod replicas;
mod retire;
mod rollback;
mod storage;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;
use windlass_api_operator::reasons as known;
use windlass_conditions::Status;
use windlass_controller_runtime::{Cx, ErrorKind, EventType, ReconcileError, Triage, Until, WriteError};

use super::Observed;
use super::blocked::{Blocked, LOOK_AGAIN, Stage, TRY_AGAIN};
use super::declaration::Declaration;
use super::plan::{Action, Plan};
use super::status::Done;
use crate::health::Health;
use crate::kept::{Kept, Sealed};
use crate::metrics::Told;
use crate::names::{MANAGER, reasons};
use crate::objects::ObjectRef;
use crate::ports::Operator;
use crate::tracker::Whose;

/// One run of a plan.
struct Run<'a> {
    cx: &'a Cx,
    operator: &'a Operator,
    declaration: &'a Declaration,
    whose: Whose,
    /// What is kept, as it is now.
    kept: Kept,
    /// The next release with its objects, where this run rendered it.
    rendered: Option<Sealed>,
    /// The current release with certificates that were issued again, where the plan asked for them.
    renewed: Option<&'a Sealed>,
    /// The values of variables, where the plan had them read.
    variables: Option<&'a BTreeMap<String, String>>,
    /// Whether a failure means that the next release is given up.
    is_last_attempt: bool,
    done: Done,
}

/// Carries out a plan.
pub(super) fn apply<'a>(cx: &'a Cx, operator: &'a Operator, seen: &'a Observed, plan: &'a Plan) -> BoxFuture<'a, Done> {
    Box::pin(run(cx, operator, seen, plan))
}

async fn run(cx: &Cx, operator: &Operator, seen: &Observed, plan: &Plan) -> Done {
    let whose = &seen.declaration.whose;
    if plan.looked {
        operator.0.waits.looked(whose, seen.facts.stirred, cx.now());
    }
    let fetched = seen.facts.fetched.as_ref().and_then(|fetched| fetched.as_ref().ok());
    let rendered = seen.facts.rendered.as_ref().and_then(|rendered| rendered.as_ref().ok());
    let mut run = Run {
        cx,
        operator,
        declaration: &seen.declaration,
        whose: whose.clone(),
        kept: seen
            .facts
            .kept
            .as_ref()
            .map(|kept| Kept::clone(kept))
            .unwrap_or_default(),
        rendered: rendered.map(|rendered| rendered.sealed.clone()),
        renewed: seen.facts.renewed.as_ref().and_then(|renewed| renewed.as_ref().ok()),
        variables: fetched.map(|fetched| &fetched.variables),
        is_last_attempt: plan.is_last_attempt,
        done: Done::default(),
    };
    let mut failures: Vec<(&Action, Blocked)> = Vec::new();
    for action in &plan.actions {
        if !failures.iter().all(|(failed, _)| action.is_independent_of(failed)) {
            continue;
        }
        tracing::debug!(?action, "carrying out");
        if let Err(failure) = Box::pin(run.carry_out(action)).await {
            let failure = run.fail(action, failure).await;
            failures.push((action, failure));
        }
    }
    if let Some(failure) = joined(failures.into_iter().map(|(_, failure)| failure)) {
        run.done.failed = Some(ReconcileError::new(failure.reason, failure.message.as_str()));
        run.done.problem = Some(failure);
    }
    let uid = seen.declaration.me.uid.clone();
    if run.done.released {
        operator.forget(&seen.declaration.me);
    } else if let Some(kept) = operator.0.kept.lock().get_mut(&uid) {
        // What was forgotten during this run, because a Secret is gone, has to be read again.
        *kept = Arc::new(run.kept.clone());
    }
    // The plan's own obstacle is one of its notes.
    if let Some(problem) = &run.done.problem {
        let about = &seen.declaration.object;
        cx.event(about, EventType::Warning, problem.reason, problem.message.as_str());
    }
    let blocked = run.done.problem.as_ref().or(plan.blocked.as_ref());
    let awaited = blocked.map_or(&[][..], |blocked| &blocked.awaited);
    run.done.watches_started = run.done.released || {
        let watched = operator.0.waits.set(cx, &operator.0.tracker, &run.whose, awaited);
        watched.await
    };
    let current = run.kept.current.as_ref();
    let deployments = current.map(|current| current.index.iter().filter(|object| object.is_deployment()));
    let deployments = deployments.into_iter().flatten();
    run.done.running = deployments
        .map(|object| (object.name.clone(), operator.0.tracker.running(object)))
        .collect();
    if !run.done.released {
        let told = run.kept.current.as_ref().map(|current| Told {
            version: current.version.clone(),
            contract: current.contract.clone(),
            ready: !current.paused && Health::of(&run.done.running).status == Status::True,
        });
        let built_in = seen.facts.built_in().map(|built_in| Told {
            version: built_in.version.to_owned(),
            contract: built_in.contract.to_owned(),
            ready: blocked.is_none(),
        });
        operator.tell(&run.whose, told.or(built_in));
    }
    run.done.kept = run.kept;
    run.done
}

impl Run<'_> {
    /// Carries out one action.
    async fn carry_out(&mut self, action: &Action) -> Result<(), Blocked> {
        match action {
            Action::Claim { holder } => self.claim(holder.as_deref()),
            Action::TakeUp => {
                if let Some(current) = &self.kept.current {
                    let tracker = &self.operator.0.tracker;
                    tracker
                        .take_up(self.cx, &self.whose, &current.index, &current.left)
                        .await;
                }
                Ok(())
            }
            Action::SetVersion(version) => self.set_version(version).await,
            Action::Keep => self.keep().await,
            Action::Check => self.check().await,
            Action::Migrate => self.migrate_before().await,
            Action::Stop => self.stop().await,
            Action::Install => self.install_next().await,
            Action::Prune => self.prune().await,
            Action::Commit => self.commit().await,
            Action::Repair(None) => self.repair(None).await,
            Action::Repair(Some(drifted)) => {
                self.operator.0.tracker.repaired(&self.whose, self.cx.now());
                self.repair(Some(drifted)).await?;
                // It is no note: each repair is worth an event, also of the same objects.
                let names: Vec<_> = drifted.iter().take(10).map(ToString::to_string).collect();
                let message = format!("put back as it was installed: {}", names.join(", "));
                let about = &self.declaration.object;
                self.cx.event(about, EventType::Normal, "DriftRepaired", &message);
                Ok(())
            }
            Action::GoBack { why, obstacle } => self.go_back(why, obstacle.as_deref()).await,
            Action::TakeBack => self.take_back().await,
            Action::Discard => self.discard().await,
            Action::Hold => self.hold().await,
            Action::Restore => self.restore().await,
            Action::Settle => self.settle().await,
            Action::Sweep => self.sweep().await,
            Action::Renew => self.renew().await,
            Action::Remove { lost } => self.remove(lost).await,
            Action::Retire { objects } => self.retire(objects).await,
            Action::Forget => self.forget().await,
        }
    }

    /// Takes the claim to the provider.
    fn claim(&self, holder: Option<&str>) -> Result<(), Blocked> {
        if self.operator.0.claims.take(&self.declaration.me, holder) {
            return Ok(());
        }
        let message = "another declaration of this provider has come first; this one is looked at again";
        let blocked = Blocked::new(Stage::Preflight, known::MORE_THAN_ONE_EXISTS, message);
        Err(blocked.until(Until::After(LOOK_AGAIN)))
    }

    /// The version that was chosen becomes part of the declaration, unless that changed meanwhile.
    async fn set_version(&mut self, version: &str) -> Result<(), Blocked> {
        let declaration = &self.declaration.object;
        let gvk = declaration.gvk();
        let patch = json!({
            "metadata": { "resourceVersion": declaration.metadata().resource_version },
            "spec": { "version": version },
        });
        let writer = self.cx.writer();
        let written = writer.merge_patch_value(MANAGER, &gvk, &self.whose.key, &patch);
        let written = written.await.map_err(|error| refused(&error, "the declaration"))?;
        self.done.generation = written.metadata().generation;
        Ok(())
    }
}

/// All failures as one.
fn joined(failures: impl IntoIterator<Item = Blocked>) -> Option<Blocked> {
    failures.into_iter().reduce(|first, next| first.and(&next))
}

/// What a write that did not succeed means. Servers quote what they refuse, so of Secrets their words are left out.
fn refused(error: &WriteError, what: &str) -> Blocked {
    let words = match error.kind() {
        ErrorKind::Invalid if what.starts_with("Secret ") => {
            "the server refuses its content, or does not change it as its field immutable is true"
        }
        _ if what.starts_with("Secret ") => "the server refuses its content",
        _ => error.message(),
    };
    let message = match error.kind() {
        ErrorKind::NotFound => format!("{what}: {words}; is what defines its kind installed?"),
        _ => format!("{what}: {words}"),
    };
    let until = if error.retry() {
        Until::Backoff
    } else {
        Until::After(TRY_AGAIN.unsigned_abs())
    };
    Blocked::new(Stage::Install, reasons::APPLY_ERROR, message).until(until)
}

/// [`refused`] about an object.
fn refused_object(error: &WriteError, object: &ObjectRef) -> Blocked {
    refused(error, &object.to_string())
}

/// A failed read.
fn unread(why: impl Into<String>) -> Blocked {
    Blocked::new(Stage::Install, reasons::APPLY_ERROR, why).until(Until::Backoff)
}

/// Something old that cannot be deleted.
fn stuck(what: &ObjectRef) -> Blocked {
    let message = format!("{what} of the version before is being deleted, and finalizers hold it");
    Blocked::new(Stage::Install, known::OLD_COMPONENTS_DELETION_ERROR, message).until(Until::Backoff)
}
