//! Reads that no shared cache answers: of kinds that are known at run time only, built-in and cluster-scoped ones included, and
//! of objects that are too large or too many to cache. The server's discovery gives the kinds; it is read once per group and
//! version.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_api::codec::Codec;

use crate::cache::Cache;
use crate::cx::Cx;
use crate::object::{Gvk, Object, ObjectKey, gvk_of};
use crate::request::{RequestError, send};
use crate::seen::Seen;

/// Objects per page of a list.
const PAGE: u32 = 250;
/// The media type that requests only the metadata of objects.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The name in URLs.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether its objects can be listed, watched and deleted.
    pub managed: bool,
}

/// The kinds of a group and version, by name.
type Kinds = HashMap<String, Resource>;

/// The discovery answers of the server.
#[derive(Default)]
pub(crate) struct Discovery {
    groups: Mutex<HashMap<(String, String), Arc<Kinds>>>,
}

impl Discovery {
    /// The resource of a kind. Asks the server if earlier answers do not have the kind.
    pub(crate) fn find<'a>(&'a self, client: &'a kube::Client, gvk: &'a Gvk) -> BoxFuture<'a, Seen<Resource>> {
        self.find_or_ask(client, gvk).boxed()
    }

    async fn find_or_ask(&self, client: &kube::Client, gvk: &Gvk) -> Seen<Resource> {
        let group = (gvk.group.clone(), gvk.version.clone());
        let known = self.groups.lock().get(&group).cloned();
        if let Some(resource) = known.and_then(|kinds| kinds.get(&gvk.kind).cloned()) {
            return Seen::Found(resource);
        }
        let kinds = match get(client, &group_url(gvk), "application/json").await {
            Seen::Found(list) => Arc::new(kinds_of(&list)),
            Seen::NotFound => return Seen::NotFound,
            Seen::Failed(why) => return Seen::Failed(why),
        };
        let found = kinds.get(&gvk.kind).cloned();
        self.groups.lock().insert(group, kinds);
        found.into()
    }
}

fn group_url(gvk: &Gvk) -> String {
    if gvk.group.is_empty() {
        format!("/api/{}", gvk.version)
    } else {
        format!("/apis/{}/{}", gvk.group, gvk.version)
    }
}

/// The kinds of an `APIResourceList`, without subresources.
fn kinds_of(list: &Value) -> Kinds {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let resources = list["resources"].as_array().into_iter().flatten();
    let own = resources.filter(|r| !r["name"].as_str().unwrap_or("/").contains('/'));
    own.map(|r| {
        let has = |verb: &str| {
            r["verbs"]
                .as_array()
                .is_some_and(|verbs| verbs.iter().any(|v| v == verb))
        };
        let resource = Resource {
            plural: text(&r["name"]),
            namespaced: r["namespaced"].as_bool().unwrap_or(false),
            managed: has("list") && has("delete"),
        };
        (text(&r["kind"]), resource)
    })
    .collect()
}

/// Why something could not be read.
struct Unread {
    /// The HTTP status code of a refusal; 0 without one.
    code: u16,
    why: String,
}

impl Unread {
    /// A failure that is no refusal.
    fn new(why: String) -> Self {
        Self { code: 0, why }
    }
}

fn seen<T>(read: Result<T, Unread>) -> Seen<T> {
    match read {
        Ok(value) => Seen::Found(value),
        Err(unread) if unread.code == 404 => Seen::NotFound,
        Err(unread) => Seen::Failed(unread.why),
    }
}

/// Reads a JSON value.
async fn get(client: &kube::Client, url: &str, accept: &str) -> Seen<Value> {
    seen(get_value(client, url, accept).await)
}

async fn get_value(client: &kube::Client, url: &str, accept: &str) -> Result<Value, Unread> {
    let json = get_text(client, url, accept).await?;
    // An unreadable answer is a failure, not an empty list.
    serde_json::from_slice(&json).map_err(|error| Unread::new(format!("cannot decode the answer of {url}: {error}")))
}

/// Reads a text. Boxed, so that it is compiled once.
fn get_text<'a>(client: &'a kube::Client, url: &'a str, accept: &'a str) -> BoxFuture<'a, Result<Bytes, Unread>> {
    Box::pin(async move {
        let request = Request::get(url).header(header::ACCEPT, accept).body(Vec::new());
        let request = request.map_err(|error| Unread::new(error.to_string()))?;
        send(client, request).await.map_err(|error: RequestError| Unread {
            code: error.code(),
            why: format!("cannot read {url}: {error}"),
        })
    })
}

/// A page of a list.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    // A server whose list has no items may say `null`.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
}

impl Cx {
    /// The resource of a kind; not found if the server does not serve it.
    pub async fn resource(&self, gvk: &Gvk) -> Seen<Resource> {
        self.ports.discovery.find(&self.ports.client, gvk).await
    }

    /// Reads an object from the server; not found also if its kind is not served.
    pub async fn read_value(&self, gvk: &Gvk, key: &ObjectKey) -> Seen<Value> {
        let resource = match self.resource(gvk).await {
            Seen::Found(resource) => resource,
            Seen::NotFound => return Seen::NotFound,
            Seen::Failed(why) => return Seen::Failed(why),
        };
        let namespace = if resource.namespaced {
            key.namespace.as_str()
        } else {
            ""
        };
        let url = collection_url(gvk, &resource.plural, namespace);
        get(&self.ports.client, &format!("{url}/{}", key.name), "application/json").await
    }

    /// Reads an object of a kind known at compile time from the server, without caching the kind.
    pub async fn read<K: Object>(&self, key: &ObjectKey) -> Seen<K> {
        let gvk = gvk_of::<K>();
        let url = collection_url(&gvk, &K::plural(&()), &key.namespace);
        let found = get_text(&self.ports.client, &format!("{url}/{}", key.name), "application/json").await;
        match seen(found).map(|json| K::decode(&json)) {
            Seen::Found(Ok(object)) => Seen::Found(object),
            Seen::Found(Err(error)) => Seen::Failed(error.to_string()),
            Seen::NotFound => Seen::NotFound,
            Seen::Failed(why) => Seen::Failed(why),
        }
    }

    /// Lists the objects that a label selector selects, from the server. An empty namespace means all namespaces.
    pub async fn list<K: Object>(&self, namespace: &str, labels: &str) -> Seen<Vec<K>> {
        let url = collection_url(&gvk_of::<K>(), &K::plural(&()), namespace);
        let mut all = Vec::new();
        let mut take = |item: &[u8]| K::decode(item).map(|object| all.push(object));
        let read = self.each(&url, labels, "application/json", u32::MAX, &mut take).await;
        seen(read).map(|()| all)
    }

    /// The metadata of the objects of a kind, in all namespaces, that a label selector selects, up to `limit`; not found if the
    /// server does not serve the kind.
    pub async fn metadata_of(&self, gvk: &Gvk, labels: &str, limit: u32) -> Seen<Vec<ObjectMeta>> {
        match self.resource(gvk).await {
            Seen::Found(resource) => seen(self.metadata(gvk, &resource, labels, limit).await),
            Seen::NotFound => Seen::NotFound,
            Seen::Failed(why) => Seen::Failed(why),
        }
    }

    /// As [`Cx::metadata_of`] without a limit; not found also if this process may not list the kind.
    pub async fn listable_metadata_of(&self, gvk: &Gvk, labels: &str) -> Seen<Vec<ObjectMeta>> {
        match self.resource(gvk).await {
            Seen::Found(resource) => match self.metadata(gvk, &resource, labels, u32::MAX).await {
                Err(unread) if unread.code == 403 => Seen::NotFound,
                read => seen(read),
            },
            Seen::NotFound => Seen::NotFound,
            Seen::Failed(why) => Seen::Failed(why),
        }
    }

    async fn metadata(
        &self,
        gvk: &Gvk,
        resource: &Resource,
        labels: &str,
        limit: u32,
    ) -> Result<Vec<ObjectMeta>, Unread> {
        let url = collection_url(gvk, &resource.plural, "");
        let mut all = Vec::new();
        let mut take = |item: &[u8]| serde_json::from_slice::<Item>(item).map(|item| all.push(item.metadata));
        self.each(&url, labels, METADATA, limit, &mut take).await?;
        Ok(all)
    }

    /// Calls `f` for each object of a list.
    fn each<'a>(
        &'a self,
        url: &'a str,
        labels: &'a str,
        accept: &'a str,
        most: u32,
        take: &'a mut (dyn FnMut(&[u8]) -> serde_json::Result<()> + Send),
    ) -> BoxFuture<'a, Result<(), Unread>> {
        Box::pin(async move {
            let (mut left, mut next) = (most, String::new());
            loop {
                let page_url = page_url(url, labels, left.min(PAGE), &next);
                let page = get_text(&self.ports.client, &page_url, accept).await?;
                let undecodable = |error| Unread::new(format!("cannot decode an object of {url}: {error}"));
                let page: Page<'_> = serde_json::from_slice(&page).map_err(undecodable)?;
                for item in page.items.unwrap_or_default() {
                    take(item.get().as_bytes()).map_err(undecodable)?;
                    left = left.saturating_sub(1);
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) if left > 0 => next = token,
                    _ => return Ok(()),
                }
            }
        })
    }

    /// Every kind that the server serves and whose objects can be listed and deleted, in its preferred version. Without the groups
    /// of other API servers that do not answer, and those that this process may not discover.
    pub async fn served(&self) -> Seen<Vec<Gvk>> {
        let client = &self.ports.client;
        let groups = match get(client, "/apis", "application/json").await {
            Seen::Found(groups) => groups,
            other => return other.map(|_| Vec::new()),
        };
        let named = groups["groups"].as_array().into_iter().flatten().filter_map(|group| {
            let version = group["preferredVersion"]["version"].as_str()?;
            Some((group["name"].as_str()?.to_owned(), version.to_owned()))
        });
        let mut all = Vec::new();
        for (group, version) in std::iter::once((String::new(), "v1".to_owned())).chain(named) {
            let gvk = |kind: &str| Gvk {
                group: group.clone(),
                version: version.clone(),
                kind: kind.to_owned(),
            };
            let list = match get_value(client, &group_url(&gvk("")), "application/json").await {
                Ok(list) => list,
                Err(unread) if is_elsewhere(unread.code) => continue,
                Err(unread) => return Seen::Failed(unread.why),
            };
            let kinds = kinds_of(&list);
            let managed = kinds.iter().filter(|(_, resource)| resource.managed);
            all.extend(managed.map(|(kind, _)| gvk(kind)));
        }
        all.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
        Seen::Found(all)
    }

    /// A cache of some objects of a kind, decoded as `T`. One watch per selection and process, started with the first call; it
    /// ends with the last copy of the cache. This does not wait for the first list: until then the cache is empty. If the kind is
    /// no longer served, the cache stays as it is. Not found if the server does not serve the kind.
    pub async fn selected<T: Codec>(&self, gvk: &Gvk, selection: &Selection) -> Seen<Cache<T>> {
        let resource = self.resource(gvk).await;
        resource.map(|resource| {
            let namespace = if resource.namespaced {
                selection.namespace.as_str()
            } else {
                ""
            };
            let url = collection_url(gvk, &resource.plural, namespace);
            self.ports.caches.selected::<T>(gvk, url, selection)
        })
    }
}

/// Whether a refused discovery of a group does not concern the other groups: the group is gone, this process may not see it, or
/// the API server that serves it on behalf of this one does not answer (503).
fn is_elsewhere(code: u16) -> bool {
    matches!(code, 403 | 404 | 503)
}

/// Selects the objects of a kind that a cache has. Empty fields do not limit it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selection {
    /// Only objects of this namespace.
    pub namespace: String,
    /// Label selector.
    pub labels: String,
    /// Only objects of this name.
    pub name: String,
    /// Field selector, beside the name.
    pub fields: String,
    /// The server sends only the metadata of the objects; they are decoded from a `PartialObjectMetadata`.
    pub metadata_only: bool,
}

impl Selection {
    /// Selects the metadata of all objects, or of those that a field selector selects.
    pub fn metadata(fields: impl Into<String>) -> Self {
        Self {
            fields: fields.into(),
            metadata_only: true,
            ..Self::default()
        }
    }

    /// Selects objects by labels, in all namespaces.
    pub fn labelled(labels: impl Into<String>) -> Self {
        Self {
            labels: labels.into(),
            ..Self::default()
        }
    }

    /// Selects one object.
    pub fn one(key: &ObjectKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..Self::default()
        }
    }
}

pub(crate) fn collection_url(gvk: &Gvk, plural: &str, namespace: &str) -> String {
    let group = group_url(gvk);
    if namespace.is_empty() {
        format!("{group}/{plural}")
    } else {
        format!("{group}/namespaces/{namespace}/{plural}")
    }
}

fn page_url(url: &str, labels: &str, limit: u32, next: &str) -> String {
    let query = form(&[("labelSelector", labels), ("continue", next)]);
    format!("{url}?{query}limit={limit}")
}

/// The parameters that are set, percent-encoded, each followed by `&`.
pub(crate) fn form(parameters: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(name);
        out.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out.push('&');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discovery_tells_kinds_and_not_their_subresources() {
        let list = json!({"resources": [
            {"name": "services", "kind": "Service", "namespaced": true, "verbs": ["list", "delete"]},
            {"name": "services/status", "kind": "Service", "namespaced": true, "verbs": ["get"]},
            {"name": "bindings", "kind": "Binding", "namespaced": true, "verbs": ["create"]},
        ]});
        let kinds = kinds_of(&list);
        assert_eq!(kinds.len(), 2);
        assert_eq!(
            (kinds["Service"].plural.as_str(), kinds["Service"].managed),
            ("services", true)
        );
        assert!(!kinds["Binding"].managed);
    }

    #[test]
    fn a_list_without_items_is_read() {
        for text in [r#"{"items":null}"#, r#"{"items":[]}"#, "{}"] {
            let page: Page<'_> = serde_json::from_str(text).unwrap();
            assert!(page.items.unwrap_or_default().is_empty(), "{text}");
        }
    }

    #[test]
    fn selectors_are_encoded() {
        let url = page_url("/api/v1/secrets", "a/b=c,d!=e", 5, "");
        assert_eq!(url, "/api/v1/secrets?labelSelector=a%2Fb%3Dc%2Cd%21%3De&limit=5");
    }
}
