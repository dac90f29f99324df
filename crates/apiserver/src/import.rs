//! Objects that are put into the store as they are, without admission: copies of what another server has.
//!
//! They keep uid, owners, status and managed fields. Only their resourceVersions are those of this server.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use windlass_objects::metadata::meta;
use windlass_store::{Change, Expect, Key, Write};

use crate::error::ApiError;
use crate::objects::encoding::draft;
use crate::objects::resource::Resource;
use crate::server::ApiServer;

impl ApiServer {
    /// Stores an object as it is, in place of one of the same name. Gives its resourceVersion. Fails if the server does not serve its kind.
    pub fn import(&self, object: Value) -> BoxFuture<'_, Result<u64, ApiError>> {
        async move {
            let resource = self.resource_of(&object)?;
            let key = key_of(&resource, &object);
            let mut object = object;
            object["apiVersion"] = resource.storage_api_version.as_str().into();
            self.commit(&resource, key, Change::Put(draft(&object))).await
        }
        .boxed()
    }

    /// Removes an object, whatever its finalizers are. Gives the resourceVersion of the removal; none if there is no such object.
    pub fn forget<'a>(&'a self, object: &'a Value) -> BoxFuture<'a, Result<Option<u64>, ApiError>> {
        async move {
            let resource = self.resource_of(object)?;
            let key = key_of(&resource, object);
            if self.store().get(&key.resource, key.namespace(), key.name()).is_none() {
                return Ok(None);
            }
            self.commit(&resource, key, Change::Delete(None)).await.map(Some)
        }
        .boxed()
    }

    /// Whether the kind of an object is served.
    pub fn serves(&self, object: &Value) -> bool {
        self.resource_of(object).is_ok()
    }

    fn resource_of(&self, object: &Value) -> Result<Arc<Resource>, ApiError> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let registry = self.inner.registry();
        let mut all = registry.everything();
        let found = all.find(|one| one.api_version() == api_version && one.kind == kind);
        found.cloned().ok_or_else(|| {
            ApiError::new(
                404,
                "NotFound",
                format!("the server does not serve {kind} in version {api_version}"),
            )
        })
    }

    async fn commit(&self, resource: &Resource, key: Key, change: Change) -> Result<u64, ApiError> {
        let (namespace, name) = (key.namespace().to_owned(), key.name().to_owned());
        let stored = self.store().get(&key.resource, &namespace, &name);
        let expect = stored.map_or(Expect::Absent, |record| Expect::Revision(record.revision));
        let write = Write { key, expect, change };
        let records = self.store().commit(vec![write]).await.map_err(ApiError::internal)?;
        self.inner.written(resource, &namespace, &name);
        Ok(records.first().map_or(0, |record| record.revision))
    }
}

fn key_of(resource: &Resource, object: &Value) -> Key {
    let namespace = if resource.namespaced {
        meta(object, "namespace")
    } else {
        ""
    };
    Key::new(&resource.storage, namespace, meta(object, "name"))
}
