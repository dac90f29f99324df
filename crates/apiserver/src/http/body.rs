//! Bodies of requests and responses.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;

/// The size limit of a request.
const MAX_BYTES: usize = 3 << 20;
/// The time limit for receiving a request.
const ARRIVAL: Duration = Duration::from_mins(1);

/// An error while receiving a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response.
pub struct ApiBody(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
    Remote(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Inner::Whole(_) => "ApiBody::Whole",
            Inner::Stream(_) => "ApiBody::Stream",
            Inner::Remote(_) => "ApiBody::Remote",
        })
    }
}

impl ApiBody {
    /// A complete body.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into())))
    }

    /// The bytes, if the body is complete.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Inner::Whole(bytes) => bytes.as_ref(),
            _ => None,
        }
    }

    /// A streamed body.
    pub(crate) fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Inner::Stream(stream))
    }

    /// A body from a connection.
    pub(crate) fn remote<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Inner::Remote(Box::pin(body.map_err(Into::into))))
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b)))),
            Inner::Stream(stream) => stream.as_mut().poll_next(cx).map(|b| b.map(|b| Ok(Frame::data(b)))),
            Inner::Remote(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Inner::Stream(_) => false,
            Inner::Remote(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Stream(_) => SizeHint::default(),
            Inner::Remote(body) => body.size_hint(),
        }
    }
}

/// Receives a request's body.
pub(crate) async fn gather<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let arrived = tokio::time::timeout(ARRIVAL, Limited::new(body, MAX_BYTES).collect()).await;
    let Ok(arrived) = arrived else {
        return Err(ApiError::new(
            504,
            "Timeout",
            format!(
                "Timeout: the request did not arrive within {} seconds",
                ARRIVAL.as_secs()
            ),
        ));
    };
    match arrived {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {MAX_BYTES}"),
        )),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body of the request could not be read: {error}"
        ))),
    }
}

/// A response with a JSON object.
pub(crate) fn json(code: u16, value: &Value) -> http::Response<ApiBody> {
    json_bytes(code, serde_json::to_vec(value).unwrap_or_default())
}

/// A response with encoded JSON.
pub(crate) fn json_bytes(code: u16, bytes: impl Into<Bytes>) -> http::Response<ApiBody> {
    with_type(code, "application/json", bytes)
}

/// A response of any media type.
pub(crate) fn with_type(code: u16, media_type: &'static str, bytes: impl Into<Bytes>) -> http::Response<ApiBody> {
    let mut response = http::Response::new(ApiBody::whole(bytes));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(media_type));
    response.headers_mut().insert(
        http::header::CACHE_CONTROL,
        http::HeaderValue::from_static("no-cache, private"),
    );
    response
}

/// Adds an ETag with the hash of the response, and omits the body for clients that have it.
pub(crate) fn tagged(mut response: http::Response<ApiBody>, asked: &http::HeaderMap) -> http::Response<ApiBody> {
    use std::fmt::Write as _;
    let Some(bytes) = response.body().bytes() else {
        return response;
    };
    let mut tag = String::from("\"");
    for byte in Sha256::digest(bytes) {
        let _ = write!(tag, "{byte:02X}");
    }
    tag.push('"');
    let has = asked.get_all(http::header::IF_NONE_MATCH).iter().any(|v| {
        v.to_str()
            .is_ok_and(|v| v.split(',').any(|v| v.trim().trim_start_matches("W/") == tag))
    });
    if has {
        response = http::Response::new(ApiBody::whole(Bytes::new()));
        *response.status_mut() = http::StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = http::HeaderValue::from_str(&tag) {
        response.headers_mut().insert(http::header::ETAG, tag);
    }
    response
        .headers_mut()
        .insert(http::header::VARY, http::HeaderValue::from_static("Accept"));
    response
}

/// An error response.
pub(crate) fn error(error: &ApiError) -> http::Response<ApiBody> {
    if error.is_plain() {
        return with_type(error.code, "text/plain; charset=utf-8", error.message.clone());
    }
    let mut response = json(error.code, &error.status());
    if let Some(seconds) = error.details.as_ref().and_then(|d| d.retry_after) {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let body = ApiBody::stream(Box::pin(futures::stream::pending()));
        assert_eq!(gather(body).await.unwrap_err().code, 504);
    }

    #[tokio::test]
    async fn a_body_may_not_be_too_large() {
        let body = ApiBody::whole(vec![b' '; MAX_BYTES + 1]);
        assert_eq!(gather(body).await.unwrap_err().code, 413);
    }
}
