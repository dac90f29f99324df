//! A write in progress: the resource, the user and the options of a request, and the outcome.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use windlass_store::{CommitError, Record, StorageError, Write};

use crate::error::ApiError;
use crate::http::heavy;
use crate::objects::convert::served;
use crate::objects::resource::Resource;
use crate::state::Inner;
use crate::verbs::options::WriteOptions;
use windlass_builtin_kinds::Special;
use windlass_rbac::user::UserInfo;

/// A write to one resource.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) namespace: &'a str,
    pub(crate) user: &'a UserInfo,
    pub(crate) options: &'a WriteOptions,
    /// The field manager of the write.
    pub(crate) manager: String,
}

impl Call<'_> {
    /// Commits writes about an object of the kind, and updates the server's own state. Once this has begun, both happen, whether the client
    /// waits for the answer or not.
    pub(crate) async fn commit(&self, name: &str, writes: Vec<Write>) -> Result<Vec<Arc<Record>>, CommitError> {
        heavy::begin_to_write();
        // A store in memory commits at once.
        let may_be_cut_off = self.server.store.is_durable() && Inner::follows(self.resource);
        let Some(server) = may_be_cut_off.then(|| self.server.this.upgrade()).flatten() else {
            let committed = self.server.store.commit(writes).await?;
            self.server.written(self.resource, self.namespace, name);
            if self.resource.special == Special::Service {
                // The writer of a large service decodes it, not the next one who writes a service.
                drop(self.server.services.current(&self.server.store, &self.resource.storage));
            }
            return Ok(committed);
        };
        let (resource, namespace, name) = (Arc::clone(self.resource), self.namespace.to_owned(), name.to_owned());
        let commit = tokio::spawn(async move {
            let committed = server.store.commit(writes).await?;
            server.written(&resource, &namespace, &name);
            Ok(committed)
        });
        commit.await.unwrap_or_else(|ended| match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is ending.
            Err(_) => Err(StorageError::closed().into()),
        })
    }
}

/// The outcome of a write.
pub(crate) struct Outcome {
    /// The object in the served version, if it is not the stored one.
    pub(crate) object: Option<Value>,
    /// The stored object; `None` for a dry run, and for a deleted object.
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Outcome {
    /// The current object in the served version. This decodes the stored object; responses copy its bytes instead.
    pub(crate) fn object(&self, resource: &Resource) -> Result<Cow<'_, Value>, ApiError> {
        match (&self.object, &self.record) {
            (Some(object), _) => Ok(Cow::Borrowed(object)),
            (None, Some(record)) => served(resource, record).map(Cow::Owned),
            (None, None) => Err(ApiError::internal("a write led to nothing")),
        }
    }
}

/// Whether something other than finalizers keeps a deleted object.
pub(crate) fn holds(resource: &Resource, object: &Value) -> bool {
    match resource.special {
        Special::Namespace => object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty()),
        Special::Pod => windlass_objects::metadata::meta_value(object, "deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|s| s > 0),
        _ => false,
    }
}
