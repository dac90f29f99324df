//! Connections to ports of pods, tunnelled through the API server over a WebSocket.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, WriteHalf};
use tokio::sync::{AcquireError, Semaphore, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::pod_tunnel::PodConnection;
use crate::http::pod_tunnel::PodTunnel;
use crate::http::request::Query;
use crate::state::Inner;

const PROTOCOLS: [&str; 3] = ["v5.channel.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io"];
/// From the fifth protocol version on, a frame on this channel names a channel that its sender has closed.
const CLOSE: u8 = 255;
const READ_BYTES: usize = 16 << 10;
/// Limit of bytes queued for the client: a slow client slows down the pod instead of filling the memory. A client that does not
/// read while it writes (the Rust client library is one) must have sent less than this, or both sides would wait for each other
/// forever.
const QUEUED_BYTES: usize = 512 << 10;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Settings for many quiet tunnels: small buffers, as the default for reading alone is 128 KiB each.
fn settings() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(READ_BYTES)
}

fn has_token(headers: &HeaderMap, name: header::HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|v| {
        v.to_str()
            .unwrap_or("")
            .split(',')
            .any(|t| t.trim().eq_ignore_ascii_case(token))
    })
}

fn protocol(headers: &HeaderMap) -> Option<&'static str> {
    PROTOCOLS
        .into_iter()
        .find(|p| has_token(headers, header::SEC_WEBSOCKET_PROTOCOL, p))
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

/// Answers a port-forward request with the upgrade to a WebSocket.
pub(crate) fn upgrade(
    server: &Arc<Inner>,
    parts: Parts,
    namespace: &str,
    pod: &str,
) -> Result<Response<ApiBody>, ApiError> {
    let headers = &parts.headers;
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
    if !has_token(headers, header::UPGRADE, "websocket") {
        return Err(ApiError::bad_request(format!(
            "unable to upgrade: ports of pods are forwarded over WebSockets, in one of {PROTOCOLS:?}; SPDY, which kubectl speaks, is not served"
        )));
    }
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .ok_or_else(|| ApiError::bad_request("the Sec-WebSocket-Key header is missing"))?;
    let accept = derive_accept_key(key.as_bytes());
    let protocol = protocol(headers)
        .ok_or_else(|| ApiError::bad_request(format!("the client must speak one of {PROTOCOLS:?}")))?;
    let ports = ports(&Query::parse(parts.uri.query().unwrap_or("")))?;
    let (namespace, pod) = (namespace.to_owned(), pod.to_owned());
    let shutdown = server.shutdown.clone();
    tokio::spawn(async move {
        let request = http::Request::from_parts(parts, ());
        let Ok(upgraded) = hyper::upgrade::on(request).await else {
            return;
        };
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(settings())).await;
        tokio::select! {
            () = run(socket, tunnel, namespace, pod, ports) => {}
            () = shutdown.cancelled() => {}
        }
    });
    let mut response = Response::new(ApiBody::whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    let accept = HeaderValue::from_str(&accept).map_err(ApiError::internal)?;
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn frame(channel: u8, payload: &[u8]) -> Message {
    let mut out = BytesMut::with_capacity(payload.len() + 1);
    out.put_u8(channel);
    out.put_slice(payload);
    Message::Binary(out.freeze())
}

/// Serves one WebSocket: for each port a channel for data and one for an error, named by their position.
async fn run(socket: Socket, tunnel: Arc<dyn PodTunnel>, namespace: String, pod: String, ports: Vec<u16>) {
    let (sink, stream) = socket.split();
    let (frames, queue) = frames();
    let mut writers: Vec<Option<WriteHalf<PodConnection>>> = Vec::new();
    let mut readers = tokio::task::JoinSet::new();
    let sender = tokio::spawn(send(sink, queue, frames.room.clone()));
    for (i, port) in ports.into_iter().enumerate() {
        let Ok(data) = u8::try_from(2 * i) else {
            break;
        };
        for channel in [data, data + 1] {
            if frames.send(frame(channel, &port.to_le_bytes())).await.is_err() {
                return;
            }
        }
        match tunnel.connect(&namespace, &pod, port).await {
            Ok(connection) => {
                let (reader, writer) = tokio::io::split(connection);
                writers.push(Some(writer));
                readers.spawn(read(reader, data, frames.clone()));
            }
            Err(error) => {
                let words = format!("error forwarding port {port} to pod {pod}: {error}");
                let _ = frames.send(frame(data + 1, words.as_bytes())).await;
                writers.push(None);
            }
        }
    }
    let all_ended = async move {
        if readers.is_empty() {
            std::future::pending::<()>().await;
        }
        while readers.join_next().await.is_some() {}
    };
    tokio::select! {
        () = receive(stream, writers, &frames) => {}
        () = all_ended => {}
    }
    let _ = frames.send(Message::Close(None)).await;
    drop(frames);
    let _ = sender.await;
}

/// The queue of frames for the client.
#[derive(Clone)]
struct Frames {
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
}

fn frames() -> (Frames, mpsc::UnboundedReceiver<Message>) {
    let (queue, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(QUEUED_BYTES));
    (Frames { queue, room }, receiver)
}

/// The size of a frame in the queue.
fn cost(message: &Message) -> u32 {
    u32::try_from(message.len().min(QUEUED_BYTES)).unwrap_or(u32::MAX)
}

impl Frames {
    /// Queues a frame when there is room for it; an error if the connection is closed.
    async fn send(&self, message: Message) -> Result<(), AcquireError> {
        self.room.acquire_many(cost(&message)).await?.forget();
        // If the receiver is gone, the semaphore is closed as well.
        let _ = self.queue.send(message);
        Ok(())
    }
}

async fn send(mut sink: SplitSink<Socket, Message>, mut queue: mpsc::UnboundedReceiver<Message>, room: Arc<Semaphore>) {
    while let Some(message) = queue.recv().await {
        let last = matches!(message, Message::Close(_));
        let bytes = cost(&message);
        if sink.send(message).await.is_err() || last {
            break;
        }
        room.add_permits(usize::try_from(bytes).unwrap_or_default());
    }
    room.close();
    let _ = sink.close().await;
}

async fn read(mut reader: impl AsyncRead + Unpin, channel: u8, frames: Frames) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(n) = reader.read(&mut buffer).await {
        if n == 0 || frames.send(frame(channel, &buffer[..n])).await.is_err() {
            return;
        }
    }
}

async fn receive(mut stream: SplitStream<Socket>, mut writers: Vec<Option<WriteHalf<PodConnection>>>, frames: &Frames) {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(bytes) if !bytes.is_empty() && bytes[0].is_multiple_of(2) => {
                let port = usize::from(bytes[0] / 2);
                let Some(slot) = writers.get_mut(port) else {
                    return;
                };
                if let Some(writer) = slot
                    && writer.write_all(&bytes[1..]).await.is_err()
                {
                    *slot = None;
                }
            }
            Message::Binary(bytes) if bytes.len() == 2 && bytes[0] == CLOSE => {
                if let Some(slot) = writers.get_mut(usize::from(bytes[1] / 2))
                    && let Some(mut writer) = slot.take()
                {
                    let _ = writer.shutdown().await;
                }
            }
            Message::Ping(payload) => {
                let _ = frames.send(Message::Pong(payload)).await;
            }
            Message::Close(_) => return,
            _ => {}
        }
    }
}
