//! create, update, patch: from a request and what is stored to what is stored next.
//!
//! Here is what they share; `create` makes objects, `update` changes them, `patch` knows what a request asks for.

mod create;
mod patch;
mod update;

use std::sync::Arc;

use serde_json::Value;
use windlass_smd::{Scope, Update};
use windlass_store::{Change, CommitError, Expect, Key, Record, Write};

use crate::convert::served;
use crate::error::ApiError;
use crate::prepare::Part;
use crate::request::WriteOptions;
use crate::resource::{Resource, Special};
use crate::server::Inner;
use crate::user::UserInfo;

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
    /// The object as it is now, in the served version.
    pub(crate) object: Value,
    /// What is stored now; `None` for a dry run.
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

/// What a request does to an object.
pub(crate) enum Mutation {
    /// PUT.
    Replace(Value, Vec<String>),
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own.
    Strategic(Value),
    /// Server-side apply.
    Apply(Value, Vec<String>),
    /// PUT of a scale: the number of replicas at a dotted path.
    Scale(String, i64, Option<String>),
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

    fn scope(&self, part: Part) -> (Scope, &'static str) {
        match part {
            Part::Status => (Scope::Status, "status"),
            Part::Finalize => (Scope::All, "finalize"),
            Part::Main | Part::Scale => {
                let scope = if self.resource.status { Scope::Main } else { Scope::All };
                (scope, if part == Part::Scale { "scale" } else { "" })
            }
        }
    }

    /// Definitions are written one at a time: whether names are free depends on all of them.
    async fn lock_definitions(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.resource.special == Special::Crd {
            Some(self.server.crd_writes.lock().await)
        } else {
            None
        }
    }

    fn own(&self, live: Option<&Value>, object: &mut Value, part: Part, now: jiff::Timestamp) {
        let (scope, subresource) = self.scope(part);
        windlass_smd::update(
            &Update {
                schema: self.resource.schema().map(AsRef::as_ref),
                live,
                manager: &self.manager,
                api_version: &self.resource.api_version(),
                subresource,
                scope,
                now,
            },
            object,
        );
    }

    fn stored(&self, records: Vec<Arc<Record>>, created: bool, warnings: Vec<String>) -> Result<Outcome, ApiError> {
        let record = records
            .into_iter()
            .next_back()
            .ok_or_else(|| ApiError::internal("nothing was stored"))?;
        self.server.written(self.resource, self.namespace, record.key.name());
        Ok(Outcome {
            object: served(self.resource, &record)?,
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
        Special::Pod => crate::object::meta_value(object, "deletionGracePeriodSeconds")
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
