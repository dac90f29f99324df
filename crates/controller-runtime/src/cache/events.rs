//! The events of one watch, as a server sends them: a type and an object. The store of the watch decodes the object.

use std::borrow::Cow;

use futures::StreamExt;
use http_body_util::{BodyDataStream, BodyExt};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use windlass_api::labels::CLUSTER_NAME;
use windlass_meta::beginning;

use super::documents::{Documents, LONGEST};
use super::informer::number;
use super::store::{AnyObject, Store};
use crate::error::with_causes;
use crate::object::ObjectKey;
use crate::request::{RequestError, Status, TEXT, begin};
use crate::transport::{Bounds, Share, estimate};

/// The annotation of the bookmark that ends a streamed list.
const LIST_ENDS: &str = "k8s.io/initial-events-end";

/// An event of a watch.
pub(super) enum Event {
    /// An object was added or changed.
    Set(AnyObject),
    /// An object was deleted.
    Deleted(Name),
    /// The watch has sent everything up to this version.
    Bookmark { version: Option<u64>, ends_list: bool },
    /// The watch ends with an error; `expired` when its version is too old.
    Error { expired: bool, why: String },
    /// An object was added or changed, and this program cannot decode it.
    Undecodable(Name, serde_json::Error),
    /// An event of an object that this program cannot decode, not even its name.
    Unreadable(serde_json::Error),
    /// What is no event. What follows it cannot be trusted to be one.
    Garbled(serde_json::Error),
}

/// The object of an event, and its version. It is read also of objects that cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) version: Option<u64>,
    /// The name of its cluster, by label.
    pub(super) cluster: Option<String>,
}

impl Name {
    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let cluster = self.cluster.as_ref().map_or(0, String::len);
        self.key.namespace.len() + self.key.name.len() + self.uid.len() + cluster
    }
}

/// Why a watch ended.
pub(super) enum Why {
    /// The server ended the watch.
    Closed,
    /// The connection failed.
    Failed(String),
}

/// An open watch.
pub(super) struct Events {
    body: BodyDataStream<Body>,
    documents: Documents,
    /// The bounds of a server that is not trusted, and what they count of the bytes that are not decoded.
    bounds: Option<(Bounds, Share)>,
    /// When the first byte of an event was received that is not complete yet.
    began: Option<Instant>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    // A server may write any letter as an escape.
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The fields of every object that are read.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    labels: Option<std::collections::BTreeMap<String, String>>,
}

/// The fields of a bookmark that are read.
#[derive(Deserialize)]
struct Mark {
    metadata: MarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl Events {
    /// Sends the request of a watch.
    pub(super) async fn begin(client: &kube::Client, request: http::Request<Vec<u8>>) -> Result<Self, RequestError> {
        let answer = begin(client, request).await?;
        let bounds = answer.extensions().get::<Bounds>().cloned();
        let bounds = bounds.map(|bounds| {
            let share = bounds.share();
            (bounds, share)
        });
        Ok(Self {
            bounds,
            began: None,
            body: answer.into_body().into_data_stream(),
            documents: Documents::default(),
        })
    }

    /// The bounds of the server, if it has any.
    pub(super) fn bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref().map(|(bounds, _)| bounds)
    }

    /// Whether an event has begun and is not complete.
    pub(super) fn is_inside(&self) -> bool {
        self.documents.held() > 0
    }

    /// When the event that is not complete yet has to be, and the bounds that say so.
    fn deadline(&mut self) -> Option<(Instant, Bounds)> {
        let (bounds, _) = self.bounds.as_ref()?;
        if self.documents.held() == 0 {
            self.began = None;
            return None;
        }
        let began = *self.began.get_or_insert_with(Instant::now);
        Some((began + bounds.limits().event, bounds.clone()))
    }

    /// The next event. `store` reads its object.
    pub(super) async fn next(&mut self, store: &Store) -> Result<Event, Why> {
        loop {
            if let Some(document) = self.documents.next() {
                self.began = None;
                if let Some((bounds, _)) = &self.bounds
                    && let Err(error) = bounds.decodes("an event", estimate(&document))
                {
                    return Err(Why::Failed(error.to_string()));
                }
                return Ok(event(&document, store));
            }
            if self.documents.is_too_long() {
                if let Some((bounds, _)) = &self.bounds {
                    bounds.exceeded(format!(
                        "the API server sent an event of more than {} MiB",
                        LONGEST >> 20
                    ));
                }
                return Err(Why::Failed(format!("an event is larger than {} MiB", LONGEST >> 20)));
            }
            if let Some((_, share)) = &mut self.bounds
                && let Err(error) = share.set(self.documents.held())
            {
                return Err(Why::Failed(error.to_string()));
            }
            let received = match self.deadline() {
                None => self.body.next().await,
                Some((deadline, bounds)) => match tokio::time::timeout_at(deadline, self.body.next()).await {
                    Ok(received) if Instant::now() < deadline => received,
                    _ => {
                        let limit = bounds.limits().event.as_secs();
                        let error =
                            bounds.exceeded(format!("the API server took more than {limit} s to send an event"));
                        return Err(Why::Failed(error.to_string()));
                    }
                },
            };
            match received {
                Some(Ok(bytes)) => self.documents.push(&bytes),
                Some(Err(error)) if is_end(&error) => return Err(Why::Closed),
                Some(Err(error)) => return Err(Why::Failed(with_causes(&error))),
                None => return Err(Why::Closed),
            }
        }
    }
}

/// Whether a connection ended in the middle of an answer, as connections of watches do when their time is over.
fn is_end(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if kind == Some(std::io::ErrorKind::UnexpectedEof) {
            return true;
        }
        next = error.source();
    }
    error.to_string().contains("unexpected EOF during chunk")
}

fn event(document: &[u8], store: &Store) -> Event {
    match serde_json::from_slice::<Frame<'_>>(document) {
        Ok(frame) => read(&frame, store).unwrap_or_else(Event::Unreadable),
        // Some servers answer with an error instead of an event that contains one.
        Err(error) => serde_json::from_slice::<Status>(document)
            .ok()
            .filter(|status| status.code != 0)
            .map_or(Event::Garbled(error), refusal),
    }
}

fn read(frame: &Frame<'_>, store: &Store) -> serde_json::Result<Event> {
    let object = frame.object.get().as_bytes();
    Ok(match &*frame.r#type {
        "ADDED" | "MODIFIED" => match store.decode(object) {
            Ok(object) => Event::Set(object),
            Err(error) => match name(object) {
                Ok(name) => Event::Undecodable(name, error),
                Err(_) => Event::Unreadable(error),
            },
        },
        "DELETED" => Event::Deleted(name(object)?),
        "BOOKMARK" => {
            let meta = serde_json::from_slice::<Mark>(object)?.metadata;
            Event::Bookmark {
                version: number(Some(&meta.resource_version)),
                ends_list: meta.annotations.contains_key(LIST_ENDS),
            }
        }
        "ERROR" => refusal(serde_json::from_slice(object)?),
        other => return Err(serde::de::Error::custom(format!("unknown type of event: {other:?}"))),
    })
}

/// Reads the name of an object, also of one that cannot be decoded.
pub(super) fn name(object: &[u8]) -> serde_json::Result<Name> {
    let meta = serde_json::from_slice::<Head>(object)?.metadata;
    Ok(Name {
        key: ObjectKey::new(meta.namespace, meta.name),
        uid: meta.uid,
        version: number(Some(&meta.resource_version)),
        cluster: meta.labels.and_then(|mut labels| labels.remove(CLUSTER_NAME)),
    })
}

fn refusal(status: Status) -> Event {
    Event::Error {
        expired: status.code == 410 || status.reason == "Expired" || status.reason == "Gone",
        // The server chooses it.
        why: format!(
            "{} ({})",
            beginning(&status.message.unwrap_or_default(), TEXT),
            beginning(&status.reason, TEXT)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::gvk_from;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn events_are_read_by_their_type() {
        let store = Store::of::<ConfigMap>(gvk_from("v1", "ConfigMap"));
        let read = |text: &str| match event(text.as_bytes(), &store) {
            Event::Set(object) => format!("set {}", object.metadata().name.as_deref().unwrap_or_default()),
            Event::Deleted(name) => format!("deleted {} {:?}", name.key, name.version),
            Event::Undecodable(name, _) => format!("undecodable {:?}", name.version),
            Event::Bookmark { version, ends_list } => format!("bookmark {version:?} {ends_list}"),
            Event::Error { expired, why } => format!("error {expired} {why}"),
            Event::Unreadable(_) => "unreadable".to_owned(),
            Event::Garbled(_) => "garbled".to_owned(),
        };
        let check = |text: &str, expect: &str| assert_eq!(read(text), expect, "{text}");
        check(r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#, "set a");
        check(r#"{"type": "MODIFIED", "object": {"metadata":{"name":"a"}}}"#, "set a");
        check(
            r#"{"object":{"metadata":{"name":"a"}},"type":"DELETED"}"#,
            "deleted a None",
        );
        check(
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"data":7}}"#,
            "undecodable Some(7)",
        );
        check(
            r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"8"},"data":7}}"#,
            "deleted n/a Some(8)",
        );
        check(
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#,
            "bookmark Some(7) false",
        );
        check(
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "bookmark Some(7) true",
        );
        check(
            r#"{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}"#,
            "error true too old (Expired)",
        );
        check(
            r#"{"kind":"Status","code":500,"reason":"InternalError","message":"no"}"#,
            "error false no (InternalError)",
        );
        let long = format!(
            r#"{{"kind":"Status","reason":"R","message":"{}"}}"#,
            "x".repeat(100_000)
        );
        assert!(read(&long).len() < 3000, "it is logged");
        check(r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#, "unreadable");
        check(r#"{"type":"OTHER","object":{}}"#, "unreadable");
        check(
            r#"{"type":"\u0041DDED","object":{"metadata":{"name":"\u0061"}}}"#,
            "set a",
        );
        check("no JSON", "garbled");
        check(r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#, "garbled");
        check("[true]", "garbled");
    }
}
