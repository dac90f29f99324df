//! The encoding of a response: YAML, indentation, compression of large bodies.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use futures::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::codec::yaml;
use crate::http::body::ApiBody;
use crate::http::documents::Document;
use crate::http::negotiation::{self, Media};
use crate::http::request::Query;

/// Smaller responses are not compressed.
const COMPRESSED_FROM: usize = 128 << 10;
/// The amount that is compressed before it is sent.
const PIECE: usize = 256 << 10;

/// The encoding that a request asks for.
pub(crate) struct ResponseForm {
    media: Media,
    pretty: bool,
    gzip: bool,
}

impl ResponseForm {
    pub(crate) fn of(parts: &Parts, query: &Query) -> Self {
        let agent = parts.headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok());
        let by_hand = || {
            let agent = agent.unwrap_or("");
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|p| agent.starts_with(p))
        };
        Self {
            media: negotiation::media(&parts.headers),
            pretty: query.flag("pretty").unwrap_or_else(by_hand),
            gzip: parts.method == Method::GET && takes_gzip(&parts.headers),
        }
    }

    /// Encodes a response.
    pub(crate) fn encode(&self, mut response: Response<ApiBody>) -> Response<ApiBody> {
        if document(&response).is_some_and(|document| !document.is_negotiated) {
            return response;
        }
        // The parameters of the media type describe the content, not its encoding.
        let params = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|t| t.to_str().ok()?.strip_prefix("application/json"))
            .map(str::to_owned);
        let is_json = params.is_some();
        if is_json
            && (self.media == Media::Yaml || self.pretty)
            && let Some(bytes) = response.body().bytes()
            && let Ok(value) = serde_json::from_slice::<Value>(bytes)
        {
            // The shared document has another form.
            response.extensions_mut().remove::<Arc<Document>>();
            if self.media == Media::Yaml {
                *response.body_mut() = ApiBody::whole(yaml::write(&value));
                if let Ok(yaml) = HeaderValue::from_str(&format!("application/yaml{}", params.unwrap_or_default())) {
                    response.headers_mut().insert(header::CONTENT_TYPE, yaml);
                }
            } else if let Ok(text) = serde_json::to_vec_pretty(&value) {
                *response.body_mut() = ApiBody::whole(text);
            }
        }
        response
    }

    /// Compresses a large response.
    pub(crate) async fn compress(&self, mut response: Response<ApiBody>) -> Response<ApiBody> {
        if self.gzip
            && !response.headers().contains_key(header::CONTENT_ENCODING)
            && let Some(bytes) = response.body().bytes().filter(|b| b.len() >= COMPRESSED_FROM)
        {
            let place = response.body().place();
            let small = match document(&response) {
                Some(document) => ApiBody::whole(document.small().await),
                None => compress(bytes.clone()),
            };
            *response.body_mut() = match place {
                Some(place) => small.counted(place),
                None => small,
            };
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        response
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().any(|value| {
        let parts = value.to_str().unwrap_or("").split(',');
        parts
            .map(|part| part.split(';').next().unwrap_or("").trim())
            .any(|p| p == "gzip")
    })
}

/// The document that a response shares with others.
fn document(response: &Response<ApiBody>) -> Option<&Arc<Document>> {
    response.extensions().get::<Arc<Document>>()
}

/// Compresses at once.
pub(crate) fn compressed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

/// Compresses on a separate thread and sends finished parts meanwhile. A list of tens of megabytes takes so long that other
/// requests on the same thread would be delayed.
fn compress(bytes: Bytes) -> ApiBody {
    // Unbounded, so that a client that reads nothing blocks no thread: the queue holds less than the input.
    let (to, from) = mpsc::unbounded_channel();
    tokio::task::spawn_blocking(move || {
        let mut encoder = GzEncoder::new(Vec::with_capacity(PIECE / 4), Compression::fast());
        for piece in bytes.chunks(PIECE) {
            // Writing to memory cannot fail.
            let _ = encoder.write_all(piece);
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() && to.send(Bytes::from(ready)).is_err() {
                return;
            }
        }
        if let Ok(rest) = encoder.finish() {
            let _ = to.send(rest.into());
        }
    });
    let pieces = stream::unfold(
        from,
        |mut from| async move { from.recv().await.map(|piece| (piece, from)) },
    );
    ApiBody::stream(pieces.boxed())
}
