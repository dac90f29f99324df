use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::DuplexStream;
use windlass_spdy::{Decoder, Encoder, Frame, WINDOW};

use super::*;
use crate::http::pod_tunnel::PodTunnel;

const ECHO: u16 = 80;
/// Refuses connections.
const CLOSED: u16 = 81;
/// Sends without end.
const SPRING: u16 = 82;
/// Takes nothing.
const WALL: u16 = 83;
/// Counts until the client sends nothing more, and then sends the number.
const COUNTER: u16 = 84;

/// A pod with these ports.
#[derive(Default)]
struct Ports {
    /// What was sent.
    sent: Arc<AtomicUsize>,
    /// The connections that are open.
    open: Arc<AtomicUsize>,
}

/// Counts as an open connection.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PodTunnel for Ports {
    fn connect(&self, _: &str, _: &str, port: u16) -> BoxFuture<'static, std::io::Result<PodConnection>> {
        let sent = self.sent.clone();
        self.open.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(self.open.clone());
        Box::pin(async move {
            if port == CLOSED {
                return Err(std::io::ErrorKind::ConnectionRefused.into());
            }
            let (near, mut far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let _counted = counted;
                match port {
                    SPRING => {
                        while far.write_all(&[7; 1024]).await.is_ok() {
                            sent.fetch_add(1024, Ordering::SeqCst);
                        }
                    }
                    WALL => while far.write_all(b"x").await.is_ok() && !near_is_gone(&mut far).await {},
                    COUNTER => {
                        let mut all = Vec::new();
                        let _ = far.read_to_end(&mut all).await;
                        let _ = far.write_all(format!("{} bytes", all.len()).as_bytes()).await;
                    }
                    _ => {
                        let (mut reader, mut writer) = tokio::io::split(far);
                        let _ = tokio::io::copy(&mut reader, &mut writer).await;
                    }
                }
            });
            Ok(Box::pin(near) as PodConnection)
        })
    }
}

/// Waits until the other end is gone. It is noticed by writing only, as reading would take something.
async fn near_is_gone(far: &mut DuplexStream) -> bool {
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if far.write_all(b"x").await.is_err() {
            return true;
        }
    }
}

/// A client, and what it has received, by stream.
struct Client {
    stream: DuplexStream,
    encoder: Encoder,
    decoder: Decoder,
    data: BTreeMap<u32, Vec<u8>>,
    /// The streams that the server sends nothing more on.
    finished: Vec<u32>,
    replied: Vec<u32>,
    reset: Vec<u32>,
    pings: Vec<u32>,
    went_away: bool,
    next: u32,
}

impl Client {
    fn start(tunnel: Arc<dyn PodTunnel>) -> (Self, CancellationToken) {
        let (near, far) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(far);
        let pod = Pod {
            tunnel,
            namespace: "default".into(),
            name: "p".into(),
        };
        let shutdown = CancellationToken::new();
        tokio::spawn(run(reader, writer, pod, shutdown.clone()));
        let client = Self {
            stream: near,
            encoder: Encoder::default(),
            decoder: Decoder::new(1024),
            data: BTreeMap::new(),
            finished: Vec::new(),
            replied: Vec::new(),
            reset: Vec::new(),
            pings: Vec::new(),
            went_away: false,
            next: 1,
        };
        (client, shutdown)
    }

    async fn say(&mut self, frame: Frame) {
        let mut bytes = BytesMut::new();
        self.encoder.write(&frame, &mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn stream(&mut self, headers: &[(&str, &str)]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.say(Frame::SynStream {
            stream,
            headers: headers.collect(),
            fin: false,
            unidirectional: false,
        })
        .await;
        stream
    }

    /// Connects to a port. Returns the streams for its error and its data.
    async fn connect(&mut self, port: u16) -> (u32, u32) {
        let (port, request) = (port.to_string(), self.next.to_string());
        let with = |kind| {
            [
                ("streamtype", kind),
                ("port", port.as_str()),
                ("requestid", request.as_str()),
            ]
        };
        let error = self.stream(&with("error")).await;
        self.send(error, b"", true).await;
        let data = self.stream(&with("data")).await;
        (error, data)
    }

    async fn send(&mut self, stream: u32, bytes: &[u8], fin: bool) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.say(Frame::Data { stream, bytes, fin }).await;
    }

    /// Receives until a condition holds.
    async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        let mut buffer = [0; 4096];
        while !holds(self) {
            let read = tokio::time::timeout(Duration::from_mins(2), self.stream.read(&mut buffer));
            let n = read.await.expect("an answer in time").unwrap();
            assert!(n > 0, "the connection has ended: {:?}", self.data);
            self.decoder.push(&buffer[..n]);
            while let Some(frame) = self.decoder.frame().unwrap() {
                self.took(frame);
            }
        }
    }

    fn took(&mut self, frame: Frame) {
        match frame {
            Frame::Data { stream, bytes, fin } => {
                self.data.entry(stream).or_default().extend_from_slice(&bytes);
                if fin {
                    self.finished.push(stream);
                }
            }
            Frame::SynReply { stream, .. } => self.replied.push(stream),
            Frame::RstStream { stream, .. } => self.reset.push(stream),
            Frame::Ping(id) => self.pings.push(id),
            Frame::GoAway { .. } => self.went_away = true,
            _ => {}
        }
    }

    fn text(&self, stream: u32) -> String {
        String::from_utf8_lossy(self.data.get(&stream).map_or(&[][..], Vec::as_slice)).into_owned()
    }

    fn has_ended(&self, streams: (u32, u32)) -> bool {
        self.finished.contains(&streams.0) && self.finished.contains(&streams.1)
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_is_talked_to_and_either_half_can_be_closed() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let echo = client.connect(ECHO).await;
    client.send(echo.1, b"hello", false).await;
    client.until(|client| client.text(echo.1) == "hello").await;
    assert_eq!(client.replied, [echo.0, echo.1]);
    client.send(echo.1, b", world", true).await;
    client.until(|client| client.has_ended(echo)).await;
    assert_eq!(
        (client.text(echo.1).as_str(), client.text(echo.0).as_str()),
        ("hello, world", "")
    );
    // The pod answers after the client has sent everything.
    let counter = client.connect(COUNTER).await;
    client.send(counter.1, &vec![7; 100_000], false).await;
    client.send(counter.1, b"", true).await;
    client.until(|client| client.has_ended(counter)).await;
    assert_eq!(client.text(counter.1), "100000 bytes");
}

#[tokio::test(start_paused = true)]
async fn data_may_come_before_the_other_stream_of_the_pair() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let data = client
        .stream(&[("streamtype", "data"), ("port", "80"), ("requestid", "9")])
        .await;
    client.send(data, b"early", true).await;
    let error = client
        .stream(&[("streamtype", "error"), ("port", "80"), ("requestid", "9")])
        .await;
    client.until(|client| client.has_ended((error, data))).await;
    assert_eq!(client.text(data), "early");
}

#[tokio::test(start_paused = true)]
async fn an_error_is_said_on_the_stream_for_it() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let closed = client.connect(CLOSED).await;
    client.until(|client| client.has_ended(closed)).await;
    assert_eq!(
        client.text(closed.0),
        "error forwarding port 81 to pod p: connection refused"
    );
    let echo = client.connect(ECHO).await;
    client.send(echo.1, b"still", false).await;
    client.until(|client| client.text(echo.1) == "still").await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_reset_ends_the_connection_to_the_pod() {
    let ports = Ports::default();
    let open = ports.open.clone();
    let (mut client, _) = Client::start(Arc::new(ports));
    let spring = client.connect(SPRING).await;
    client.until(|client| client.text(spring.1).len() > 100_000).await;
    assert_eq!(open.load(Ordering::SeqCst), 1);
    client
        .say(Frame::RstStream {
            stream: spring.1,
            status: status::CANCEL,
        })
        .await;
    client.until(|client| client.finished.contains(&spring.0)).await;
    while open.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_ends_all_connections_to_the_pod() {
    let ports = Ports::default();
    let open = ports.open.clone();
    let (mut client, _) = Client::start(Arc::new(ports));
    let both = (client.connect(SPRING).await, client.connect(ECHO).await);
    client.until(|client| client.replied.contains(&both.1.1)).await;
    client.until(|client| client.text(both.0.1).len() > 10_000).await;
    drop(client);
    while open.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_streams_are_served_side_by_side() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let mut all = Vec::new();
    for _ in 0..LIMITS.streams / 2 {
        let pair = client.connect(ECHO).await;
        all.push(pair);
        client.until(|client| client.replied.contains(&pair.1)).await;
    }
    let (_, one_more) = client.connect(ECHO).await;
    client.until(|client| client.reset.contains(&one_more)).await;
    for (_, data) in &all {
        client.send(*data, format!("{data}").as_bytes(), true).await;
    }
    client
        .until(|client| all.iter().all(|pair| client.has_ended(*pair)))
        .await;
    for (_, data) in all {
        assert_eq!(client.text(data), data.to_string());
    }
    let again = client.connect(ECHO).await;
    client.send(again.1, b"again", true).await;
    client.until(|client| client.has_ended(again)).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_holds_back_the_pod() {
    let ports = Ports::default();
    let sent = ports.sent.clone();
    let (mut client, _) = Client::start(Arc::new(ports));
    let (_, data) = client.connect(SPRING).await;
    let mut before = usize::MAX;
    while before != sent.load(Ordering::SeqCst) {
        before = sent.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(
        before < LIMITS.output + (QUEUED + 4) * READ_BYTES,
        "{before} bytes wait"
    );
    client.until(|client| client.text(data).len() > 2 * before).await;
    assert!(client.data[&data].iter().all(|byte| *byte == 7));
}

#[tokio::test(start_paused = true)]
async fn a_slow_pod_holds_back_its_client() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let (_, wall) = client.connect(WALL).await;
    let mut sent = 0;
    let piece = vec![7; 8 << 10];
    while tokio::time::timeout(Duration::from_secs(5), client.send(wall, &piece, false))
        .await
        .is_ok()
    {
        sent += piece.len();
        assert!(sent < 2 * WINDOW, "{sent} bytes were taken");
    }
    assert!(sent >= WINDOW / 2, "{sent}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_asked_and_stays() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let echo = client.connect(ECHO).await;
    client.until(|client| client.replied.contains(&echo.1)).await;
    // It answers none of them.
    for asked in 1..=20 {
        client.until(|client| client.pings.len() == asked).await;
    }
    client.send(echo.1, b"here", false).await;
    client.until(|client| client.text(echo.1) == "here").await;
    client.say(Frame::Ping(7)).await;
    client.until(|client| client.pings.contains(&7)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_alone_is_ended_after_a_while() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    let began = Instant::now();
    let alone = client
        .stream(&[("streamtype", "data"), ("port", "80"), ("requestid", "1")])
        .await;
    client.until(|client| client.reset == [alone]).await;
    assert!(began.elapsed() >= Duration::from_secs(30));
    let wrong = client.stream(&[("streamtype", "stdin")]).await;
    client.until(|client| client.reset == [alone, wrong]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_spdy_ends_the_connection() {
    let (mut client, _) = Client::start(Arc::new(Ports::default()));
    client.stream.write_all(b"\x80\x02no SPDY at all").await.unwrap();
    client.until(|client| client.went_away).await;
    assert_eq!(client.stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_says_so() {
    let (mut client, shutdown) = Client::start(Arc::new(Ports::default()));
    let echo = client.connect(ECHO).await;
    client.until(|client| client.replied.contains(&echo.1)).await;
    shutdown.cancel();
    client.until(|client| client.went_away).await;
    assert_eq!(client.stream.read(&mut [0; 8]).await.unwrap(), 0);
}
