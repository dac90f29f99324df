//! Bodies of requests and responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use serde_json::Value;
use windlass_meta::budget::{BODY_BYTES, LIGHT_BYTES, REQUEST_TIME};
use windlass_rbac::user::UserInfo;

use crate::error::ApiError;
use crate::http::heavy::{Heavy, Turn};
use crate::http::per_user::Place;

/// An error while receiving a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Bytes with a place.
struct Counted {
    bytes: Bytes,
    _place: Arc<Place<()>>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of a response.
pub struct ApiBody {
    inner: Inner,
    /// Counts the bytes until they are sent.
    place: Option<Arc<Place<()>>>,
}

enum Inner {
    Whole(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
    Remote(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.inner {
            Inner::Whole(_) => "ApiBody::Whole",
            Inner::Stream(_) => "ApiBody::Stream",
            Inner::Remote(_) => "ApiBody::Remote",
        })
    }
}

impl ApiBody {
    fn of(inner: Inner) -> Self {
        Self { inner, place: None }
    }

    /// A complete body.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Inner::Whole(Some(bytes.into())))
    }

    /// The bytes, if the body is complete.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.inner {
            Inner::Whole(bytes) => bytes.as_ref(),
            _ => None,
        }
    }

    /// The same body with a place that is kept until its last byte is sent.
    pub(crate) fn counted(self, place: Arc<Place<()>>) -> Self {
        let inner = match self.inner {
            Inner::Whole(Some(bytes)) => Inner::Whole(Some(Bytes::from_owner(Counted {
                bytes,
                _place: Arc::clone(&place),
            }))),
            other => other,
        };
        Self {
            inner,
            place: Some(place),
        }
    }

    /// The place of a counted body.
    pub(crate) fn place(&self) -> Option<Arc<Place<()>>> {
        self.place.clone()
    }

    /// A streamed body.
    pub(crate) fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self::of(Inner::Stream(stream))
    }

    /// A body from a connection.
    pub(crate) fn remote<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::of(Inner::Remote(Box::pin(body.map_err(Into::into))))
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b)))),
            Inner::Stream(stream) => stream.as_mut().poll_next(cx).map(|b| b.map(|b| Ok(Frame::data(b)))),
            Inner::Remote(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Inner::Stream(_) => false,
            Inner::Remote(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Stream(_) => SizeHint::default(),
            Inner::Remote(body) => body.size_hint(),
        }
    }
}

/// Receives the body of a user's request. One that does not arrive at once takes a place, and one that is large takes a turn as soon as
/// that is known.
pub(crate) async fn gather<B>(body: B, heavy: &Heavy, user: &UserInfo) -> Result<(Bytes, Option<Turn>), ApiError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let arrived = tokio::time::timeout(REQUEST_TIME, receive(body, heavy, user)).await;
    arrived.unwrap_or_else(|_| {
        let seconds = REQUEST_TIME.as_secs();
        Err(ApiError::new(
            504,
            "Timeout",
            format!("Timeout: the request did not arrive within {seconds} seconds"),
        ))
    })
}

async fn receive<B>(body: B, heavy: &Heavy, user: &UserInfo) -> Result<(Bytes, Option<Turn>), ApiError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let too_large = || {
        ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_BYTES}"),
        )
    };
    let read = |frame: Result<Frame<Bytes>, B::Error>| frame.map_err(Into::<BoxError>::into);
    let (mut turn, mut place) = (None, None);
    let mut received = Received::default();
    let mut body = std::pin::pin!(body);
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    loop {
        let size = announced.max(received.size());
        if size > BODY_BYTES {
            return Err(too_large());
        }
        if size > LIGHT_BYTES && turn.is_none() {
            turn = Some(heavy.enter(user)?);
        }
        let ready = body.frame().now_or_never().map(|frame| frame.map(read));
        let frame = if let Some(frame) = ready {
            frame
        } else {
            // What waits keeps its headers in memory, also before the first byte.
            if place.is_none() {
                place = Some(heavy.arrive(user)?);
            }
            body.frame().await.map(read)
        };
        match frame {
            None => return Ok((received.whole(), turn)),
            Some(Ok(frame)) => received.extend(frame.into_data().ok()),
            Some(Err(error)) => {
                return Err(ApiError::bad_request(format!(
                    "the body of the request could not be read: {error}"
                )));
            }
        }
    }
}

/// The parts of a body. Most have one, which is not copied.
#[derive(Default)]
struct Received {
    first: Bytes,
    rest: Vec<u8>,
}

impl Received {
    fn size(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    fn extend(&mut self, data: Option<Bytes>) {
        let data = data.unwrap_or_default();
        if self.size() == 0 {
            self.first = data;
        } else {
            self.rest.extend_from_slice(&data);
        }
    }

    fn whole(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut whole = Vec::with_capacity(self.size());
        whole.extend_from_slice(&self.first);
        whole.extend_from_slice(&self.rest);
        whole.into()
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

/// The ETag of a hash.
pub(crate) fn etag(hash: &[u8]) -> Option<http::HeaderValue> {
    use std::fmt::Write as _;
    let mut tag = String::from("\"");
    for byte in hash {
        let _ = write!(tag, "{byte:02X}");
    }
    tag.push('"');
    http::HeaderValue::from_str(&tag).ok()
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
    use futures::StreamExt as _;
    use windlass_meta::budget::{BODIES_OF_A_USER, HEAVY_REQUESTS_OF_A_USER};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_time_to_arrive() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let never = ApiBody::stream(Box::pin(futures::stream::pending()));
        assert_eq!(gather(never, &heavy, &user).await.unwrap_err().code, 504);
        let tick = std::time::Duration::from_millis(1);
        for (time, code) in [
            (REQUEST_TIME.saturating_sub(tick), None),
            (REQUEST_TIME + tick, Some(504)),
        ] {
            let last = async move {
                tokio::time::sleep(time).await;
                Bytes::from_static(b"{}")
            };
            let body = ApiBody::stream(Box::pin(futures::stream::once(last)));
            let gathered = gather(body, &heavy, &user).await;
            assert_eq!(gathered.err().map(|error| error.code), code);
        }
    }

    #[tokio::test]
    async fn a_body_may_not_be_too_large() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let gathered = |size| gather(ApiBody::whole(vec![b' '; size]), &heavy, &user);
        assert_eq!(gathered(BODY_BYTES).await.unwrap().0.len(), BODY_BYTES);
        assert_eq!(gathered(BODY_BYTES + 1).await.unwrap_err().code, 413);
    }

    #[tokio::test]
    async fn a_large_body_takes_a_turn_before_it_is_there() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let turns: Vec<Turn> = (0..HEAVY_REQUESTS_OF_A_USER)
            .map(|_| heavy.enter(&user).unwrap())
            .collect();
        let light = gather(ApiBody::whole(vec![b' '; LIGHT_BYTES]), &heavy, &user).await;
        assert!(light.unwrap().1.is_none());
        let large = gather(ApiBody::whole(vec![b' '; LIGHT_BYTES + 1]), &heavy, &user).await;
        assert_eq!(large.unwrap_err().code, 429);
        let piece = Bytes::from(vec![b' '; LIGHT_BYTES]);
        let endless = futures::stream::iter([piece.clone(), piece]).chain(futures::stream::pending());
        let unannounced = gather(ApiBody::stream(Box::pin(endless)), &heavy, &user).await;
        assert_eq!(unannounced.unwrap_err().code, 429);
        drop(turns);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_arrive_slowly_are_counted() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let slow = |start: &'static [u8]| {
            let start = (!start.is_empty()).then(|| Bytes::from_static(start));
            let body = futures::stream::iter(start).chain(futures::stream::pending());
            gather(ApiBody::stream(Box::pin(body)), &heavy, &user)
        };
        let starts = [&b"{"[..], b""];
        let mut many = futures::future::join_all((0..BODIES_OF_A_USER).map(|at| slow(starts[at % 2])));
        assert!(futures::poll!(&mut many).is_pending());
        for start in starts {
            assert_eq!(slow(start).await.unwrap_err().code, 429);
        }
        let whole = gather(ApiBody::whole(&b"{}"[..]), &heavy, &user).await;
        assert_eq!(whole.unwrap().0, &b"{}"[..], "what is there at once is not counted");
        drop(many);
        assert!(futures::poll!(std::pin::pin!(slow(b""))).is_pending());
    }
}
