//! The only writer: carries out a plan, action by action, and stops at the first that fails.

mod install;
mod keep;
mod remove;
mod renew;
mod replicas;
mod rollback;
mod storage;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;
use windlass_api_operator::reasons as known;
use windlass_conditions::Status;
use windlass_kit::{Cx, ErrorKind, EventType, Triage, WriteError};

use super::Observed;
use super::declaration::Declaration;
use super::plan::{Action, Again, Blocked, Plan, Stage};
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
    done: Done,
}

/// Carries out a plan.
pub(super) fn apply<'a>(cx: &'a Cx, operator: &'a Operator, seen: &'a Observed, plan: &'a Plan) -> BoxFuture<'a, Done> {
    Box::pin(carry_out(cx, operator, seen, plan))
}

async fn carry_out(cx: &Cx, operator: &Operator, seen: &Observed, plan: &Plan) -> Done {
    let rendered = match &seen.prepared {
        Some(Ok(prepared)) => Some(prepared.clone()),
        _ => None,
    };
    let mut run = Run {
        cx,
        operator,
        declaration: &seen.declaration,
        whose: seen.declaration.whose.clone(),
        kept: seen
            .facts
            .kept
            .as_ref()
            .map(|kept| Kept::clone(kept))
            .unwrap_or_default(),
        rendered,
        done: Done::default(),
    };
    for action in &plan.actions {
        tracing::debug!(?action, "acting");
        if let Err(failure) = Box::pin(run.act(action)).await {
            run.fail(action, failure).await;
            break;
        }
    }
    let uid = seen.declaration.me.uid.clone();
    if run.done.released {
        operator.forget(&seen.declaration.me);
    } else if seen.facts.kept.is_ok() {
        operator.0.kept.lock().insert(uid, Arc::new(run.kept.clone()));
    }
    run.tell(plan);
    let blocked = run.done.failure.as_ref().or(plan.blocked.as_ref());
    let awaited = blocked.map_or(&[][..], |blocked| &blocked.awaited);
    run.done.eyes = run.done.released || {
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
        operator.tell(&run.whose, told);
    }
    run.done.kept = run.kept;
    run.done
}

impl Run<'_> {
    async fn act(&mut self, action: &Action) -> Result<(), Blocked> {
        match action {
            Action::SetVersion(version) => self.set_version(version).await,
            Action::Keep => self.keep().await,
            Action::Check => self.check().await,
            Action::Migrate => self.migrate_before().await,
            Action::Stop => self.stop().await,
            Action::Install => self.install_next().await,
            Action::Prune => self.prune().await,
            Action::Commit => self.commit().await,
            Action::Repair(which) => {
                if which.is_some() {
                    self.operator.0.tracker.repaired(&self.whose, self.cx.now());
                }
                self.repair(which.as_deref()).await
            }
            Action::GoBack { why, obstacle } => self.go_back(why, obstacle.as_deref()).await,
            Action::TakeBack => self.take_back().await,
            Action::Discard => self.discard().await,
            Action::Hold => self.hold().await,
            Action::Restore => self.restore().await,
            Action::Settle => self.settle().await,
            Action::Renew => self.renew().await,
            Action::Remove => self.remove().await,
            Action::Forget => self.forget().await,
        }
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

    /// Tells people what happened.
    fn tell(&self, plan: &Plan) {
        let told = |kind, reason: &str, message: &str| self.cx.event(&self.declaration.object, kind, reason, message);
        if let Some(problem) = self.done.failure.as_ref().or(plan.blocked.as_ref()) {
            told(EventType::Warning, problem.reason, &problem.message);
        }
        if let (true, Some(current)) = (self.done.committed, &self.kept.current) {
            let message = format!("version {} is installed", current.version);
            let reason = if current.replaces {
                reasons::UPGRADED
            } else {
                reasons::INSTALLED
            };
            told(EventType::Normal, reason, &message);
        }
        if let Some(Action::Repair(Some(drifted))) = plan.actions.iter().find(|a| matches!(a, Action::Repair(Some(_))))
        {
            let names: Vec<_> = drifted.iter().take(10).map(ToString::to_string).collect();
            let message = format!("put back as it was installed: {}", names.join(", "));
            told(EventType::Normal, "DriftRepaired", &message);
        }
    }
}

/// What a write that did not succeed means. Servers quote what they refuse, so of Secrets their words are left out.
fn refused(error: &WriteError, what: &str) -> Blocked {
    let words = if what.starts_with("Secret ") {
        "the server refuses its content"
    } else {
        error.message()
    };
    let message = match error.kind() {
        ErrorKind::NotFound => format!("{what}: {words}; is what defines its kind installed?"),
        _ => format!("{what}: {words}"),
    };
    let again = if error.retry() {
        Again::Backoff
    } else {
        Again::After(super::plan::TRY_AGAIN)
    };
    Blocked::new(Stage::Install, reasons::APPLY_ERROR, message).again(again)
}

/// [`refused`] about an object.
fn refused_object(error: &WriteError, object: &ObjectRef) -> Blocked {
    refused(error, &object.to_string())
}

/// Something that a read could not tell.
fn unread(why: impl Into<String>) -> Blocked {
    Blocked::new(Stage::Install, reasons::APPLY_ERROR, why).again(Again::Backoff)
}

/// Something old that cannot be deleted.
fn stuck(what: &ObjectRef) -> Blocked {
    let message = format!("{what} of the version before is being deleted, and finalizers hold it");
    Blocked::new(Stage::Install, known::OLD_COMPONENTS_DELETION_ERROR, message).again(Again::Backoff)
}
