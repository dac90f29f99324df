//! Connections to ports of pods, tunnelled through the API server: over the channels of a WebSocket, over SPDY, or over SPDY inside a
//! WebSocket. Clients in Go try the last one first, and then SPDY alone.

mod channels;
mod pairs;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, TryStreamExt as _};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};

use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::connections::Connection;
use crate::http::pod_tunnel::{PodConnection, PodTunnel};
use crate::http::request::Query;
use crate::state::Inner;

/// The protocol of pairs of streams.
const STREAMS: &str = "portforward.k8s.io";
/// SPDY inside a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// The protocols of WebSockets, the best one first.
const PROTOCOLS: [&str; 4] = [TUNNEL, "v5.channel.k8s.io", "v4.channel.k8s.io", STREAMS];
const SPDY: &str = "SPDY/3.1";
/// What a client of SPDY speaks in its streams.
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const READ_BYTES: usize = 16 << 10;
/// After this time without a word, a peer is asked whether it is there. An answer is not required, as a client that is slow does not give one:
/// TCP fails if there is no peer.
const QUIET: Duration = Duration::from_secs(30);

type Upgraded = TokioIo<hyper::upgrade::Upgraded>;
type Socket = WebSocketStream<Upgraded>;

/// The pod of a request.
#[derive(Clone)]
struct Pod {
    tunnel: Arc<dyn PodTunnel>,
    namespace: Arc<str>,
    name: Arc<str>,
}

impl Pod {
    /// Connects to a port. The error is for the client.
    async fn connect(&self, port: u16) -> Result<PodConnection, String> {
        let connected = self.tunnel.connect(&self.namespace, &self.name, port).await;
        connected.map_err(|error| self.failed(port, &error))
    }

    fn failed(&self, port: u16, error: &std::io::Error) -> String {
        format!("error forwarding port {port} to pod {}: {error}", self.name)
    }
}

/// How a client wants to be served.
#[derive(Debug, PartialEq)]
enum Way {
    /// The channels of a WebSocket in this protocol, one pair for each port.
    Channels(&'static str, Vec<u16>),
    /// SPDY inside a WebSocket.
    Tunnel,
    /// SPDY.
    Spdy,
}

/// Settings for many quiet tunnels: small buffers, as the default for reading alone is 128 KiB each.
fn settings() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(READ_BYTES)
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|v| {
        v.to_str()
            .unwrap_or("")
            .split(',')
            .any(|t| t.trim().eq_ignore_ascii_case(token))
    })
}

fn ports(query: &Query) -> Result<Vec<u16>, ApiError> {
    let mut out = Vec::new();
    for text in query.all("ports").flat_map(|v| v.split(',')) {
        let port: u16 = text
            .parse()
            .ok()
            .filter(|p| *p > 0)
            .ok_or_else(|| ApiError::bad_request(format!("unable to parse {text:?} as a port")))?;
        out.push(port);
    }
    if out.is_empty() {
        return Err(ApiError::bad_request("query parameter \"ports\" is required"));
    }
    if out.len() > 100 {
        return Err(ApiError::bad_request("too many ports"));
    }
    Ok(out)
}

/// What a request asks for, and the headers of the answer.
fn negotiate(parts: &Parts) -> Result<(Way, HeaderMap), ApiError> {
    let (asked, mut answer) = (&parts.headers, HeaderMap::new());
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if has_token(asked, header::UPGRADE, SPDY) {
        if !has_token(asked, PROTOCOL_VERSION, STREAMS) {
            let why = format!("unable to upgrade: the header {PROTOCOL_VERSION} must have {STREAMS}");
            return Err(ApiError::new(403, "Forbidden", why));
        }
        answer.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
        answer.insert(PROTOCOL_VERSION, HeaderValue::from_static(STREAMS));
        return Ok((Way::Spdy, answer));
    }
    if !has_token(asked, header::UPGRADE, "websocket") {
        return Err(ApiError::bad_request(format!(
            "unable to upgrade: ports of pods are forwarded over {SPDY}, or over WebSockets in one of {PROTOCOLS:?}"
        )));
    }
    let key = asked
        .get(header::SEC_WEBSOCKET_KEY)
        .ok_or_else(|| ApiError::bad_request("the Sec-WebSocket-Key header is missing"))?;
    let accept = derive_accept_key(key.as_bytes());
    let protocol = PROTOCOLS
        .into_iter()
        .find(|p| has_token(asked, header::SEC_WEBSOCKET_PROTOCOL, p))
        .ok_or_else(|| ApiError::bad_request(format!("the client must speak one of {PROTOCOLS:?}")))?;
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    let accept = HeaderValue::from_str(&accept).map_err(ApiError::internal)?;
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if protocol == TUNNEL {
        return Ok((Way::Tunnel, answer));
    }
    let ports = ports(&Query::parse(parts.uri.query().unwrap_or("")))?;
    Ok((Way::Channels(protocol, ports), answer))
}

/// Answers a port-forward request with the upgrade of its connection.
pub(crate) fn upgrade(
    server: &Arc<Inner>,
    parts: Parts,
    namespace: &str,
    pod: &str,
) -> Result<Response<ApiBody>, ApiError> {
    let Some(tunnel) = server.options.pod_tunnel.clone() else {
        return Err(ApiError::new(
            501,
            "NotImplemented",
            "no pod of this cluster accepts connections",
        ));
    };
    if server.store.get("pods", namespace, pod).is_none() {
        return Err(ApiError::not_found("", "pods", pod));
    }
    let (way, headers) = negotiate(&parts)?;
    let pod = Pod {
        tunnel,
        namespace: namespace.into(),
        name: pod.into(),
    };
    // The connection counts as one of its user until its end.
    let connection = parts.extensions.get::<Arc<Connection>>().cloned();
    let shutdown = server.shutdown.clone();
    tokio::spawn(async move {
        let request = http::Request::from_parts(parts, ());
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            serve(TokioIo::new(upgraded), way, pod, shutdown).await;
        }
        drop(connection);
    });
    let mut response = Response::new(ApiBody::whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    Ok(response)
}

async fn serve(upgraded: Upgraded, way: Way, pod: Pod, shutdown: tokio_util::sync::CancellationToken) {
    if way == Way::Spdy {
        let (reader, writer) = tokio::io::split(upgraded);
        return streams::run(reader, writer, pod, shutdown).await;
    }
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(settings())).await;
    let Way::Channels(_, ports) = way else {
        let (sink, stream) = socket.split();
        // The messages are pieces of one stream of bytes.
        let received = stream.map_err(std::io::Error::other).try_filter_map(|message| {
            std::future::ready(Ok(match message {
                Message::Binary(bytes) => Some(bytes),
                _ => None,
            }))
        });
        let sent = sink
            .sink_map_err(std::io::Error::other)
            .with(|bytes: Bytes| std::future::ready(Ok::<_, std::io::Error>(Message::Binary(bytes))));
        let (reader, writer) = (StreamReader::new(received), SinkWriter::new(CopyToBytes::new(sent)));
        return streams::run(reader, writer, pod, shutdown).await;
    };
    tokio::select! {
        () = channels::run(socket, pod, ports) => {}
        () = shutdown.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(query: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(format!("/portforward?{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn each_client_is_served_in_the_protocol_that_it_asks_for() {
        let check = |query: &str, headers: &[(&str, &str)], expect: Way, names: &[(&str, &str)]| {
            let (way, answer) = negotiate(&parts(query, headers)).unwrap();
            assert_eq!(way, expect);
            for (name, value) in names {
                assert_eq!(answer.get(*name).unwrap(), value, "{name}");
            }
        };
        let spdy = [
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "portforward.k8s.io"),
        ];
        check("", &spdy, Way::Spdy, &spdy);
        let websocket = |protocols| {
            [
                ("upgrade", "websocket"),
                ("sec-websocket-key", "a"),
                ("sec-websocket-protocol", protocols),
            ]
        };
        let answered = |protocol| [("sec-websocket-protocol", protocol)];
        check("", &websocket(TUNNEL), Way::Tunnel, &answered(TUNNEL));
        let channels = Way::Channels("v5.channel.k8s.io", vec![80, 81]);
        let both = "v4.channel.k8s.io, v5.channel.k8s.io";
        check(
            "ports=80,81",
            &websocket(both),
            channels,
            &answered("v5.channel.k8s.io"),
        );
    }

    #[test]
    fn a_client_that_asks_for_another_protocol_is_refused() {
        let code = |query, headers: &[(&str, &str)]| negotiate(&parts(query, headers)).unwrap_err().code;
        assert_eq!(code("", &[]), 400);
        assert_eq!(code("", &[("upgrade", "SPDY/3.1")]), 403);
        assert_eq!(
            code("", &[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v9")]),
            403
        );
        let websocket = [
            ("upgrade", "websocket"),
            ("sec-websocket-key", "a"),
            ("sec-websocket-protocol", "v4.channel.k8s.io"),
        ];
        assert_eq!(code("", &websocket), 400, "no port");
        assert_eq!(code("ports=80", &websocket[..2]), 400, "no protocol");
    }
}
