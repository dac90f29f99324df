use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Empty;
use tower::{ServiceExt, service_fn};

use super::*;

type Answer = Result<Response<Empty<Bytes>>, BoxError>;

/// Lanes whose answers name the connection that they came on; connections are numbered as they are made.
fn lanes() -> impl Service<Request<()>, Response = Response<Held<Empty<Bytes>>>, Error = BoxError> + Clone {
    let made = AtomicUsize::new(0);
    Lanes::new(move || {
        let number = made.fetch_add(1, Ordering::SeqCst);
        service_fn(move |_: Request<()>| {
            let answer = Response::builder().header("connection", number).body(Empty::new());
            std::future::ready(answer.map_err(BoxError::from)) as std::future::Ready<Answer>
        })
    })
}

async fn ask<S, R>(lanes: &S, url: &str) -> (String, R)
where
    S: Service<Request<()>, Response = Response<R>, Error = BoxError> + Clone,
{
    let answer = lanes.clone().oneshot(Request::get(url).body(()).unwrap()).await;
    let (head, body) = answer.unwrap().into_parts();
    (head.headers["connection"].to_str().unwrap().to_owned(), body)
}

#[tokio::test]
async fn requests_and_watches_take_connections_of_their_own() {
    let lanes = lanes();
    let check = async |url: &str, connection: &str| assert_eq!(ask(&lanes, url).await.0, connection, "{url}");
    check("/api/v1/pods", "0").await;
    check("/api/v1/pods?watch=true", "1").await;
    check("/api/v1/pods?limit=1&watch=1&resourceVersion=5", "1").await;
    check("/api/v1/pods?watch=false", "0").await;
    check("/api/v1/pods?labelSelector=watch%3Dtrue", "0").await;
}

#[tokio::test]
async fn a_connection_has_no_more_watches_than_it_bears_and_takes_new_ones_when_old_ones_end() {
    let lanes = lanes();
    let mut open = Vec::new();
    for _ in 0..WATCHES_PER_CONNECTION {
        let (connection, body) = ask(&lanes, "/a?watch=true").await;
        assert_eq!(connection, "1");
        open.push(body);
    }
    let (connection, body) = ask(&lanes, "/a?watch=true").await;
    assert_eq!(connection, "2");
    open.push(body);
    open.remove(0);
    assert_eq!(ask(&lanes, "/a?watch=true").await.0, "1");
    assert_eq!(ask(&lanes, "/a").await.0, "0");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_begin_to_answer_is_not_waited_for_for_ever() {
    let mut lanes = Lanes::new(|| service_fn(|_: Request<()>| std::future::pending::<Answer>()));
    for url in ["/a", "/a?watch=true"] {
        let error = lanes.call(Request::get(url).body(()).unwrap()).await.err().unwrap();
        assert_eq!(error.to_string(), "no answer in 70 s");
    }
}
