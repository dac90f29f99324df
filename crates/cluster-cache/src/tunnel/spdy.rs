//! A port-forward over SPDY: one connection with a stream for the data and one for an error, in the protocol `portforward.k8s.io`.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::client::Body;
use kube::core::Status;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use windlass_controller_runtime::{Term, with_causes};
use windlass_spdy::{Event, Limits, Session};

use super::{Failed, Forwarded, NAMESPACE};

const SPDY: &str = "SPDY/3.1";
/// What is spoken in the streams.
const PROTOCOL: (&str, &str) = ("x-stream-protocol-version", "portforward.k8s.io");
/// What a connection may cost.
const LIMITS: Limits = Limits {
    streams: 0,
    header_bytes: 4 << 10,
    held: 128 << 10,
    output: 64 << 10,
};
/// How many bytes are read and written at once.
const PIECE: usize = 16 << 10;
/// How often the connection is read from without a break. A server that sends without end keeps no other task waiting.
const ROUNDS: usize = 32;
/// The most bytes of the words of an error.
const WORDS: usize = 1 << 10;
/// The most bytes of an answer that refuses the upgrade.
const ANSWER: usize = 64 << 10;

/// Connects to a port of a pod. What waits for being sent is not sent after the term.
pub(super) async fn open(client: &kube::Client, pod: &str, port: u16, term: &Term) -> Result<Forwarded, Failed> {
    let other = |error: String| Failed::Other(io::Error::other(error));
    let path = Pod::url_path(&(), Some(NAMESPACE));
    let request = kube::core::Request::new(path).portforward(pod, &[port]);
    let mut request = request.map_err(|error| other(with_causes(&error)))?.map(Body::from);
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    headers.insert(PROTOCOL.0, HeaderValue::from_static(PROTOCOL.1));
    let answer = client.send(request).await;
    let answer = answer.map_err(|error| other(with_causes(&error)))?;
    let status = answer.status();
    if status.is_client_error() || status.is_server_error() {
        return Err(refusal(status, answer.into_body()).await);
    }
    let upgrade = answer.headers().get(header::UPGRADE);
    let is_spdy = upgrade.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(SPDY.as_bytes()));
    if status != StatusCode::SWITCHING_PROTOCOLS || !is_spdy {
        return Err(Failed::Upgrade(format!("the answer is {status}, not an upgrade")));
    }
    let upgraded = hyper::upgrade::on(answer).await;
    let upgraded = upgraded.map_err(|error| other(with_causes(&error)))?;
    let refused = Box::pin(std::future::ready(None));
    let upgraded = term.fence_stream(TokioIo::new(upgraded));
    let stream = Box::pin(Connection::new(upgraded, port));
    Ok(Forwarded { stream, refused })
}

/// The meaning of an answer that is an error.
async fn refusal(status: StatusCode, body: Body) -> Failed {
    let body = Limited::new(body, ANSWER).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    match serde_json::from_slice::<Status>(&body) {
        Ok(said) if said.code == status.as_u16() => Failed::answer(&said),
        _ => Failed::answer(&Status::failure(&words(&body), "").with_code(status.as_u16())),
    }
}

/// The beginning of a text of the server.
fn words(text: &[u8]) -> String {
    let text = text.get(..WORDS).unwrap_or(text);
    String::from_utf8_lossy(text).trim().to_owned()
}

/// A task that uses a connection. Either moves bytes in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Reader,
    Writer,
}

/// The tasks that wait. What happens on the connection wakes both.
#[derive(Debug, Default)]
struct Wakers(Mutex<[Option<Waker>; 2]>);

impl Wakers {
    fn set(&self, user: User, cx: &Context<'_>) {
        let waker = cx.waker().clone();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [reader, writer] = &mut *all;
        match user {
            User::Reader => *reader = Some(waker),
            User::Writer => *writer = Some(waker),
        }
    }

    fn wake_one(&self, user: User) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [reader, writer] = &mut *all;
        let waker = match user {
            User::Reader => reader.take(),
            User::Writer => writer.take(),
        };
        drop(all);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_one(User::Reader);
        self.wake_one(User::Writer);
    }
}

/// The data of a port.
struct Connection<S> {
    io: S,
    session: Session,
    data: u32,
    error: u32,
    wakers: Arc<Wakers>,
    buffer: Box<[u8]>,
    /// What was received and not read; the session limits it.
    received: BytesMut,
    /// What was written has not reached the other side's windows completely.
    waits: bool,
    /// Something was sent since the last flush.
    unflushed: bool,
    /// The server says that nothing more comes.
    finished: bool,
    /// What it says on the stream for errors, and whether that is all.
    words: (Vec<u8>, bool),
    /// Why nothing more can be sent. What was received is read all the same, as it may say why.
    broken: Option<(io::ErrorKind, String)>,
    /// Why nothing more goes in either direction.
    failed: Option<(io::ErrorKind, String)>,
}

impl<S> Connection<S> {
    fn new(io: S, port: u16) -> Self {
        let mut session = Session::client(LIMITS);
        let mut open = |kind: &str| {
            let pairs = [("streamtype", kind), ("port", &port.to_string()), ("requestid", "0")];
            let headers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            session.open(headers.to_vec())
        };
        let (error, data) = (open("error"), open("data"));
        session.send(error, Bytes::new(), true);
        session.drained();
        Self {
            io,
            session,
            data,
            error,
            wakers: Arc::default(),
            buffer: vec![0; PIECE].into(),
            received: BytesMut::new(),
            waits: false,
            unflushed: false,
            finished: false,
            words: (Vec::new(), false),
            broken: None,
            failed: None,
        }
    }

    fn fail(&mut self, kind: io::ErrorKind, why: impl Into<String>) {
        if self.failed.is_none() {
            self.failed = Some((kind, why.into()));
        }
    }

    /// Takes what follows from the received bytes.
    fn settle(&mut self) {
        loop {
            match self.session.event() {
                Ok(Some(event)) => self.event(event),
                Ok(None) => break,
                Err(violation) => {
                    let why = format!("the API server violates the protocol {SPDY}: {violation}");
                    self.fail(io::ErrorKind::InvalidData, why);
                    break;
                }
            }
        }
        if self.session.drained().contains(&self.data) {
            self.waits = false;
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Data { stream, bytes } if stream == self.data => self.received.extend_from_slice(&bytes),
            Event::Data { stream, bytes } => {
                let room = WORDS.saturating_sub(self.words.0.len());
                self.words.0.extend(bytes.iter().take(room));
                self.session.consumed(stream, bytes.len());
            }
            Event::Finished(stream) if stream == self.data => self.finished = true,
            Event::Reset(stream) if stream == self.data => {
                // A kubelet ends the streams of a connection that is over like that, after its words.
                self.words.1 = true;
                self.fail(
                    io::ErrorKind::ConnectionReset,
                    "the API server has ended the connection to the port",
                );
            }
            Event::Finished(stream) | Event::Reset(stream) => self.words.1 |= stream == self.error,
            // A client accepts no streams. Those that are open go on.
            Event::Opened { .. } | Event::GoneAway => {}
        }
    }

    /// Why nothing more is to be read: what the server says is more useful than how the connection ended.
    fn end(&self) -> Option<io::Error> {
        let (words, complete) = (words(&self.words.0), self.words.1);
        if !words.is_empty() && (complete || self.finished || self.failed.is_some()) {
            return Some(io::Error::other(words));
        }
        let (kind, why) = self.failed.as_ref()?;
        Some(io::Error::new(*kind, why.clone()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Moves bytes in both directions as far as possible now. The task is woken when it may be possible again, and the other one when what it
    /// waits for is there.
    fn drive(&mut self, user: User, cx: &Context<'_>) {
        let was_busy = self.is_busy();
        self.wakers.set(user, cx);
        self.turn();
        match user {
            User::Reader if was_busy && !self.is_busy() => self.wakers.wake_one(User::Writer),
            User::Writer if self.finished || self.failed.is_some() || !self.received.is_empty() => {
                self.wakers.wake_one(User::Reader);
            }
            _ => {}
        }
    }

    fn turn(&mut self) {
        let waker = Waker::from(self.wakers.clone());
        let mut cx = Context::from_waker(&waker);
        for _ in 0..ROUNDS {
            self.send(&mut cx);
            if self.failed.is_some() || !self.session.may_receive() {
                return;
            }
            let mut read = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut self.io).poll_read(&mut cx, &mut read) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => self.fail(error.kind(), error.to_string()),
                Poll::Ready(Ok(())) if read.filled().is_empty() => {
                    let why = "the API server has closed the connection";
                    self.fail(io::ErrorKind::UnexpectedEof, why);
                }
                Poll::Ready(Ok(())) => self.session.receive(read.filled()),
            }
            self.settle();
        }
        cx.waker().wake_by_ref();
    }

    /// Sends what is to be sent.
    fn send(&mut self, cx: &mut Context<'_>) {
        if self.broken.is_some() {
            return;
        }
        let mut io = Pin::new(&mut self.io);
        while !self.session.output().is_empty() {
            match io.as_mut().poll_write(cx, self.session.output()) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => {
                    let why = "the connection takes no bytes".to_owned();
                    self.broken = Some((io::ErrorKind::WriteZero, why));
                    return;
                }
                Poll::Ready(Ok(sent)) => self.session.output().advance(sent),
                Poll::Ready(Err(error)) => {
                    self.broken = Some((error.kind(), error.to_string()));
                    return;
                }
            }
            self.unflushed = true;
        }
        if self.unflushed {
            match io.poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => self.broken = Some((error.kind(), error.to_string())),
            }
        }
    }

    /// Why nothing more can be written.
    fn check(&self) -> io::Result<()> {
        if let Some(error) = self.end() {
            return Err(error);
        }
        match &self.broken {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None if self.session.is_open(self.data) => Ok(()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Whether not everything has been sent.
    fn is_busy(&mut self) -> bool {
        self.broken.is_none() && (self.waits || self.unflushed || !self.session.output().is_empty())
    }

    /// Until everything has been sent.
    fn flush(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.drive(User::Writer, cx);
        if let Some(error) = self.end() {
            return Poll::Ready(Err(error));
        }
        if let Some((kind, why)) = &self.broken {
            return Poll::Ready(Err(io::Error::new(*kind, why.clone())));
        }
        if self.is_busy() {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.drive(User::Reader, cx);
        if self.received.is_empty() {
            return match self.end() {
                Some(error) => Poll::Ready(Err(error)),
                None if self.finished => Poll::Ready(Ok(())),
                None => Poll::Pending,
            };
        }
        let size = self.received.len().min(into.remaining());
        into.put_slice(&self.received.split_to(size));
        let stream = self.data;
        self.session.consumed(stream, size);
        // The other side may wait for the room, and the connection may be read from again.
        self.drive(User::Reader, cx);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.drive(User::Writer, cx);
        self.check()?;
        if self.waits || !self.session.may_send() {
            return Poll::Pending;
        }
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        let stream = self.data;
        self.waits = true;
        self.session.send(stream, Bytes::copy_from_slice(piece), false);
        self.settle();
        self.drive(User::Writer, cx);
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.data;
        if self.session.is_open(stream) && !self.waits {
            self.session.send(stream, Bytes::new(), true);
            self.settle();
        }
        ready!(self.flush(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
