//! Deleting exactly one object.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use super::send::{Answer, Call, Verb};
use super::{Deleted, Propagation, Target, Writer};
use crate::error::WriteError;
use crate::guard::Need;

impl Writer {
    /// Whether the object with this uid is stored.
    async fn is_there(&self, target: &Target, uid: Option<&str>) -> Result<bool, WriteError> {
        let call = Call {
            verb: Verb::Read,
            target,
            url: target.url(None),
            body: None,
        };
        match self.send(&call).await {
            Ok(stored) => Ok(Some(stored.uid()) == uid),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn delete_target<'a>(
        &'a self,
        target: &'a Target,
        uid: Option<&'a str>,
        propagation: Propagation,
    ) -> BoxFuture<'a, Result<Deleted, WriteError>> {
        self.delete_once(target, uid, propagation).boxed()
    }

    async fn delete_once(
        &self,
        target: &Target,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<Deleted, WriteError> {
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
        });
        if let Some(uid) = uid {
            body["preconditions"] = json!({ "uid": uid });
        }
        self.lock_body(Verb::Delete, target, &mut body);
        let call = Call {
            verb: Verb::Delete,
            target,
            url: target.url(None),
            body: Some(&body),
        };
        let answer = match self.send_safe(&call).await {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => Answer::gone(),
            // The name belongs to another object by now, unless the server refused for another reason.
            Err(error) if error.is_conflict() && uid.is_some() => {
                if self.is_there(target, uid).await? {
                    return Err(error);
                }
                Answer::gone()
            }
            Err(error) => return Err(error),
        };
        if !answer.is_going() {
            if let Some(uid) = uid {
                let need = Need::Gone(uid.to_owned());
                self.journal.wrote(&target.gvk, &target.key, need);
            }
            return Ok(Deleted::Gone);
        }
        self.note(target, &answer);
        Ok(Deleted::Going)
    }
}
