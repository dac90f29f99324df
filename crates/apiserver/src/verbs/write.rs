//! create, update, patch: from a request and what is stored to what is stored next.
//!
//! Here is what they share; `create` makes objects, `update` changes them, `patch` knows what a request asks for.

mod apply;
mod create;
mod patch;
mod scaled;
mod update;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use windlass_smd::Scope;
use windlass_store::{Change, CommitError, Expect, Key, Record, Write};

use crate::auth::user::UserInfo;
use crate::crds;
use crate::error::ApiError;
use crate::objects::convert::{bring_one, served};
use crate::objects::prepare::Part;
use crate::objects::resource::{Resource, Special};
use crate::server::Inner;
use crate::verbs::options::WriteOptions;

/// How often a write that names no revision is tried against a changing object.
const TRIES: usize = 20;

/// A write to one resource.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) namespace: &'a str,
    pub(crate) user: &'a UserInfo,
    pub(crate) options: &'a WriteOptions,
    /// Who is recorded as manager of the fields that change.
    pub(crate) manager: String,
}

/// What a write led to.
pub(crate) struct Outcome {
    /// The object in the served version, where nothing stored says it.
    pub(crate) object: Option<Value>,
    /// What is stored now; `None` for a dry run, and for what is gone.
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Outcome {
    /// The object as it is now, in the served version. What is stored is decoded for this: an answer copies its bytes.
    pub(crate) fn object(&self, resource: &Resource) -> Result<Cow<'_, Value>, ApiError> {
        match (&self.object, &self.record) {
            (Some(object), _) => Ok(Cow::Borrowed(object)),
            (None, Some(record)) => served(resource, record).map(Cow::Owned),
            (None, None) => Err(ApiError::internal("a write led to nothing")),
        }
    }
}

/// What a request does to an object.
pub(crate) enum Mutation {
    /// PUT.
    Replace(Value, Vec<String>),
    /// RFC 6902, with what a strict decoder would complain about.
    Json(Value, Vec<String>),
    /// RFC 7386, likewise.
    Merge(Value, Vec<String>),
    /// Kubernetes' own, likewise.
    Strategic(Value, Vec<String>),
    /// Server-side apply, likewise.
    Apply(Value, Vec<String>),
    /// A pod gets this node.
    Bind(String),
    /// Any of these to the scale of the object.
    Scale(Box<Self>),
}

impl Call<'_> {
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

    fn commit_error(&self, error: &CommitError, name: &str) -> ApiError {
        match error {
            CommitError::Conflict { .. } => self.modified(name),
            CommitError::Storage(error) => ApiError::storage(error),
        }
    }

    /// What a write to a part cannot change, and the part's name.
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

    /// Services are written one at a time, for their addresses.
    async fn lock_kind(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.resource.special {
            Special::Service => Some(self.server.service_writes.lock().await),
            _ => None,
        }
    }

    /// After a definition was written: accepts its names.
    async fn settle_definition(&self, part: Part, outcome: &Outcome) {
        let Some(record) = &outcome.record else { return };
        if self.resource.special != Special::Crd || part != Part::Main {
            return;
        }
        let name = record.key.name();
        if let Err(error) = crds::settle(self.server, name).await {
            tracing::error!(%error, name, "the status of a definition cannot be written");
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
        self.server.written(self.resource, self.namespace, record.key.name());
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

/// Whether something besides finalizers keeps a deleted object.
pub(crate) fn holds(resource: &Resource, object: &Value) -> bool {
    match resource.special {
        Special::Namespace => object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty()),
        Special::Pod => crate::objects::object::meta_value(object, "deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|s| s > 0),
        _ => false,
    }
}

pub(crate) fn check(record: &Record) -> Write {
    Write {
        key: record.key.clone(),
        expect: Expect::Revision(record.revision),
        change: Change::Check,
    }
}
