//! The server as an in-process tower service.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::error::ApiError;
use crate::http::body::{ApiBody, BoxError, gather};
use crate::http::dispatch;
use crate::http::heavy::Turn;
use crate::state::Inner;
use windlass_rbac::user::UserInfo;

/// Buffer size of the in-process connection of an upgraded request.
const PIPE_BYTES: usize = 64 << 10;

/// Answers requests as one user, without a socket.
#[derive(Clone)]
pub struct ClientService {
    server: Arc<Inner>,
    user: Arc<UserInfo>,
}

impl std::fmt::Debug for ClientService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientService")
            .field("user", &self.user.name)
            .finish_non_exhaustive()
    }
}

impl ClientService {
    pub(crate) fn new(server: Arc<Inner>, user: UserInfo) -> Self {
        Self {
            server,
            user: Arc::new(user),
        }
    }
}

impl<B> tower::Service<Request<B>> for ClientService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<ApiBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = Arc::clone(&self.server);
        let user = Arc::clone(&self.user);
        Box::pin(async move {
            let upgrades = request.headers().contains_key(http::header::UPGRADE);
            let (parts, body) = request.into_parts();
            Ok(match gather(body, &server.heavy, &user).await {
                Ok(body) => answer(server, user, parts, body, upgrades).await,
                Err(error) => crate::http::body::error(&error),
            })
        })
    }
}

/// Answers one request. Boxed, so that the server is compiled once, and not in every crate with a body type of its own.
fn answer(
    server: Arc<Inner>,
    user: Arc<UserInfo>,
    parts: http::request::Parts,
    (body, turn): (Bytes, Option<Turn>),
    upgrades: bool,
) -> BoxFuture<'static, Response<ApiBody>> {
    Box::pin(async move {
        if !upgrades {
            return dispatch::handle(&server, &user, parts, body, turn).await;
        }
        let request = Request::from_parts(parts, http_body_util::Full::new(body));
        let answered = over_pipe(server, user, request).await;
        answered.unwrap_or_else(|error| crate::http::body::error(&ApiError::internal(error)))
    })
}

/// A protocol upgrade needs a connection: creates an in-process one.
async fn over_pipe(
    server: Arc<Inner>,
    user: Arc<UserInfo>,
    request: Request<http_body_util::Full<Bytes>>,
) -> Result<Response<ApiBody>, hyper::Error> {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (server, user) = (Arc::clone(&server), Arc::clone(&user));
        async move {
            let (parts, body) = request.into_parts();
            let received = gather(body, &server.heavy, &user).await;
            Ok::<_, Infallible>(match received {
                Ok((body, turn)) => dispatch::handle(&server, &user, parts, body, turn).await,
                Err(error) => crate::http::body::error(&error),
            })
        }
    });
    tokio::spawn(async move {
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades()
            .await;
    });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let response = sender.send_request(request).await?;
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, ApiBody::remote(body)))
}
