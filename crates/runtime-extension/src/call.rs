//! One request: its route, its body, its time limit, and what the handler makes of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use tokio::time::{Instant, timeout_at};
use windlass_http_server::{Answer, respond};
use windlass_meta::repeats::Repeats;
use windlass_runtime_hooks::LONGEST_TIMEOUT_SECONDS;

/// The size limit of a request, as in Cluster API's server.
const MAX_BODY: usize = 20 << 20;
/// How much of a request that is too large is read and dropped, so that clients which send before they read see the answer.
const MOST_READ: usize = 2 * MAX_BODY;
/// The longest time limit of a request.
pub(crate) const LONGEST: Duration = Duration::from_secs(LONGEST_TIMEOUT_SECONDS.unsigned_abs() as u64);

/// The handlers by their paths.
pub(crate) type Routes = BTreeMap<String, Route>;

/// A handler, and what logs say about it.
pub(crate) struct Route {
    /// The name of its hook.
    pub(crate) hook: &'static str,
    /// Its name; empty for Discovery.
    pub(crate) handler: String,
    /// The time limit of requests that have none.
    pub(crate) timeout: Duration,
    /// Makes the response from the request, both in JSON.
    pub(crate) call: Call,
}

/// A handler whose types are erased.
pub(crate) type Call = Box<dyn Fn(&[u8]) -> BoxFuture<'static, Result<Vec<u8>, Unanswered>> + Send + Sync>;

/// Why a handler has no response.
pub(crate) enum Unanswered {
    /// The body is not the request of the hook.
    Undecodable(String),
    /// The response of the handler cannot be sent.
    Unencodable(String),
}

/// Answers a request.
pub(crate) async fn answer<B>(routes: &Routes, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Unpin,
{
    let Some(route) = routes.get(request.uri().path()) else {
        let text = format!("the extension has no handler at {}", request.uri().path());
        return words(StatusCode::NOT_FOUND, &text);
    };
    if request.method() != Method::POST {
        let mut answer = words(StatusCode::METHOD_NOT_ALLOWED, "a hook is called by POST");
        let allowed = HeaderValue::from_static("POST");
        answer.headers_mut().insert(header::ALLOW, allowed);
        return answer;
    }
    let limit = match time_limit(request.uri()) {
        Ok(limit) => limit.unwrap_or(route.timeout),
        Err(why) => return words(StatusCode::BAD_REQUEST, &why),
    };
    let deadline = Instant::now() + limit;
    let body = match timeout_at(deadline, gather(request.into_body())).await {
        Ok(Ok(body)) => body,
        Ok(Err(refusal)) => return refusal,
        Err(_) => return words(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
    };
    let (hook, handler) = (route.hook, &route.handler);
    let calling = AssertUnwindSafe(async { (route.call)(&body).await }).catch_unwind();
    match timeout_at(deadline, calling).await {
        Ok(Ok(Ok(response))) => {
            tracing::debug!(hook, handler, "a handler has answered");
            let mut answer = respond(StatusCode::OK, "application/json", String::new());
            *answer.body_mut() = Bytes::from(response).into();
            answer
        }
        Ok(Ok(Err(Unanswered::Undecodable(why)))) => {
            if let Some(repeated) = said(hook, handler, &why) {
                tracing::warn!(hook, handler, reason = why, repeated, "a request cannot be decoded");
            }
            words(StatusCode::BAD_REQUEST, &why)
        }
        Ok(Ok(Err(Unanswered::Unencodable(why)))) => {
            if let Some(repeated) = said(hook, handler, &why) {
                tracing::error!(hook, handler, reason = why, repeated, "a response cannot be encoded");
            }
            words(StatusCode::INTERNAL_SERVER_ERROR, "the response cannot be encoded")
        }
        Ok(Err(panic)) => {
            let panic = payload(&*panic);
            if let Some(repeated) = said(hook, handler, panic) {
                tracing::error!(hook, handler, panic, repeated, "a handler has panicked");
            }
            let text = format!("handler {handler} of hook {hook} has panicked; its log has the cause");
            words(StatusCode::INTERNAL_SERVER_ERROR, &text)
        }
        Err(_) => {
            if let Some(repeated) = said(hook, handler, "a handler took too long") {
                tracing::warn!(hook, handler, ?limit, repeated, "a handler took too long");
            }
            let text = format!("handler {handler} of hook {hook} has not answered within {limit:?}");
            words(StatusCode::GATEWAY_TIMEOUT, &text)
        }
    }
}

/// Whether a failure of a handler is to be logged, with the number of lines that were left out before. Managers call again and again.
pub(crate) fn said(hook: &str, handler: &str, why: &str) -> Option<u64> {
    static SAID: Repeats = Repeats::new();
    SAID.line(&format!("{hook} {handler}"), why, std::time::Instant::now())
}

/// The time limit in the query, at most [`LONGEST`]. None when it is not there, or zero.
fn time_limit(uri: &Uri) -> Result<Option<Duration>, String> {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let Some(text) = pairs.find_map(|pair| pair.strip_prefix("timeout=")) else {
        return Ok(None);
    };
    let text = percent_decode_str(text).decode_utf8_lossy();
    let nanos = windlass_gocompat::duration::parse(&text).and_then(|nanos| u64::try_from(nanos).ok());
    let limit = nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("the timeout {text:?} is not a positive duration; an example of one is 10s"))?;
    Ok((!limit.is_zero()).then(|| limit.min(LONGEST)))
}

/// The whole body, or the answer to one that is too large or incomplete.
async fn gather<B>(mut body: B) -> Result<Bytes, Answer>
where
    B: Body<Data = Bytes> + Unpin,
{
    let too_large = || {
        let text = format!("the body is larger than {MAX_BODY} bytes");
        words(StatusCode::PAYLOAD_TOO_LARGE, &text)
    };
    if body.size_hint().lower() > MOST_READ as u64 {
        return Err(too_large());
    }
    let mut gathered = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| words(StatusCode::BAD_REQUEST, "the body did not arrive"))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= MAX_BODY {
            gathered.extend_from_slice(&data);
        } else if length <= MOST_READ {
            gathered = BytesMut::new();
        } else {
            return Err(too_large());
        }
    }
    if length > MAX_BODY {
        return Err(too_large());
    }
    Ok(gathered.freeze())
}

/// The message of a panic.
fn payload(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

fn words(status: StatusCode, text: &str) -> Answer {
    respond(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_a_minute_for_each_handler() {
        assert_eq!(said("Hook", "first", "field 1 is missing"), Some(0));
        assert_eq!(said("Hook", "first", "field 2 is missing"), None);
        assert_eq!(said("Hook", "second", "field 2 is missing"), Some(0));
        assert_eq!(said("Hook", "first", "a handler took too long"), Some(0));
    }

    #[test]
    fn the_time_limit_is_a_duration_of_go() {
        let check = |query: &str, expect: Option<Option<Duration>>| {
            let uri: Uri = format!("/hook{query}").parse().unwrap();
            assert_eq!(time_limit(&uri).ok(), expect, "{query:?}");
        };
        check("", Some(None));
        check("?other=1", Some(None));
        check("?timeout=0s", Some(None));
        check("?timeout=10s", Some(Some(Duration::from_secs(10))));
        check("?other=1&timeout=1.5s", Some(Some(Duration::from_millis(1500))));
        check("?timeout=2%C2%B5s", Some(Some(Duration::from_micros(2))));
        check("?timeout=1h0m0s", Some(Some(LONGEST)));
        check("?timeout=-1s", None);
        check("?timeout=10", None);
        check("?timeout=", None);
    }
}
