//! create, update, patch: from a request and the stored object to the next stored object.
//!
//! This module has the shared parts; `create` creates objects, `update` changes them, `patch` computes the requested change.

mod apply;
mod create;
mod patch;
mod scaled;
mod update;

use std::sync::Arc;

use windlass_smd::Scope;
use windlass_store::{Change, CommitError, Expect, Key, Record, Write};

use crate::error::ApiError;
use crate::objects::convert::bring_one;
use crate::verbs::call::Call;
use crate::verbs::call::Outcome;
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_rbac::attributes::{Attributes, Target};

/// How many times a write without a revision is retried if the object changes meanwhile.
const TRIES: usize = 20;

impl Call<'_> {
    /// Checks the permission to create: a permission to update does not imply it.
    pub(crate) fn may_create(&self, name: &str) -> Result<(), ApiError> {
        let target = Target::Resource {
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: "",
            namespace: self.namespace,
            name,
        };
        let verb = "create";
        self.server.authorizer.check(self.user, &Attributes { verb, target })
    }

    fn key(&self, name: &str) -> Key {
        Key::new(&self.resource.storage, self.namespace, name)
    }

    fn exists(&self, name: &str) -> ApiError {
        let mut error = ApiError::already_exists(&self.resource.group, &self.resource.plural, name);
        let found = self.server.store.get(&self.resource.storage, self.namespace, name);
        if found.is_some_and(|record| record.header.deleting) {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    fn modified(&self, name: &str) -> ApiError {
        ApiError::modified(&self.resource.group, &self.resource.plural, name)
    }

    fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, name)
    }

    /// The error if the stored object has another uid than the request.
    fn other_uid(&self, name: &str, wanted: &str, have: &str) -> ApiError {
        let resource = self.resource;
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {have}",
            resource.registry_key(self.namespace, name)
        );
        ApiError::conflict(&resource.group, &resource.plural, name, &why)
    }

    fn commit_error(&self, error: &CommitError, name: &str) -> ApiError {
        match error {
            CommitError::Conflict { .. } => self.modified(name),
            CommitError::Storage(error) => ApiError::storage(error),
        }
    }

    /// The scope of a write to a subresource, and the name of the subresource.
    fn scope(&self, part: Part) -> (Scope, &'static str) {
        let subresource = part.subresource();
        let scope = match part {
            Part::Status if self.resource.is_custom() => Scope::CUSTOM_STATUS,
            Part::Status => match self.resource.kind.as_str() {
                "VolumeAttachment" => Scope::CUSTOM_STATUS,
                "Deployment" => Scope::except(&[&["spec"], &["metadata", "labels"]]),
                "Pod" => Scope::except(&[
                    &["spec"],
                    &["metadata", "deletionTimestamp"],
                    &["metadata", "ownerReferences"],
                ]),
                _ => Scope::STATUS,
            },
            Part::Finalize => Scope::MAIN,
            Part::Main | Part::Scale | Part::Containers if self.resource.status => Scope::MAIN,
            Part::Main | Part::Scale | Part::Containers | Part::Binding => Scope::ALL,
        };
        (scope, subresource)
    }

    /// The lock of a kind. Writes of services are serialized, because their addresses must be unique.
    async fn lock_kind(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.resource.special {
            Special::Service => Some(self.server.service_writes.lock().await),
            _ => None,
        }
    }

    /// Accepts the names of a definition after it was written.
    async fn settle_definition(&self, part: Part, outcome: &Outcome) {
        let Some(record) = &outcome.record else { return };
        if self.resource.special != Special::Crd || part != Part::Main {
            return;
        }
        let name = record.key.name();
        if let Err(error) = crate::controllers::definitions::settle(self.server, name).await {
            let (about, why) = (format!("status of definition {name}"), error.to_string());
            if let Some(repeated) = self.server.said.line(&about, &why, std::time::Instant::now()) {
                tracing::error!(
                    reason = why,
                    name,
                    repeated,
                    "the status of a definition cannot be written"
                );
            }
        }
    }

    async fn stored(
        &self,
        records: Vec<Arc<Record>>,
        created: bool,
        warnings: Vec<String>,
    ) -> Result<Outcome, ApiError> {
        let record = records
            .into_iter()
            .next_back()
            .ok_or_else(|| ApiError::internal("nothing was stored"))?;
        let record = bring_one(self.server, self.resource, record).await?;
        Ok(Outcome {
            object: None,
            record: Some(record),
            created,
            warnings,
        })
    }

    fn is_there(&self, name: &str) -> bool {
        self.server
            .store
            .get(&self.resource.storage, self.namespace, name)
            .is_some()
    }
}

pub(crate) fn check(record: &Record) -> Write {
    Write {
        key: record.key.clone(),
        expect: Expect::Revision(record.revision),
        change: Change::Check,
    }
}
