//! Requests to any API server that no cache answers and no reconcile journals: to workload clusters, and for content that is not
//! an object of a controller. The functions take texts and values, not types, so that sending and reading are compiled once.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_api::codec::Codec;

use crate::object::{Object, ObjectKey, gvk_of, key_of};
use crate::reader::{METADATA, collection_url, form};
use crate::request::{RequestError, send};
use crate::writer::Target;

/// Query parameters of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListQuery<'a> {
    /// Only objects of this namespace; all objects when it is empty.
    pub namespace: &'a str,
    /// Label selector.
    pub labels: &'a str,
    /// Field selector.
    pub fields: &'a str,
    /// Only the objects' metadata. Their contents never leave the server.
    pub metadata_only: bool,
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// JSON merge patch.
    Merge,
    /// Strategic merge patch: lists are merged by their keys. The server accepts it for Kubernetes' own kinds only.
    Strategic,
}

/// A client for requests to an API server, without a cache. Cheap to clone.
#[derive(Clone)]
pub struct ApiClient(kube::Client);

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiClient")
    }
}

impl From<&kube::Client> for ApiClient {
    fn from(client: &kube::Client) -> Self {
        Self(client.clone())
    }
}

#[derive(Deserialize)]
struct List<'a> {
    // A server whose list has no items may say `null`.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

impl ApiClient {
    /// Reads an object from the server; `None` when no object has this name.
    pub async fn get<K: Object>(&self, key: &ObjectKey) -> Result<Option<K>, RequestError> {
        let url = Target::of::<K>(key.clone()).url(None);
        match self.ask(Method::GET, url, "application/json", Vec::new()).await {
            Ok(json) => Ok(Some(K::decode(&json)?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects that a query selects.
    pub async fn list<K: Object>(&self, query: ListQuery<'_>) -> Result<Vec<K>, RequestError> {
        self.list_as::<K, K>(query).await
    }

    /// [`Self::list`], decoded as `T`.
    pub async fn list_as<K: Object, T: Codec>(&self, query: ListQuery<'_>) -> Result<Vec<T>, RequestError> {
        let url = &collection_url(&gvk_of::<K>(), &K::plural(&()), query.namespace);
        let accept = if query.metadata_only {
            METADATA
        } else {
            "application/json"
        };
        let chosen = [("labelSelector", query.labels), ("fieldSelector", query.fields)];
        let json = self.ask(Method::GET, asking(url, &chosen), accept, Vec::new()).await?;
        let list: List<'_> = serde_json::from_slice(&json)?;
        let items = list
            .items
            .unwrap_or_default()
            .into_iter()
            .map(|item| T::decode(item.get().as_bytes()));
        Ok(items.collect::<Result<_, _>>()?)
    }

    /// Reads the object at a URL as JSON; `None` when it does not exist.
    pub async fn get_value(&self, url: &str) -> Result<Option<Value>, RequestError> {
        match self
            .ask(Method::GET, url.to_owned(), "application/json", Vec::new())
            .await
        {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Server-side apply with force at a URL. Returns the stored object.
    pub async fn apply_value(&self, url: &str, manager: &str, object: &Value) -> Result<Value, RequestError> {
        let url = asking(url, &[("fieldManager", manager), ("force", "true")]);
        let (type_, body) = ("application/apply-patch+yaml", serde_json::to_vec(object)?);
        Ok(serde_json::from_slice(
            &self.ask(Method::PATCH, url, type_, body).await?,
        )?)
    }

    /// Replaces the object at a URL. Returns the stored object.
    pub async fn replace_value(&self, url: &str, object: &Value) -> Result<Value, RequestError> {
        let body = serde_json::to_vec(object)?;
        let answer = self.ask(Method::PUT, url.to_owned(), "application/json", body).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Posts a document, such as an access review, and returns the server's answer.
    pub async fn post_value(&self, url: &str, document: &Value) -> Result<Value, RequestError> {
        let body = serde_json::to_vec(document)?;
        let answer = self.ask(Method::POST, url.to_owned(), "application/json", body).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Creates an object.
    pub async fn create<K: Object>(&self, manager: &str, object: &K) -> Result<(), RequestError> {
        let key = key_of(object.metadata());
        let url = collection_url(&gvk_of::<K>(), &K::plural(&()), &key.namespace);
        let url = asking(&url, &[("fieldManager", manager)]);
        self.ask(Method::POST, url, "application/json", object.encode()?)
            .await
            .map(drop)
    }

    /// Replaces an object; its resourceVersion, if it has one, must be the stored one.
    pub async fn replace<K: Object>(&self, object: &K) -> Result<(), RequestError> {
        let url = Target::of::<K>(key_of(object.metadata())).url(None);
        self.ask(Method::PUT, url, "application/json", object.encode()?)
            .await
            .map(drop)
    }

    /// Patches an object.
    pub async fn patch<K: Object>(
        &self,
        manager: &str,
        key: &ObjectKey,
        kind: PatchKind,
        patch: &Value,
    ) -> Result<(), RequestError> {
        let type_ = match kind {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Strategic => "application/strategic-merge-patch+json",
        };
        let url = Target::of::<K>(key.clone()).url(None);
        let url = asking(&url, &[("fieldManager", manager)]);
        self.ask(Method::PATCH, url, type_, serde_json::to_vec(patch)?)
            .await
            .map(drop)
    }

    /// Deletes an object. With a uid, only the object with this uid.
    pub async fn delete<K: Object>(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), RequestError> {
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        if let Some(uid) = uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        let url = Target::of::<K>(key.clone()).url(None);
        self.ask(Method::DELETE, url, "application/json", serde_json::to_vec(&options)?)
            .await
            .map(drop)
    }

    /// Deletes the object at a path.
    pub async fn delete_value(&self, url: &str) -> Result<(), RequestError> {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        let (url, options) = (url.to_owned(), serde_json::to_vec(&options)?);
        self.ask(Method::DELETE, url, "application/json", options)
            .await
            .map(drop)
    }

    /// Evicts a Pod, with another grace period than its own if one is given, in seconds. The server refuses if a disruption budget
    /// does not allow it.
    pub async fn evict(&self, pod: &ObjectKey, grace_period: Option<u32>) -> Result<(), RequestError> {
        let mut eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "namespace": pod.namespace, "name": pod.name },
        });
        if let Some(seconds) = grace_period {
            eviction["deleteOptions"] = json!({ "gracePeriodSeconds": seconds });
        }
        let url = format!("/api/v1/namespaces/{}/pods/{}/eviction", pod.namespace, pod.name);
        self.ask(Method::POST, url, "application/json", serde_json::to_vec(&eviction)?)
            .await
            .map(drop)
    }

    /// Sends a request. `media_type` is the type of the answer for a read, and of the body for a write. The future is boxed so
    /// that it is compiled once.
    fn ask<'a>(
        &'a self,
        method: Method,
        url: String,
        media_type: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Bytes, RequestError>> {
        Box::pin(async move {
            let reads = method == Method::GET;
            let request = Request::builder()
                .method(method)
                .uri(&url)
                .header(
                    header::CONTENT_TYPE,
                    if reads { "application/json" } else { media_type },
                )
                .header(header::ACCEPT, if reads { media_type } else { "application/json" })
                .body(body)
                .map_err(|e| RequestError::Transport(e.to_string()))?;
            send(&self.0, request).await
        })
    }
}

/// A URL with the parameters that are not empty.
fn asking(url: &str, parameters: &[(&str, &str)]) -> String {
    match form(parameters).strip_suffix('&') {
        Some(query) => format!("{url}?{query}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_that_are_set_are_sent() {
        let check = |parameters: &[(&str, &str)], expect: &str| assert_eq!(asking("/api", parameters), expect);
        check(&[("fieldManager", "")], "/api");
        check(
            &[("labelSelector", "a=b"), ("fieldSelector", "")],
            "/api?labelSelector=a%3Db",
        );
        check(&[("a", "1"), ("b", "2")], "/api?a=1&b=2");
    }
}
