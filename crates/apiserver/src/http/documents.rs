//! Documents about the served resources: discovery and OpenAPI. Each is built, hashed, encoded and compressed once, and shared by all
//! requests, until a definition changes.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::crds::registry::Custom;
use crate::http::body::{self, ApiBody};
use crate::http::heavy::at_once;
use crate::http::response::compressed;
use crate::state::Inner;

/// The documents of the current definitions.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The changes of the registry and the version of the server that the documents are about.
    of: (u64, String),
    documents: HashMap<String, Slot>,
}

/// A document that the first request for it builds, while others wait.
type Slot = Arc<OnceCell<Option<Arc<Document>>>>;

/// An encoded document.
#[derive(Debug)]
pub(crate) struct Document {
    bytes: Bytes,
    etag: HeaderValue,
    small: OnceCell<Bytes>,
    /// Whether its encoding may be another one, such as YAML or indented JSON.
    pub(crate) is_negotiated: bool,
}

impl Document {
    /// Built from its encoding.
    fn new(bytes: Vec<u8>, is_negotiated: bool) -> Option<Self> {
        let etag = body::etag(&Sha256::digest(&bytes))?;
        Some(Self {
            bytes: bytes.into(),
            etag,
            small: OnceCell::new(),
            is_negotiated,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The response with this document.
    pub(crate) fn response(self: &Arc<Self>, media_type: &'static str) -> Response<ApiBody> {
        let mut response = body::with_type(200, media_type, self.bytes.clone());
        response.extensions_mut().insert(Arc::clone(self));
        response
    }

    /// [`Document::response`] with an `ETag`, and without the document for clients that have it.
    pub(crate) fn tagged(self: &Arc<Self>, media_type: &'static str, asked: &HeaderMap) -> Response<ApiBody> {
        let mut response = self.response(media_type);
        let is_it = |tag: &str| tag.trim().trim_start_matches("W/").as_bytes() == self.etag.as_bytes();
        let mut known = asked.get_all(header::IF_NONE_MATCH).iter();
        if known.any(|tags| tags.to_str().is_ok_and(|tags| tags.split(',').any(is_it))) {
            response = Response::new(ApiBody::whole(Bytes::new()));
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        response
    }

    /// The compressed document.
    pub(crate) async fn small(&self) -> Bytes {
        let small = self.small.get_or_init(async || at_once(|| compressed(&self.bytes)));
        small.await.clone()
    }
}

impl Documents {
    fn slot(&self, of: (u64, String), name: &str) -> Slot {
        let mut known = self.0.lock();
        if known.of != of {
            if known.of.0 > of.0 {
                // The definitions have changed meanwhile. What they were is of no use for others.
                return Slot::default();
            }
            known.of = of;
            known.documents.clear();
        }
        Arc::clone(known.documents.entry(name.to_owned()).or_default())
    }

    /// Forgets that a document does not exist: clients ask for any number of those.
    fn forget(&self, name: &str, slot: &Slot) {
        let mut known = self.0.lock();
        if known.documents.get(name).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            known.documents.remove(name);
        }
    }
}

/// The document of a name, which `build` encodes for the first request. `None` if there is none.
pub(crate) async fn get(
    server: &Inner,
    name: &str,
    is_negotiated: bool,
    build: impl FnOnce(&Custom) -> Option<Vec<u8>>,
) -> Option<Arc<Document>> {
    let registry = server.registry();
    let of = (registry.changes, server.kubernetes_version.read().clone());
    let slot = server.documents.slot(of, name);
    let build = async || {
        let built = at_once(|| build(&registry))?;
        Document::new(built, is_negotiated).map(Arc::new)
    };
    let found = slot.get_or_init(build).await.clone();
    if found.is_none() {
        server.documents.forget(name, &slot);
    }
    found
}
