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
use tokio::sync::mpsc;
use windlass_meta::budget::{ENCODED_BYTES, LIGHT_BYTES};

use crate::codec::yaml;
use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::documents::Document;
use crate::http::heavy::Answers;
use crate::http::indented;
use crate::http::negotiation::{self, Media};
use crate::http::request::Query;

/// Smaller responses are not compressed.
const COMPRESSED_FROM: usize = 128 << 10;
/// The amount that is compressed before it is sent.
const PIECE: usize = 256 << 10;

/// The encoding that a request asks for.
#[derive(Clone, Copy)]
pub(crate) struct ResponseForm {
    media: Media,
    /// Whether JSON is indented, and whether the request says so. Without that, a large answer is not indented.
    pretty: bool,
    pretty_is_asked: bool,
    gzip: bool,
}

/// Marks a response that has its encoding.
#[derive(Clone, Copy)]
struct Encoded;

impl ResponseForm {
    pub(crate) fn of(parts: &Parts, query: &Query) -> Self {
        let agent = parts.headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok());
        let by_hand = || {
            let agent = agent.unwrap_or("");
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|p| agent.starts_with(p))
        };
        let asked = query.flag("pretty");
        Self {
            media: negotiation::media(&parts.headers),
            pretty: asked.unwrap_or_else(by_hand),
            pretty_is_asked: asked == Some(true),
            gzip: parts.method == Method::GET && takes_gzip(&parts.headers),
        }
    }

    /// Whether JSON is written in another form.
    pub(crate) fn rewrites(self) -> bool {
        self.media == Media::Yaml || self.pretty
    }

    /// The bytes that [`ResponseForm::encode`] reads and writes, as far as they matter: none if it has nothing to do.
    pub(crate) fn work(self, response: &Response<ApiBody>) -> usize {
        let Some(bytes) = self.rewritten(response) else {
            return 0;
        };
        if bytes.len() > LIGHT_BYTES {
            return bytes.len();
        }
        // YAML indents as much.
        indented::size(bytes)
    }

    /// The JSON that has to be written in another form.
    fn rewritten(self, response: &Response<ApiBody>) -> Option<&Bytes> {
        let is_done = || {
            let is_fixed = document(response).is_some_and(|document| !document.is_negotiated);
            is_fixed || response.extensions().get::<Encoded>().is_some()
        };
        let bytes = response.body().bytes().filter(|_| self.rewrites())?;
        (parameters(response).is_some() && !is_done()).then_some(bytes)
    }

    /// Encodes a response once. The bytes of indented JSON are counted for its user before they are written.
    ///
    /// # Errors
    ///
    /// The answer to a read would be too large. That of a write has no other form then.
    pub(crate) fn encode(
        self,
        answers: &Answers<'_>,
        mut response: Response<ApiBody>,
    ) -> Result<Response<ApiBody>, ApiError> {
        let Some(json) = self.rewritten(&response).cloned() else {
            return Ok(response);
        };
        let written = if self.media == Media::Yaml {
            yaml::write(&json, ENCODED_BYTES).map(|yaml| ApiBody::whole(yaml.into_bytes()))
        } else {
            indented(answers, &json)?
        };
        let Some(body) = written else {
            if answers.is_read && (self.media == Media::Yaml || self.pretty_is_asked) {
                return Err(self.too_large());
            }
            return Ok(response);
        };
        // The parameters of the media type describe the content, not its encoding.
        let params = parameters(&response).unwrap_or_default();
        if self.media == Media::Yaml
            && let Ok(yaml) = HeaderValue::from_str(&format!("application/yaml{params}"))
        {
            response.headers_mut().insert(header::CONTENT_TYPE, yaml);
        }
        *response.body_mut() = body;
        // The shared document has another form.
        response.extensions_mut().remove::<Arc<Document>>();
        response.extensions_mut().insert(Encoded);
        Ok(response)
    }

    fn too_large(self) -> ApiError {
        let (form, instead) = match self.media {
            Media::Yaml => ("YAML", "ask for application/json"),
            Media::Json => ("indented JSON", "leave out the parameter \"pretty\""),
        };
        ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "the answer in {form} would be too large: limit is {ENCODED_BYTES} bytes; {instead}, or ask for fewer objects with the parameter \"limit\""
            ),
        )
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

/// Indented JSON; `None` if it would be too large.
fn indented(answers: &Answers<'_>, json: &[u8]) -> Result<Option<ApiBody>, ApiError> {
    let size = indented::size(json);
    if size > ENCODED_BYTES {
        return Ok(None);
    }
    let place = answers.count(size)?;
    let body = ApiBody::whole(indented::write(json, size));
    Ok(Some(match place {
        Some(place) => body.counted(place),
        None => body,
    }))
}

/// The parameters of a media type that is JSON.
fn parameters(response: &Response<ApiBody>) -> Option<String> {
    let media = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    media.strip_prefix("application/json").map(str::to_owned)
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
