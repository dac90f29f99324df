//! Limits of connections: headers, and requests at the same time.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::Pending;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_meta::budget;

use crate::edge::Edge;
use crate::stuck::{piped, piped_as};

/// A body that does not begin.
type Silent = StreamBody<Pending<Result<Frame<Bytes>, std::io::Error>>>;
type Either = http_body_util::Either<Silent, http_body_util::Empty<Bytes>>;

async fn http2(edge: &Edge) -> SendRequest<Either> {
    let stream = TokioIo::new(piped_as(edge, "h2").await);
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_max_send_streams(0);
    let (sender, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> http::request::Builder {
    Request::get(format!("https://a{path}")).header("authorization", "Bearer sesame")
}

async fn send(sender: &mut SendRequest<Either>, request: http::request::Builder) -> hyper::Result<Response<Incoming>> {
    let body = Either::Right(http_body_util::Empty::new());
    sender.send_request(request.body(body).unwrap()).await
}

#[tokio::test]
async fn requests_of_a_connection_at_the_same_time() {
    let edge = Edge::start().await;
    let mut sender = http2(&edge).await;
    assert_eq!(send(&mut sender, get("/version")).await.unwrap().status(), 200);
    let open = |sender: &mut SendRequest<Either>| {
        let body = Either::Left(StreamBody::new(futures::stream::pending()));
        let path = "/api/v1/namespaces/default/configmaps";
        let request = Request::post(format!("https://a{path}")).header("authorization", "Bearer sesame");
        tokio::spawn(sender.send_request(request.body(body).unwrap()))
    };
    let mut all: Vec<_> = (1..budget::STREAMS).map(|_| open(&mut sender)).collect();
    assert_eq!(send(&mut sender, get("/version")).await.unwrap().status(), 200);
    all.push(open(&mut sender));
    let mut next = Box::pin(async move { send(&mut sender, get("/version")).await });
    // Time passes when nothing else happens. It is less than the requests may take.
    tokio::time::pause();
    let waited = tokio::time::timeout(Duration::from_secs(20), &mut next).await;
    assert!(waited.is_err(), "{waited:?}");
    all[0].abort();
    assert_eq!(next.await.unwrap().status(), 200);
    assert!(all.iter().skip(1).all(|one| !one.is_finished()));
}

fn silent(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(format!("https://a{path}"))
}

/// Requests that do not end keep their headers in memory.
#[tokio::test]
async fn no_body_is_waited_for_where_none_is_needed() {
    let edge = Edge::start().await;
    let mut sender = http2(&edge).await;
    tokio::time::pause();
    for (request, want) in [
        (silent("POST", "/healthz"), 200),
        (silent("PUT", "/readyz"), 200),
        (silent("GET", "/livez"), 200),
        (silent("POST", "/version"), 401),
        (silent("POST", "/version").header("authorization", "Bearer sesame"), 405),
        (
            silent("GET", "/api/v1/namespaces").header("authorization", "Bearer sesame"),
            200,
        ),
        (silent("POST", "/api/v1/namespaces"), 401),
    ] {
        let body = Either::Left(StreamBody::new(futures::stream::pending()));
        let sent = sender.send_request(request.body(body).unwrap());
        let answered = tokio::time::timeout(Duration::from_secs(20), sent).await;
        assert_eq!(answered.unwrap().unwrap().status(), want);
    }
}

#[tokio::test]
async fn requests_of_a_user_that_do_not_end() {
    let edge = Edge::start().await;
    let (mut first, mut second) = (http2(&edge).await, http2(&edge).await);
    for sender in [&mut first, &mut second] {
        assert_eq!(send(sender, get("/version")).await.unwrap().status(), 200);
    }
    let open = |sender: &mut SendRequest<Either>| {
        let body = Either::Left(StreamBody::new(futures::stream::pending()));
        let request = silent("POST", "/api/v1/namespaces").header("authorization", "Bearer sesame");
        sender.send_request(request.body(body).unwrap())
    };
    let mut all: Vec<_> = (0..budget::BODIES_OF_A_USER)
        .map(|_| tokio::spawn(open(&mut first)))
        .collect();
    // They arrive at the same time as this one.
    let mut early = Vec::new();
    let refused = loop {
        assert!(early.len() < 50, "it waits with the others");
        let mut one = Box::pin(open(&mut second));
        tokio::select! {
            answered = &mut one => break answered.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(200)) => early.push(one),
        }
    };
    assert_eq!(refused.status(), 429);
    assert_eq!(send(&mut second, get("/version")).await.unwrap().status(), 200);
    drop(early);
    for one in all.drain(..) {
        one.abort();
    }
}

/// They are not those of a client without credentials, which may ask for health.
#[tokio::test]
async fn credentials_that_cannot_be_read_are_refused() {
    let edge = Edge::start().await;
    let mut sender = http2(&edge).await;
    for (value, want) in [
        (&b"Bearer sesame"[..], 200),
        (b"Bearer m\xfcller", 401),
        ("Bearer müller".as_bytes(), 401),
        (b"Bearer sesame\xff", 401),
        (b"m\xfcller", 401),
    ] {
        let request = Request::get("https://a/healthz").header("authorization", value);
        assert_eq!(send(&mut sender, request).await.unwrap().status(), want, "{value:?}");
    }
}

/// The code of the answer to a head that is sent in two parts, with enough time between them for an answer to the first.
async fn code(edge: &Edge, head: &[u8], first: usize) -> String {
    let mut stream = piped(edge).await;
    let mut answer = [0; 12];
    stream.write_all(&head[..first]).await.unwrap();
    stream.flush().await.unwrap();
    tokio::time::pause();
    let early = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await;
    tokio::time::resume();
    if early.is_err() {
        stream.write_all(&head[first..]).await.unwrap();
        stream.flush().await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    String::from_utf8(answer.to_vec()).unwrap()
}

#[tokio::test]
async fn headers_of_http_1() {
    let edge = Edge::start().await;
    for (count, want) in [(budget::HEADERS, "200"), (budget::HEADERS + 1, "431")] {
        let more = "x: a\r\n".repeat(count - 1);
        let head = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        assert_eq!(
            code(&edge, head.as_bytes(), 1).await,
            format!("HTTP/1.1 {want}"),
            "{count}"
        );
    }
    let start = "GET /healthz HTTP/1.1\r\nHost: a\r\nx: ";
    let value = "v".repeat(budget::HEADER_BYTES - start.len() - 4);
    let head = format!("{start}{value}\r\n\r\n");
    assert_eq!(
        code(&edge, head.as_bytes(), budget::HEADER_BYTES - 1).await,
        "HTTP/1.1 200"
    );
    // It is answered when it can no longer be short enough.
    let head = format!("{start}{value}v\r\n\r\n");
    assert_eq!(code(&edge, head.as_bytes(), budget::HEADER_BYTES).await, "HTTP/1.1 431");
}

#[tokio::test]
async fn headers_of_http_2() {
    let edge = Edge::start().await;
    let mut sender = http2(&edge).await;
    assert_eq!(send(&mut sender, get("/healthz")).await.unwrap().status(), 200);
    // HTTP/2 counts 32 bytes more for each.
    let fixed = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", "/healthz"),
        ("authorization", "Bearer sesame"),
        ("x", ""),
    ];
    let fixed: usize = fixed.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
    for (size, want) in [(budget::HEADER_BYTES, 200), (budget::HEADER_BYTES + 1, 431)] {
        let request = get("/healthz").header("x", "v".repeat(size - fixed));
        assert_eq!(send(&mut sender, request).await.unwrap().status(), want, "{size}");
    }
    // Short ones count by that.
    let mut many = get("/healthz");
    for at in 0..budget::HEADER_BYTES / 32 {
        many = many.header(format!("x{at}"), "");
    }
    assert_eq!(send(&mut sender, many).await.unwrap().status(), 431);
}
