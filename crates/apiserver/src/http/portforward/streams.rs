//! Ports of pods over pairs of SPDY streams, in the protocol `portforward.k8s.io`.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_spdy::{Event, Limits, Session, status};

use super::pairs::{Asked, Kind, Pair, Pairs};
use super::{Pod, QUIET, READ_BYTES};
use crate::http::pod_tunnel::PodConnection;

/// What a connection may cost. A browser opens some ten streams at a time through a forwarded port, and `kubectl` has one connection for all.
const LIMITS: Limits = Limits {
    streams: 1000,
    header_bytes: 4 << 10,
    held: 1 << 20,
    output: 256 << 10,
};
/// How many pieces of data wait until there is room for them in the output.
const QUEUED: usize = 16;

/// What the task of a pair reports.
enum Report {
    /// Data from the pod.
    Data(u32, Bytes),
    /// The pod sends nothing more.
    Last(u32),
    /// The connection to the pod is over, or there was none.
    Over(u32, Result<(), String>),
}

/// Data that the pod has taken: its stream and its size.
type Taken = (u32, usize);

/// A pair whose task runs.
struct Open {
    error: u32,
    /// Has a permit when the pod may be read from.
    turn: Arc<Semaphore>,
    task: AbortHandle,
}

/// One connection of a client.
struct Forwarding {
    pod: Pod,
    session: Session,
    pairs: Pairs,
    /// The pairs, by the stream for their data.
    open: HashMap<u32, Open>,
    /// Where to put the data of a stream.
    to_pods: HashMap<u32, mpsc::UnboundedSender<Bytes>>,
    /// What was received for pairs that are not complete.
    early: HashMap<u32, mpsc::UnboundedReceiver<Bytes>>,
    tasks: JoinSet<()>,
    reports: mpsc::Sender<Report>,
    taken: mpsc::UnboundedSender<Taken>,
    /// The client opens no further streams.
    goes: bool,
}

/// Serves a connection until one side ends it.
pub(super) async fn run(
    reader: impl AsyncRead + Send,
    writer: impl AsyncWrite + Send,
    pod: Pod,
    shutdown: CancellationToken,
) {
    let (mut reader, mut writer) = (Box::pin(reader), Box::pin(writer));
    let (reports, mut reported) = mpsc::channel(QUEUED);
    let (taken, mut was_taken) = mpsc::unbounded_channel();
    let mut forwarding = Forwarding::new(pod, reports, taken);
    let mut buffer = vec![0; READ_BYTES];
    let (mut is_flushed, mut ends, mut is_quiet) = (true, false, false);
    let mut quiet = tokio::time::interval_at(Instant::now() + QUIET, QUIET);
    loop {
        ends |= forwarding.settle();
        let session = &mut forwarding.session;
        let has_output = !session.output().is_empty();
        if ends && !has_output {
            break;
        }
        let (may_receive, may_send) = (!ends && session.may_receive(), session.may_send());
        let deadline = forwarding.pairs.deadline();
        let lonely = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = reader.read(&mut buffer), if may_receive => match read {
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    is_quiet = false;
                    session.receive(&buffer[..n]);
                }
            },
            written = write(&mut writer, session.output()), if has_output || !is_flushed => match written {
                Ok(()) => is_flushed = !has_output,
                Err(_) => return,
            },
            Some(report) = reported.recv(), if may_send => forwarding.report(report),
            Some((stream, bytes)) = was_taken.recv() => session.consumed(stream, bytes),
            Some(_) = forwarding.tasks.join_next() => {}
            () = lonely => forwarding.end_lonely(),
            _ = quiet.tick() => {
                if std::mem::replace(&mut is_quiet, true) {
                    session.ping();
                }
            }
            () = shutdown.cancelled(), if !ends => {
                session.end(status::OK);
                ends = true;
            }
        }
    }
    let _ = writer.shutdown().await;
}

/// Writes a part of the output, or flushes if there is none.
async fn write(writer: &mut (impl AsyncWrite + Unpin), output: &mut BytesMut) -> std::io::Result<()> {
    if output.is_empty() {
        return writer.flush().await;
    }
    match writer.write_buf(output).await? {
        0 => Err(std::io::ErrorKind::WriteZero.into()),
        _ => Ok(()),
    }
}

impl Forwarding {
    fn new(pod: Pod, reports: mpsc::Sender<Report>, taken: mpsc::UnboundedSender<Taken>) -> Self {
        Self {
            pod,
            session: Session::new(LIMITS),
            pairs: Pairs::default(),
            open: HashMap::new(),
            to_pods: HashMap::new(),
            early: HashMap::new(),
            tasks: JoinSet::new(),
            reports,
            taken,
            goes: false,
        }
    }

    /// Does what the received frames ask for. Whether the connection is to end.
    fn settle(&mut self) -> bool {
        loop {
            match self.session.event() {
                Ok(Some(event)) => self.event(event),
                Ok(None) => break,
                Err(violation) => {
                    tracing::debug!(%violation, "a client that forwards ports is not understood");
                    return true;
                }
            }
        }
        for stream in self.session.drained() {
            if let Some(open) = self.open.get(&stream) {
                open.turn.add_permits(1);
            }
        }
        self.goes && self.open.is_empty()
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened { stream, headers } => {
                let added = Asked::read(stream, &headers).and_then(|asked| {
                    let kind = asked.kind;
                    let pair = self.pairs.add(stream, asked, Instant::now())?;
                    Ok((kind, pair))
                });
                match added {
                    Ok((kind, pair)) => self.accept(stream, kind, pair),
                    Err(why) => {
                        tracing::debug!(
                            stream,
                            reason = why,
                            "a stream of a client that forwards ports is refused"
                        );
                        self.session.reset(stream, status::PROTOCOL_ERROR);
                    }
                }
            }
            Event::Data { stream, bytes } => {
                let size = bytes.len();
                let to_pod = self.to_pods.get(&stream);
                // Nothing is to be said on the stream of an error, and a pod that has ended takes nothing.
                if to_pod.is_none_or(|to_pod| to_pod.send(bytes).is_err()) {
                    self.session.consumed(stream, size);
                }
            }
            Event::Finished(stream) => drop(self.to_pods.remove(&stream)),
            Event::Reset(stream) => self.was_reset(stream),
            Event::GoneAway => self.goes = true,
        }
    }

    fn accept(&mut self, stream: u32, kind: Kind, pair: Option<Pair>) {
        self.session.accept(stream);
        if kind == Kind::Data {
            let (to_pod, from_client) = mpsc::unbounded_channel();
            self.to_pods.insert(stream, to_pod);
            self.early.insert(stream, from_client);
        }
        let Some(pair) = pair else {
            return;
        };
        let Some(from_client) = self.early.remove(&pair.data) else {
            return;
        };
        let turn = Arc::new(Semaphore::new(1));
        let task = Task {
            pod: self.pod.clone(),
            pair,
            turn: turn.clone(),
            reports: self.reports.clone(),
            taken: self.taken.clone(),
        };
        let task = self.tasks.spawn(task.run(from_client));
        let error = pair.error;
        self.open.insert(pair.data, Open { error, turn, task });
    }

    fn was_reset(&mut self, stream: u32) {
        self.pairs.remove(stream);
        self.to_pods.remove(&stream);
        self.early.remove(&stream);
        if let Some(open) = self.open.remove(&stream) {
            open.task.abort();
            // A client waits for the end of the stream for errors.
            self.session.send(open.error, Bytes::new(), true);
        }
    }

    fn end_lonely(&mut self) {
        for stream in self.pairs.late(Instant::now()) {
            self.to_pods.remove(&stream);
            self.early.remove(&stream);
            self.session.reset(stream, status::CANCEL);
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Data(stream, bytes) => self.session.send(stream, bytes, false),
            Report::Last(stream) => self.session.send(stream, Bytes::new(), true),
            Report::Over(stream, result) => {
                let Some(open) = self.open.remove(&stream) else {
                    return;
                };
                self.to_pods.remove(&stream);
                let words = result.err().unwrap_or_default();
                self.session.send(open.error, words.into(), true);
                self.session.send(stream, Bytes::new(), true);
            }
        }
    }
}

/// Copies between a pair of streams and a port.
struct Task {
    pod: Pod,
    pair: Pair,
    turn: Arc<Semaphore>,
    reports: mpsc::Sender<Report>,
    taken: mpsc::UnboundedSender<Taken>,
}

impl Task {
    async fn run(self, from_client: mpsc::UnboundedReceiver<Bytes>) {
        let result = match self.pod.connect(self.pair.port).await {
            Ok(connection) => self.copy(connection, from_client).await,
            Err(words) => Err(words),
        };
        let _ = self.reports.send(Report::Over(self.pair.data, result)).await;
    }

    async fn copy(&self, connection: PodConnection, from_client: mpsc::UnboundedReceiver<Bytes>) -> Result<(), String> {
        let (reader, writer) = tokio::io::split(connection);
        let up = async {
            self.up(writer, from_client).await;
            Ok(())
        };
        let down = async {
            self.down(reader)
                .await
                .map_err(|error| self.pod.failed(self.pair.port, &error))
        };
        tokio::try_join!(up, down).map(drop)
    }

    /// Until the client sends nothing more.
    async fn up(&self, mut writer: impl AsyncWrite + Unpin, mut from_client: mpsc::UnboundedReceiver<Bytes>) {
        let mut takes = true;
        while let Some(bytes) = from_client.recv().await {
            // What a pod does not take is thrown away, as what it says is still of use.
            takes = takes && writer.write_all(&bytes).await.is_ok() && writer.flush().await.is_ok();
            let _ = self.taken.send((self.pair.data, bytes.len()));
        }
        let _ = writer.shutdown().await;
    }

    /// Until the pod sends nothing more.
    async fn down(&self, mut reader: impl AsyncRead + Unpin) -> std::io::Result<()> {
        let (stream, mut buffer) = (self.pair.data, vec![0; READ_BYTES]);
        loop {
            let Ok(turn) = self.turn.acquire().await else {
                return Ok(());
            };
            turn.forget();
            let n = reader.read(&mut buffer).await?;
            let report = match n {
                0 => Report::Last(stream),
                n => Report::Data(stream, Bytes::copy_from_slice(&buffer[..n])),
            };
            if self.reports.send(report).await.is_err() || n == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
