//! Ports of pods over the channels of a WebSocket: each message begins with the number of its channel.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, WriteHalf};
use tokio::sync::{AcquireError, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Message;

use super::{Pod, QUIET, READ_BYTES, Socket};
use crate::http::pod_tunnel::PodConnection;

/// From the fifth protocol version on, a frame on this channel names a channel that its sender has closed.
const CLOSE: u8 = 255;
/// Limit of bytes queued for the client: a slow client slows down the pod instead of filling the memory. A client that does not
/// read while it writes (the Rust client library is one) must have sent less than this, or both sides would wait for each other
/// forever.
const QUEUED_BYTES: usize = 512 << 10;

fn frame(channel: u8, payload: &[u8]) -> Message {
    let mut out = BytesMut::with_capacity(payload.len() + 1);
    out.put_u8(channel);
    out.put_slice(payload);
    Message::Binary(out.freeze())
}

/// Serves one WebSocket: for each port a channel for data and one for an error, named by their position.
pub(super) async fn run(socket: Socket, pod: Pod, ports: Vec<u16>) {
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
        match pod.connect(port).await {
            Ok(connection) => {
                let (reader, writer) = tokio::io::split(connection);
                writers.push(Some(writer));
                readers.spawn(read(reader, data, frames.clone()));
            }
            Err(words) => {
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
    // A peer that is gone without a word is noticed when it is written to.
    let quiet = async {
        loop {
            tokio::time::sleep(QUIET).await;
            if frames.send(Message::Ping(Bytes::new())).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = receive(stream, writers, &frames) => {}
        () = all_ended => {}
        () = quiet => {}
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
