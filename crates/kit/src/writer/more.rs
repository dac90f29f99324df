//! Writes of kinds that become known while running, trials, what definitions say is stored, and what the driver writes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::send::{Call, Verb};
use super::{Applied, Target, Write, Writer, body, dynamic, query};
use crate::error::{ErrorKind, WriteError};
use crate::object::{Dynamic, Gvk, ObjectKey, gvk_from};
use crate::seen::Seen;

impl Writer {
    /// Where an object is written whose kind is built in, or so new that no cache has its definition.
    pub(super) async fn discovered(
        &self,
        verb: Verb,
        gvk: Gvk,
        key: ObjectKey,
        unknown: &str,
    ) -> Result<Target, WriteError> {
        let (kind, why) = match self.ports.discovery.find(&self.ports.client, &gvk).await {
            Seen::Found(resource) => {
                let plural = resource.plural;
                return Ok(Target { gvk, key, plural });
            }
            Seen::NotFound => (ErrorKind::NotFound, unknown.to_owned()),
            Seen::Failed(why) => (ErrorKind::Transport, why),
        };
        Err(WriteError::new(kind, verb.word(), &gvk, &key, why))
    }

    /// Notes on a definition in which versions objects are still stored.
    pub async fn stored_versions(&self, manager: &str, definition: &str, versions: &[&str]) -> Result<(), WriteError> {
        let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let target = self
            .target(Verb::MergePatch, gvk, ObjectKey::new("", definition))
            .await?;
        let patch = json!({ "status": { "storedVersions": versions } });
        let call = Call {
            verb: Verb::MergePatch,
            target: &target,
            url: format!("{}?fieldManager={}", target.url(Some("status")), query(manager)),
            body: Some(&patch),
        };
        let answer = self.send_or_doubt(&call).await?;
        self.note(&target, &answer);
        Ok(())
    }

    /// [`Self::apply_value`] that is sent whatever is known, and gives back the object as the server answered, with its managed
    /// fields.
    pub async fn apply_sent(&self, manager: &str, desired: &Value) -> Result<Value, WriteError> {
        let target = self.target_of_value(Verb::Apply, desired).await?;
        let mut body = body::for_apply(desired.clone());
        let (answer, _) = self.send_apply(manager, &target, None, &mut body).await?;
        Ok(answer)
    }

    /// Asks the server what it would say to [`Self::apply_value`], without doing anything.
    pub async fn try_apply_value(&self, manager: &str, desired: &Value) -> Result<(), WriteError> {
        let target = self.target_of_value(Verb::Apply, desired).await?;
        let body = body::for_apply(desired.clone());
        let (url, manager) = (target.url(None), query(manager));
        let call = Call {
            verb: Verb::Apply,
            target: &target,
            url: format!("{url}?fieldManager={manager}&force=true&dryRun=All"),
            body: Some(&body),
        };
        self.send(&call).await.map(drop)
    }

    /// [`Self::apply_status`] without types: only what it did.
    pub(crate) async fn write_status(
        &self,
        manager: &str,
        target: &Target,
        uid: Option<&str>,
        status: Value,
    ) -> Result<Write, WriteError> {
        let body = body::for_status(target, uid, status);
        let applied = self.apply_body(manager, target, Some("status"), body).await?;
        Ok(applied.map_or(Write::Skipped, |(_, outcome)| outcome))
    }

    pub(super) fn skipped_value(&self, target: &Target) -> Result<Applied<Arc<Dynamic>>, WriteError> {
        let cached = self.ports.caches.known_dynamic(&target.gvk);
        let object = match cached.and_then(|store| store.get(&target.key)) {
            Some(object) => object,
            None => Arc::new(dynamic(Verb::Apply, target, self.cached_value(target)?)?),
        };
        Ok(Applied {
            object,
            outcome: Write::Skipped,
        })
    }
}
