//! Answers of the servers, and their modifications.

use std::convert::Infallible;
use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A complete answer before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// The Authorization header of a name and a password.
pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}")))
}

pub(crate) fn sha256(content: &[u8]) -> String {
    let half = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let hash = Sha256::digest(content);
    hash.iter()
        .flat_map(|byte| [half(byte >> 4), half(byte & 15)])
        .collect()
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, body.to_string()).with("content-type", "application/json; charset=utf-8")
    }

    /// Content with an ETag, for conditional requests.
    pub(crate) fn tagged(mut self) -> Self {
        let tag = format!("\"{}\"", &sha256(&self.body)[..32]);
        self.headers.push(("etag".to_owned(), tag));
        self
    }

    pub(crate) fn not_found() -> Self {
        Self::json(404, &serde_json::json!({"message": "Not Found", "status": "404"}))
    }

    pub(crate) fn redirect(location: &str) -> Self {
        Self::new(302, "").with("location", location)
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// 304 if the client has the content.
    pub(crate) fn unless_known(self, known: Option<&str>) -> Self {
        let tag = self
            .headers
            .iter()
            .find(|(name, _)| name == "etag")
            .map(|(_, tag)| tag.as_str());
        if self.status == 200 && tag.is_some() && tag == known {
            return Self {
                status: 304,
                headers: self.headers,
                body: Bytes::new(),
            };
        }
        self
    }

    pub(crate) fn send(self) -> Response<Body> {
        let whole = Full::new(self.body.clone()).map_err(|never: Infallible| match never {});
        self.respond(whole.boxed_unsync())
    }

    /// Announces the whole length and sends the first half.
    pub(crate) fn send_half(self) -> Response<Body> {
        let length = self.body.len().to_string();
        let half = self.body.slice(..self.body.len() / 2);
        let broken = io::Error::other("the forge ends the connection");
        let pieces = stream::iter([Ok(Frame::data(half)), Err(broken)]);
        // The half must be sent before the connection closes.
        let pieces = pieces.then(|piece| async {
            tokio::task::yield_now().await;
            piece
        });
        let body = StreamBody::new(pieces).boxed_unsync();
        self.with("content-length", length).respond(body)
    }

    /// Sends the head, and then nothing.
    pub(crate) fn send_head(self) -> Response<Body> {
        let length = self.body.len().max(1).to_string();
        let body = StreamBody::new(stream::pending::<io::Result<Frame<Bytes>>>()).boxed_unsync();
        self.with("content-length", length).respond(body)
    }

    fn respond(self, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().append(name, value);
            }
        }
        if !response.headers().contains_key(header::CONTENT_TYPE) {
            let value = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, value);
        }
        response
    }
}
