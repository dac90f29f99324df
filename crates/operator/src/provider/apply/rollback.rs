//! Taking releases back that could not be installed, or never came up.
//!
//! That a release failed is written first, which makes the one before it the current one. So the process that comes after one that was cut
//! off knows what has to be taken back yet.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;
use windlass_controller_runtime::{Repeats, Until};

use super::storage::{names_of, stored};
use super::{Run, unread};
use crate::kept::{Failure, Kept, Release, State, walk};
use crate::masked::without_values;
use crate::objects::ObjectRef;
use crate::prepare::read;
use crate::provider::blocked::{Blocked, TRY_AGAIN};
use crate::provider::desired::inputs;
use crate::provider::plan::Action;
use crate::provider::plan::rollback::taken_back;

impl Run<'_> {
    /// A failure, as it is reported. When it is about replacing what runs, and trying again cannot help, the release is taken back.
    pub(super) async fn fail(&mut self, action: &Action, mut failure: Blocked) -> Blocked {
        failure.message = self.masked(&failure.message).await;
        let replacing = matches!(action, Action::Stop | Action::Install | Action::Prune);
        let final_ = failure.until != Until::Backoff || self.is_last_attempt;
        let can_go_back = self.kept.current.is_some() && self.kept.next.is_some();
        if replacing
            && self.kept.current.is_none()
            && let Err(worse) = self.note(&mut failure).await
        {
            let error = self.masked(&worse.message).await;
            self.warn(&error, "the failed attempt could not be noted");
        }
        if replacing
            && final_
            && can_go_back
            && let Err(worse) = self.give_up(&mut failure).await
        {
            let error = self.masked(&worse.message).await;
            self.warn(&error, "the version before could not be put back yet");
        }
        failure
    }

    /// Logs what keeps a failure from being dealt with. The same comes again with each attempt.
    fn warn(&self, error: &str, what: &'static str) {
        static SAID: Repeats = Repeats::new();
        let about = format!("{:?} {} {what}", self.whose.type_, self.whose.key);
        if let Some(repeated) = SAID.line(&about, error, Instant::now()) {
            tracing::warn!(error, repeated, "{what}");
        }
    }

    /// Notes that the first installation failed, so that the next attempt knows whether what it is made of has changed since.
    async fn note(&mut self, failure: &mut Blocked) -> Result<(), Blocked> {
        let noted = Failure {
            message: failure.message.clone(),
            generation: self.generation(),
            lasting: failure.until != Until::Backoff,
            undone: true,
        };
        if let Ok(declared) = &self.declaration.said {
            failure.awaited.extend(inputs(declared));
        }
        let Some(next) = &mut self.kept.next else {
            return Ok(());
        };
        let is_same = |before: &Failure| (before.generation, before.lasting) == (noted.generation, noted.lasting);
        if next.failure.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        next.failure = Some(noted);
        self.update_next().await
    }

    /// A message without the values of variables, which servers quote.
    async fn masked(&self, message: &str) -> String {
        let variables = match (&self.declaration.said, self.variables) {
            (_, Some(variables)) => Ok(variables.clone()),
            (Ok(declared), None) => read::variables(self.cx, declared).await,
            (Err(_), None) => Ok(BTreeMap::new()),
        };
        without_values(message, variables, &self.operator.0.environment)
    }

    /// Puts the current release back in the place of one that could not be installed, unless it could not work any more: then
    /// there is only the way forward.
    async fn give_up(&mut self, failure: &mut Blocked) -> Result<(), Blocked> {
        let Some(current) = self.kept.current.clone() else {
            return Ok(());
        };
        if let Some(lost) = self.lost_by(&current).await? {
            let version = &current.version;
            failure.message = format!("{}; version {version} cannot be put back: {lost}", failure.message);
            failure.until = Until::After(TRY_AGAIN.unsigned_abs());
            return Ok(());
        }
        let (generation, now) = (self.generation(), self.cx.now());
        if let Some(next) = self.kept.next.as_mut() {
            next.state = State::Failed;
            next.made = now;
            next.failure = Some(Failure {
                message: failure.message.clone(),
                generation,
                ..Failure::default()
            });
        }
        self.update_next().await?;
        self.take_back().await
    }

    /// Puts what worked before in the place of what never came up.
    pub(super) async fn go_back(&mut self, why: &str, obstacle: Option<&str>) -> Result<(), Blocked> {
        let (Some(mut failed), Some(previous)) = (self.kept.current.clone(), self.kept.previous.clone()) else {
            return Ok(());
        };
        let obstacle = match obstacle {
            Some(obstacle) => Some(obstacle.to_owned()),
            None => self.lost_by(&previous).await?,
        };
        let mut failure = Failure {
            message: why.to_owned(),
            generation: self.generation(),
            lasting: true,
            undone: false,
        };
        if let Some(obstacle) = obstacle {
            failure.message = format!(
                "{why}; version {} is not put back: {obstacle}; mend the Deployment, or declare another version",
                previous.version
            );
            failed.failure = Some(failure);
            self.update(&failed).await?;
            self.kept.current = Some(failed);
            return Ok(());
        }
        failed.failure = Some(failure);
        failed.state = State::Failed;
        failed.made = self.cx.now();
        self.update(&failed).await?;
        self.done.problem = Some(taken_back(self.declaration.said.as_ref().ok(), &failed));
        self.kept = Kept {
            current: Some(previous),
            next: Some(failed),
            previous: None,
            ..std::mem::take(&mut self.kept)
        };
        self.take_back().await
    }

    /// Takes back what the next release changed, which has failed.
    pub(super) async fn take_back(&mut self) -> Result<(), Blocked> {
        self.operator.0.tracker.doubt(&self.whose);
        let (Some(current), Some(next)) = (self.kept.current.clone(), self.kept.next.clone()) else {
            return Ok(());
        };
        self.stop_all_but(&current, &next.index).await?;
        self.repair(None).await?;
        self.delete_all(&next.beyond(&current)).await?;
        let failure = self.kept.next.as_mut().and_then(|next| next.failure.as_mut());
        if let Some(failure) = failure {
            failure.undone = true;
        }
        self.update_next().await
    }

    /// The generation of the declaration that this is about.
    fn generation(&self) -> i64 {
        let after = self.done.generation;
        after.or(self.declaration.meta().generation).unwrap_or(0)
    }

    /// Which objects would be lost if a release were installed again: those that are stored in a version that it does not have.
    async fn lost_by(&self, release: &Release) -> Result<Option<String>, Blocked> {
        let sealed = self.load(release).await?;
        for object in walk(&sealed.packed) {
            let object = object.map_err(|error| unread(error.to_string()))?;
            if !ObjectRef::of(&object).is_definition() {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let Some(live) = self.definition(name).await? else {
                continue;
            };
            if let Some(lost) = lost(&live, &object) {
                return Ok(Some(format!(
                    "objects of {name} may be stored as {lost} by now, which it does not have"
                )));
            }
        }
        Ok(None)
    }
}

/// A version in which objects may be stored, and which another definition does not have.
fn lost<'a>(live: &'a Value, other: &Value) -> Option<&'a str> {
    stored(live).find(|version| !names_of(&other["spec"]["versions"]).any(|has| has == *version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_cannot_go_back_behind_what_is_stored() {
        let check = |stored: &[&str], has: &[&str], expect: Option<&str>| {
            let live = json!({"status": {"storedVersions": stored}});
            let versions: Vec<_> = has.iter().map(|name| json!({"name": name})).collect();
            let other = json!({"spec": {"versions": versions}});
            assert_eq!(lost(&live, &other), expect);
        };
        check(&["v1beta1"], &["v1beta1"], None);
        check(&["v1beta1", "v1beta2"], &["v1beta1", "v1beta2"], None);
        check(&["v1beta1", "v1beta2"], &["v1beta1"], Some("v1beta2"));
        check(&["v1beta2"], &["v1beta1"], Some("v1beta2"));
    }
}
