use tokio::io::DuplexStream;

use super::*;

/// What fits between both sides.
const PIPE: usize = 8 << 10;
/// The limits of a server.
const SERVER: Limits = Limits {
    streams: 10,
    header_bytes: 4 << 10,
    held: 1 << 20,
    output: 1 << 20,
};

/// A connection to a server that the test plays.
struct World {
    near: Connection<DuplexStream>,
    far: DuplexStream,
    server: Session,
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl World {
    /// Begins, with both streams accepted: 1 is for errors, 3 for data.
    fn new() -> Self {
        let (near, far) = tokio::io::duplex(PIPE);
        let (near, server) = (Connection::new(near, 2379), Session::new(SERVER));
        let mut world = Self { near, far, server };
        assert!(world.flushed().is_ready());
        let headers = |kind: &str| {
            let pairs = [("streamtype", kind), ("port", "2379"), ("requestid", "0")];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
        };
        let opened = |stream, kind| Event::Opened {
            stream,
            headers: headers(kind),
        };
        let expect = [opened(1, "error"), Event::Finished(1), opened(3, "data")];
        let events = world.heard();
        let mut sorted = events.clone();
        sorted.sort_by_key(|event| matches!(event, Event::Opened { stream: 3, .. }));
        assert_eq!(sorted, expect, "{events:?}");
        world.server.accept(1);
        world.server.accept(3);
        world
    }

    /// Sends what the server has to send, as far as it goes. Returns how much that was.
    fn said(&mut self) -> usize {
        let mut sum = 0;
        while !self.server.output().is_empty() {
            match Pin::new(&mut self.far).poll_write(&mut cx(), self.server.output()) {
                Poll::Ready(Ok(sent)) => {
                    self.server.output().advance(sent);
                    sum += sent;
                }
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        sum
    }

    /// What the server hears.
    fn heard(&mut self) -> Vec<Event> {
        let (mut events, mut buffer) = (Vec::new(), vec![0; PIPE]);
        loop {
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.far).poll_read(&mut cx(), &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => self.server.receive(read.filled()),
                _ => return events,
            }
            while let Some(event) = self.server.event().unwrap() {
                events.push(event);
            }
        }
    }

    fn read(&mut self) -> Poll<io::Result<Vec<u8>>> {
        let mut buffer = vec![0; 1 << 20];
        let mut read = ReadBuf::new(&mut buffer);
        ready!(Pin::new(&mut self.near).poll_read(&mut cx(), &mut read))?;
        Poll::Ready(Ok(read.filled().to_vec()))
    }

    /// The error that reading ends with.
    fn refused(&mut self) -> (io::ErrorKind, String) {
        match self.read() {
            Poll::Ready(Err(error)) => (error.kind(), error.to_string()),
            other => panic!("no error but {other:?}"),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.near).poll_write(&mut cx(), bytes)
    }

    fn flushed(&mut self) -> Poll<io::Result<()>> {
        Pin::new(&mut self.near).poll_flush(&mut cx())
    }
}

fn data(bytes: &[u8]) -> Event {
    let bytes = Bytes::copy_from_slice(bytes);
    Event::Data { stream: 3, bytes }
}

#[test]
fn bytes_go_both_ways_until_each_side_has_ended() {
    let mut world = World::new();
    assert!(world.read().is_pending());
    assert!(matches!(world.write(b"ask"), Poll::Ready(Ok(3))));
    assert_eq!(world.heard(), [data(b"ask")]);
    world.server.send(3, Bytes::from_static(b"answer"), false);
    world.said();
    assert!(matches!(world.read(), Poll::Ready(Ok(bytes)) if bytes == b"answer"));
    // The server's side is over: nothing more is read, and what is written arrives.
    world.server.send(3, Bytes::from_static(b"last"), true);
    world.said();
    assert!(matches!(world.read(), Poll::Ready(Ok(bytes)) if bytes == b"last"));
    assert!(matches!(world.read(), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
    assert!(matches!(world.write(b"more"), Poll::Ready(Ok(4))));
    assert!(Pin::new(&mut world.near).poll_shutdown(&mut cx()).is_ready());
    assert_eq!(world.heard(), [data(b"more"), Event::Finished(3)]);
    assert!(matches!(world.write(b"x"), Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe));
}

#[test]
fn the_words_of_the_server_are_the_error() {
    // As a kubelet: words, and then the end of both streams; also of a connection that is closed at once.
    for closed in [false, true] {
        let mut world = World::new();
        world.server.send(3, Bytes::from_static(b"first"), false);
        world.server.send(1, Bytes::from_static(b"connection refused\n"), false);
        world.server.reset(1, 5);
        world.server.reset(3, 5);
        world.said();
        if closed {
            world.far = tokio::io::duplex(1).0;
        }
        assert!(matches!(world.read(), Poll::Ready(Ok(bytes)) if bytes == b"first"));
        assert_eq!(world.refused().1, "connection refused");
        assert!(matches!(world.write(b"x"), Poll::Ready(Err(error)) if error.to_string() == "connection refused"));
    }
    // More words than an error needs are not kept.
    let mut world = World::new();
    for _ in 0..20 {
        world.server.send(1, vec![b'x'; 4096].into(), false);
        world.said();
        assert!(world.read().is_pending());
    }
    world.server.send(1, Bytes::new(), true);
    world.said();
    assert_eq!(world.refused().1.len(), WORDS);
}

#[test]
fn an_end_without_words_says_what_happened() {
    let mut world = World::new();
    world.server.reset(3, 3);
    world.said();
    let (kind, why) = world.refused();
    assert_eq!(kind, io::ErrorKind::ConnectionReset, "{why}");
    let mut world = World::new();
    world.far = tokio::io::duplex(1).0;
    let (kind, why) = world.refused();
    assert_eq!(kind, io::ErrorKind::UnexpectedEof, "{why}");
    assert!(matches!(world.write(b"x"), Poll::Ready(Err(_))));
}

#[test]
fn a_server_that_speaks_no_spdy_is_an_error() {
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0x80, 2, 0, 1, 0, 0, 0, 4]] {
        let mut world = World::new();
        world.server.output().clear();
        world.server.output().extend_from_slice(garbage);
        world.said();
        let (kind, why) = world.refused();
        assert!(kind == io::ErrorKind::InvalidData && why.contains("SPDY/3.1"), "{why}");
    }
}

#[test]
fn a_server_that_sends_without_end_is_held_back() {
    // Data that is not read.
    let mut world = World::new();
    let mut sum = 0;
    loop {
        world.server.send(3, vec![7; PIPE].into(), false);
        let sent = world.said();
        assert!(world.flushed().is_ready());
        if sent == 0 {
            break;
        }
        sum += sent;
    }
    assert!(sum < LIMITS.held + PIECE + PIPE, "{sum}");
    assert!(world.near.received.len() <= LIMITS.held + PIECE);
    // Reading goes on where it stopped.
    let mut read = 0;
    while let Poll::Ready(Ok(bytes)) = world.read() {
        read += bytes.len();
        world.said();
    }
    assert!(read >= sum - PIPE, "{read} {sum}");

    // Questions whose answers it does not take, and streams that it must not open.
    for frame in [
        &[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2][..],
        &[0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 1],
    ] {
        let mut world = World::new();
        let mut sum = 0;
        for _ in 0..1000 {
            world.server.output().extend_from_slice(&frame.repeat(500));
            sum += world.said();
            let _ = world.read();
            let output = world.near.session.output().len();
            assert!(output <= 2 * LIMITS.output + 2 * PIECE, "{output} of {sum}");
        }
    }
}

#[test]
fn the_windows_of_a_server_hold_back_what_is_written() {
    let mut world = World::new();
    // An initial window of 1000 bytes.
    world
        .server
        .output()
        .extend_from_slice(&[0x80, 3, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 3, 0xe8]);
    world.said();
    assert!(world.read().is_pending());
    assert!(matches!(world.write(&[7; 1500]), Poll::Ready(Ok(1500))));
    assert!(world.write(b"x").is_pending() && world.flushed().is_pending());
    let size = |events: Vec<Event>| -> usize {
        let sizes = events.into_iter().map(|event| match event {
            Event::Data { bytes, .. } => bytes.len(),
            _ => 0,
        });
        sizes.sum()
    };
    assert_eq!(size(world.heard()), 1000);
    // The server's own windows come back as it takes the bytes.
    world
        .server
        .output()
        .extend_from_slice(&[0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 2, 0]);
    world.said();
    assert!(world.flushed().is_ready());
    assert_eq!(size(world.heard()), 500);
    assert!(matches!(world.write(b"x"), Poll::Ready(Ok(1))));
}

#[test]
fn the_task_that_waits_is_woken_by_the_other_one() {
    #[derive(Default)]
    struct Flag(std::sync::atomic::AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let is_woken = |flag: &Flag| flag.0.swap(false, std::sync::atomic::Ordering::SeqCst);
    let mut world = World::new();
    let reader = Arc::new(Flag::default());
    let waker = Waker::from(reader.clone());
    let mut buffer = [0; 10];
    let mut read = ReadBuf::new(&mut buffer);
    let polled = Pin::new(&mut world.near).poll_read(&mut Context::from_waker(&waker), &mut read);
    assert!(polled.is_pending());
    world.server.send(3, Bytes::from_static(b"a"), false);
    world.said();
    assert!(is_woken(&reader), "by the connection");
    assert!(
        Pin::new(&mut world.near)
            .poll_read(&mut Context::from_waker(&waker), &mut read)
            .is_ready()
    );
    // The writer takes what the reader waits for.
    let polled = Pin::new(&mut world.near).poll_read(&mut Context::from_waker(&waker), &mut read);
    assert!(polled.is_pending());
    world.near.received.extend_from_slice(b"c");
    assert!(world.flushed().is_ready());
    assert!(is_woken(&reader), "by the writer");
}
