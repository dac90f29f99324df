//! Applying releases: in order, one object at a time, each remembered as it was left.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_controller_runtime::{Deleted, Dynamic, ErrorKind, Seen, Triage, Until, WriteError};
use windlass_provider_components::customize::pause;

use super::{Run, joined, refused_object, stuck, unread};
use crate::kept::{Release, Sealed, walk};
use crate::names::MANAGER;
use crate::objects::{ObjectRef, Running, short_hash};
use crate::provider::blocked::Blocked;

/// What a name gets that is only tried.
const TRIED: &str = "-tried";
/// Some kinds, such as Service, take names of at most this many characters.
const LONGEST_NAME: usize = 63;
/// How often an object is tried when the server does not answer.
const TRIALS: usize = 3;
/// How many objects may fail before a repair ends. A server that answers nothing must not hold it up for each object.
const FAILURES: usize = 10;

impl Run<'_> {
    /// Applies the next release.
    pub(super) async fn install_next(&mut self) -> Result<(), Blocked> {
        let Some(next) = self.kept.next.clone() else {
            return Ok(());
        };
        let sealed = self.load(&next).await?;
        // Until everything is as it should be, it is not known how it was left.
        self.operator.0.tracker.doubt(&self.whose);
        // What comes later in a release needs what comes before.
        self.apply_objects(&sealed, None, 1).await
    }

    /// Applies the current release again. An object that fails does not keep the others from being put back.
    pub(super) async fn repair(&mut self, which: Option<&[ObjectRef]>) -> Result<(), Blocked> {
        let Some(current) = self.kept.current.clone() else {
            return Ok(());
        };
        let sealed = self.load(&current).await?;
        let which: Option<BTreeSet<_>> = which.map(|which| which.iter().map(ObjectRef::identity).collect());
        self.apply_objects(&sealed, which.as_ref(), FAILURES).await?;
        if which.is_none() {
            self.operator.0.tracker.complete(&self.whose, &current.index);
        }
        self.record().await
    }

    /// Applies those objects of a release that are asked for, until `most` of them have failed. An object whose webhook is not served
    /// does not count: what serves the webhook may come later in the release.
    pub(super) async fn apply_objects(
        &self,
        sealed: &Sealed,
        which: Option<&BTreeSet<(String, String, String, String)>>,
        most: usize,
    ) -> Result<(), Blocked> {
        let tracker = &self.operator.0.tracker;
        tracker.watch(self.cx, &sealed.release.index).await;
        let (mut failures, mut unserved) = (Vec::new(), Vec::new());
        for object in walk(&sealed.packed) {
            let object = object.map_err(|error| unread(error.to_string()))?;
            let of = ObjectRef::of(&object);
            if which.is_some_and(|which| !which.contains(&of.identity())) {
                continue;
            }
            let object = staged(object, &sealed.release);
            let applied = short_hash(object.to_string().as_bytes());
            if !tracker.is_as_left(&self.whose, &of, applied) {
                match self.apply_one(&of, &object).await {
                    Ok(stored) => tracker.left(&self.whose, &of, applied, &stored),
                    Err(failure) if failure.is_unserved => unserved.push(failure.blocked),
                    Err(failure) => failures.push(failure.blocked),
                }
                if failures.len() >= most {
                    break;
                }
            }
        }
        if let Some(failure) = joined(failures.into_iter().chain(unserved.into_iter().take(FAILURES))) {
            return Err(failure);
        }
        // Kinds that were not defined before are now.
        tracker.watch(self.cx, &sealed.release.index).await;
        Ok(())
    }

    async fn apply_one(&self, of: &ObjectRef, object: &Value) -> Result<Value, Unapplied> {
        let writer = self.cx.writer();
        let failed = |error: &WriteError| Unapplied {
            is_unserved: is_unserved(error),
            blocked: refused_object(error, of),
        };
        let error = match writer.apply_sent(MANAGER, object).await {
            Ok(stored) => return Ok(stored),
            Err(error) => error,
        };
        if error.kind() != ErrorKind::Invalid || !of.is_replaceable() {
            return Err(failed(&error));
        }
        // Some fields cannot be changed once they are set: then the object is made again. If the server would not take it again,
        // what is stored is better than nothing.
        match self.try_elsewhere(of, object).await {
            Ok(()) => {}
            Err(untried) if untried.retry() => return Err(failed(&untried)),
            Err(_) => return Err(failed(&error)),
        }
        // Should this be cut off in between, nothing but applying all of it shows that the object is gone.
        self.operator.0.tracker.doubt(&self.whose);
        match self.delete_one(of, false).await {
            Ok(true) => {}
            Ok(false) => return Err(failed(&error)),
            Err(blocked) => {
                return Err(Unapplied {
                    blocked,
                    is_unserved: false,
                });
            }
        }
        let again = writer.apply_sent(MANAGER, object).await;
        again.map_err(|error| failed(&error))
    }

    /// Asks the server whether it would take the release that was rendered.
    pub(super) async fn check(&mut self) -> Result<(), Blocked> {
        let Some(sealed) = &self.rendered else {
            return Ok(());
        };
        for object in walk(&sealed.packed) {
            let mut object = object.map_err(|error| unread(error.to_string()))?;
            let of = ObjectRef::of(&object);
            let mut tried = self.try_one(&object).await;
            if of.is_definition() && tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid) {
                object = self.before_migration(object, &sealed.release.version).await?;
                tried = self.try_one(&object).await;
            }
            let Err(error) = tried else {
                continue;
            };
            if !self.is_refused(&of, &object, &error).await {
                continue;
            }
            let problem = refused_object(&error, &of);
            let message = format!("nothing was changed, as the server would refuse {}", problem.message);
            return Err(Blocked { message, ..problem }.until(Until::Backoff));
        }
        Ok(())
    }

    /// Tries an object. A connection that breaks is tried again at once: a trial changes nothing.
    async fn try_one(&self, object: &Value) -> Result<(), WriteError> {
        let mut tried = self.cx.writer().try_apply_value(MANAGER, object).await;
        for _ in 1..TRIALS {
            match &tried {
                Err(error) if error.retry() && !error.is_not_found() => {
                    tried = self.cx.writer().try_apply_value(MANAGER, object).await;
                }
                _ => break,
            }
        }
        tried.map(drop)
    }

    /// Whether an answer to a trial means that the release cannot be installed.
    async fn is_refused(&self, of: &ObjectRef, object: &Value, error: &WriteError) -> bool {
        match error.kind() {
            // Its kind may come with the release itself.
            ErrorKind::NotFound => false,
            ErrorKind::Refused if error.message().contains("dry run") => false,
            // What does not answer now may be what the release repairs.
            ErrorKind::Server if is_unserved(error) => false,
            // An object that cannot be changed can be made again, and workloads of other releases are deleted before.
            ErrorKind::Invalid if of.is_replaceable() || of.is_workload() => {
                let tried = self.try_elsewhere(of, object).await;
                tried.is_err_and(|error| matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Refused))
            }
            _ => true,
        }
    }

    /// Tries to make an object under another name.
    async fn try_elsewhere(&self, of: &ObjectRef, object: &Value) -> Result<(), WriteError> {
        let mut other = object.clone();
        other["metadata"]["name"] = json!(tried_name(&of.name));
        self.try_one(&other).await
    }

    /// Stops what runs of other releases than the next one.
    pub(super) async fn stop(&mut self) -> Result<(), Blocked> {
        let Some(next) = self.kept.next.clone() else {
            return Ok(());
        };
        let current = self.kept.current.iter().flat_map(|current| &current.index);
        let others: Vec<_> = current.chain(&next.leftovers).cloned().collect();
        self.stop_all_but(&next, &others).await
    }

    /// Deletes workloads among these objects and those of a release that are not of that release.
    pub(super) async fn stop_all_but(&self, release: &Release, others: &[ObjectRef]) -> Result<(), Blocked> {
        let all = release.index.iter().chain(others).filter(|object| object.is_workload());
        let all: BTreeSet<_> = all.collect();
        self.operator.0.tracker.doubt(&self.whose);
        for object in all {
            let live = match self.cx.read_value(&object.gvk(), &object.key()).await {
                Seen::Found(live) => live,
                Seen::NotFound => continue,
                Seen::Failed(why) => return Err(unread(why)),
            };
            if Running::of(&live).release.as_deref() != Some(release.id().as_str()) {
                self.delete_one(object, true).await?;
            }
        }
        Ok(())
    }

    /// Deletes an object that is a provider's. False when there is none, or it is not.
    pub(super) async fn delete_one(&self, object: &ObjectRef, wait: bool) -> Result<bool, Blocked> {
        let tracker = &self.operator.0.tracker;
        let live = match self.cx.read_value(&object.gvk(), &object.key()).await {
            Seen::Found(live) => live,
            Seen::NotFound => {
                tracker.dropped(&self.whose, object);
                return Ok(false);
            }
            Seen::Failed(why) => return Err(unread(why)),
        };
        let live = Dynamic::new(live).map_err(|error| unread(format!("{object}: {error}")))?;
        let label = self.whose.type_.label(&self.whose.key.name);
        if live.label(windlass_api_operator::labels::PROVIDER) != Some(label.as_str()) {
            tracing::info!(%object, "left alone: it no longer carries the label of the provider");
            tracker.dropped(&self.whose, object);
            return Ok(false);
        }
        match self.cx.writer().delete_value(&live).await {
            Ok(Deleted::Going) if wait => Err(stuck(object)),
            Ok(_) => {
                tracker.dropped(&self.whose, object);
                Ok(true)
            }
            Err(error) => Err(refused_object(&error, object)),
        }
    }
}

/// The name under which an object is tried. It is no longer than the shortest limit of names, that of labels.
fn tried_name(name: &str) -> String {
    let stem: String = name.chars().take(LONGEST_NAME - TRIED.len()).collect();
    format!("{}{TRIED}", stem.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// A failed write of an object.
struct Unapplied {
    blocked: Blocked,
    /// Whether a webhook that the server asks about the object does not answer.
    is_unserved: bool,
}

/// Whether the server could not ask a webhook about a write. It says so in the message only.
fn is_unserved(error: &WriteError) -> bool {
    let message = error.message();
    let is_about_webhook = message.contains("failed calling webhook") || message.contains("conversion webhook for ");
    error.kind() == ErrorKind::Server && is_about_webhook
}

/// An object as it is applied now: without replicas while the provider is paused, and with those that it had before afterwards.
pub(super) fn staged(mut object: Value, release: &Release) -> Value {
    let of = ObjectRef::of(&object);
    if !of.is_workload() || of.kind == "DaemonSet" {
        return object;
    }
    let before = release.replicas.get(&of.name).copied();
    if release.paused {
        let had = before.unwrap_or_else(|| pause::replicas(&object));
        pause::hold(&mut object, had);
    } else if let Some(had) = before {
        pause::give_back(&mut object, had);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_tried_is_legal_wherever_the_name_is() {
        assert_eq!(tried_name("web"), "web-tried");
        let long = format!("{}.{}", "x".repeat(56), "y".repeat(6));
        assert_eq!(tried_name(&long), format!("{}-tried", "x".repeat(56)));
    }
}
