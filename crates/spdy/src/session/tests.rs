use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    streams: 4,
    header_bytes: 4 << 10,
    held: 256 << 10,
    output: 256 << 10,
};

/// The other side of a session: frames in, frames out.
struct Peer {
    session: Session,
    encoder: Encoder,
    decoder: Decoder,
}

impl Peer {
    fn new() -> Self {
        Self {
            session: Session::new(LIMITS),
            encoder: Encoder::default(),
            decoder: Decoder::new(1 << 10),
        }
    }

    /// Sends frames. Returns what follows.
    fn say(&mut self, frames: &[Frame]) -> Result<Vec<Event>, Violation> {
        let mut bytes = BytesMut::new();
        for frame in frames {
            self.encoder.write(frame, &mut bytes);
        }
        self.session.receive(&bytes);
        let mut events = Vec::new();
        while let Some(event) = self.session.event()? {
            events.push(event);
        }
        Ok(events)
    }

    /// The frames that the session has sent since the last call.
    fn heard(&mut self) -> Vec<Frame> {
        let bytes = self.session.output().split();
        self.decoder.push(&bytes);
        let mut frames = Vec::new();
        while let Some(frame) = self.decoder.frame().unwrap() {
            frames.push(frame);
        }
        frames
    }

    /// Opens streams, which are accepted.
    fn open(&mut self, streams: &[u32]) {
        for stream in streams {
            self.say(&[syn(*stream)]).unwrap();
            self.session.accept(*stream);
        }
        self.heard();
    }
}

fn syn(stream: u32) -> Frame {
    Frame::SynStream {
        stream,
        headers: Headers::new(),
        fin: false,
        unidirectional: false,
    }
}

fn data(stream: u32, bytes: &[u8], fin: bool) -> Frame {
    let bytes = Bytes::copy_from_slice(bytes);
    Frame::Data { stream, bytes, fin }
}

fn rst(stream: u32, status: u32) -> Frame {
    Frame::RstStream { stream, status }
}

fn size(frames: &[Frame]) -> usize {
    let sizes = frames.iter().map(|frame| match frame {
        Frame::Data { bytes, .. } => bytes.len(),
        _ => 0,
    });
    sizes.sum()
}

#[test]
fn a_stream_lives_until_both_sides_have_ended_it() {
    let mut peer = Peer::new();
    assert_eq!(peer.heard(), [Frame::Settings(vec![(MOST_STREAMS, 4)])]);
    let headers = vec![("port".to_owned(), "1".to_owned())];
    let opened = Frame::SynStream {
        stream: 1,
        headers: headers.clone(),
        fin: false,
        unidirectional: false,
    };
    assert_eq!(peer.say(&[opened]), Ok(vec![Event::Opened { stream: 1, headers }]));
    peer.session.accept(1);
    peer.session.send(1, Bytes::from_static(b"a"), false);
    assert_eq!(peer.session.drained(), [1]);
    let reply = Frame::SynReply {
        stream: 1,
        headers: Headers::new(),
        fin: false,
    };
    assert_eq!(peer.heard(), [reply, data(1, b"a", false)]);
    let received = Event::Data {
        stream: 1,
        bytes: Bytes::from_static(b"b"),
    };
    assert_eq!(peer.say(&[data(1, b"b", true)]), Ok(vec![received, Event::Finished(1)]));
    assert!(peer.session.is_open(1), "it is half-closed");
    peer.session.send(1, Bytes::from_static(b"c"), true);
    assert_eq!(peer.heard(), [data(1, b"c", true)]);
    assert!(!peer.session.is_open(1));
    assert_eq!(peer.session.streams.len(), 1, "received data is held");
    peer.session.consumed(1, 1);
    assert!(peer.session.streams.is_empty());
    peer.session.send(1, Bytes::from_static(b"d"), false);
    assert_eq!(peer.heard(), [], "nothing is sent on a closed stream");
}

#[test]
fn what_must_not_be_said_ends_the_connection() {
    let check = |frames: &[Frame], violation: Violation| {
        let mut peer = Peer::new();
        peer.heard();
        assert_eq!(peer.say(frames), Err(violation.clone()), "{frames:?}");
        assert!(matches!(peer.heard().last(), Some(Frame::GoAway { status: 1, .. })));
        assert_eq!(peer.say(&[syn(9)]), Err(violation), "nothing more is read");
        assert_eq!(peer.heard(), []);
    };
    check(&[syn(2)], Violation::Number(2));
    check(&[syn(3), syn(3)], Violation::Number(3));
    check(&[syn(5), syn(3)], Violation::Number(3));
}

#[test]
fn what_is_too_much_or_too_late_is_refused_by_stream() {
    let mut peer = Peer::new();
    peer.open(&[1, 3, 5, 7]);
    assert_eq!(peer.say(&[syn(9)]), Ok(vec![]));
    assert_eq!(peer.heard(), [rst(9, status::REFUSED_STREAM)]);
    assert_eq!(peer.say(&[rst(3, 5), rst(3, 5)]), Ok(vec![Event::Reset(3)]));
    assert_eq!(
        peer.say(&[data(3, b"late", false), data(9, b"late", false)]),
        Ok(vec![])
    );
    assert_eq!(peer.heard(), [], "it was under way");
    assert_eq!(peer.say(&[data(11, b"early", false)]), Ok(vec![]));
    assert_eq!(peer.heard(), [rst(11, status::INVALID_STREAM)]);
    assert!(matches!(
        peer.say(&[syn(11)]).unwrap()[..],
        [Event::Opened { stream: 11, .. }]
    ));
    peer.session.reset(11, status::CANCEL);
    peer.session.reset(11, status::CANCEL);
    assert_eq!(peer.heard(), [rst(11, status::CANCEL)]);
    peer.session.end(status::OK);
    assert_eq!(peer.say(&[syn(13)]), Ok(vec![]));
    let last = Frame::GoAway { last: 11, status: 0 };
    assert_eq!(peer.heard(), [last, rst(13, status::REFUSED_STREAM)]);
}

#[test]
fn questions_are_answered_and_asked() {
    let mut peer = Peer::new();
    peer.heard();
    assert_eq!(
        peer.say(&[Frame::Ping(1), Frame::Ping(2), Frame::Unknown(77)]),
        Ok(vec![])
    );
    assert_eq!(peer.heard(), [Frame::Ping(1)]);
    peer.session.ping();
    peer.session.ping();
    assert_eq!(peer.heard(), [Frame::Ping(2), Frame::Ping(4)]);
    assert_eq!(
        peer.say(&[Frame::GoAway { last: 0, status: 0 }]),
        Ok(vec![Event::GoneAway])
    );
}

#[test]
fn a_peer_that_counts_no_windows_is_sent_everything() {
    let mut peer = Peer::new();
    peer.open(&[1]);
    for _ in 0..10 {
        peer.session.send(1, vec![7; 100_000].into(), false);
        assert_eq!(peer.session.drained(), [1]);
        assert_eq!(size(&peer.heard()), 100_000);
    }
}

#[test]
fn the_windows_of_a_peer_that_counts_them_are_kept() {
    let mut peer = Peer::new();
    peer.open(&[1, 3]);
    peer.say(&[Frame::Settings(vec![(INITIAL_WINDOW, 1000)])]).unwrap();
    peer.session.send(1, vec![7; 1500].into(), true);
    assert_eq!(size(&peer.heard()), 1000);
    assert_eq!((peer.session.drained(), peer.session.is_open(1)), (vec![], true));
    peer.session.send(3, vec![7; 10].into(), false);
    assert_eq!((size(&peer.heard()), peer.session.drained()), (10, vec![3]));
    peer.say(&[Frame::WindowUpdate { stream: 1, by: 100 }]).unwrap();
    assert_eq!(size(&peer.heard()), 100);
    // The initial window changes those of open streams.
    peer.say(&[Frame::Settings(vec![(INITIAL_WINDOW, 1100)])]).unwrap();
    assert_eq!(size(&peer.heard()), 100);
    peer.say(&[Frame::Settings(vec![(INITIAL_WINDOW, 100)])]).unwrap();
    peer.say(&[Frame::WindowUpdate { stream: 1, by: 1000 }]).unwrap();
    assert_eq!(peer.heard(), []);
    peer.say(&[Frame::WindowUpdate { stream: 1, by: 900 }]).unwrap();
    assert_eq!(peer.heard(), [data(1, &[7; 300], true)]);
    assert_eq!((peer.session.drained(), peer.session.is_open(1)), (vec![1], false));
    // The connection has a window as well.
    peer.say(&[Frame::Settings(vec![(INITIAL_WINDOW, 1 << 20)])]).unwrap();
    peer.say(&[Frame::WindowUpdate { stream: 0, by: 1000 }]).unwrap();
    peer.session.send(3, vec![7; 80_000].into(), false);
    assert_eq!(size(&peer.heard()), (64 << 10) + 1000 - 1500 - 10);
    let most = Frame::WindowUpdate {
        stream: 3,
        by: u32::MAX >> 1,
    };
    assert_eq!(peer.say(&[most]), Ok(vec![Event::Reset(3)]));
    assert_eq!(peer.heard(), [rst(3, status::FLOW_CONTROL_ERROR)]);
}

#[test]
fn reading_stops_while_data_is_held_and_room_is_given_back() {
    let mut peer = Peer::new();
    peer.open(&[1, 3]);
    peer.say(&[data(1, &vec![7; WINDOW - 1], false)]).unwrap();
    assert!(peer.session.may_receive());
    peer.say(&[data(3, &[7; 2], false)]).unwrap();
    assert!(peer.session.may_receive(), "no window is full");
    peer.say(&[data(1, &[7; 1], false)]).unwrap();
    assert!(!peer.session.may_receive());
    peer.session.consumed(1, WINDOW / 2);
    assert!(peer.session.may_receive());
    let by = u32::try_from(WINDOW / 2).unwrap();
    let expect = [
        Frame::WindowUpdate { stream: 1, by },
        Frame::WindowUpdate { stream: 0, by },
    ];
    assert_eq!(peer.heard(), expect);
    // The room of a stream that ends comes back.
    peer.session.reset(1, status::CANCEL);
    peer.session.consumed(1, WINDOW / 2);
    assert_eq!(peer.session.held, 2);
    assert_eq!(
        peer.heard(),
        [Frame::WindowUpdate { stream: 0, by }, rst(1, status::CANCEL)]
    );
}

#[test]
fn reading_stops_while_answers_are_not_taken() {
    let mut peer = Peer::new();
    while peer.session.may_receive() {
        peer.say(&vec![Frame::Ping(1); 1000]).unwrap();
    }
    assert!(!peer.session.may_send() && peer.session.output().len() < 2 * LIMITS.output + 20_000);
    peer.heard();
    assert!(peer.session.may_receive() && peer.session.may_send());
    peer.open(&[1]);
    peer.session.send(1, vec![7; LIMITS.output].into(), false);
    assert!(
        peer.session.may_receive() && !peer.session.may_send(),
        "a client that takes nothing yet is still read from"
    );
}

/// A client whose peer is the test.
fn client() -> Peer {
    Peer {
        session: Session::client(LIMITS),
        encoder: Encoder::default(),
        decoder: Decoder::new(1 << 10),
    }
}

#[test]
fn a_client_opens_streams_and_accepts_none() {
    let mut peer = client();
    assert_eq!(peer.heard(), [], "it has no settings of its own");
    let headers = vec![("port".to_owned(), "1".to_owned())];
    assert_eq!((peer.session.open(headers.clone()), peer.session.open(vec![])), (1, 3));
    peer.session.send(1, Bytes::from_static(b"a"), false);
    let opened = Frame::SynStream {
        stream: 1,
        headers,
        fin: false,
        unidirectional: false,
    };
    assert_eq!(peer.heard(), [opened, syn(3), data(1, b"a", false)]);
    let reply = |stream, fin| Frame::SynReply {
        stream,
        headers: Headers::new(),
        fin,
    };
    assert_eq!(
        peer.say(&[reply(1, false), reply(3, true)]),
        Ok(vec![Event::Finished(3)])
    );
    assert!(peer.session.is_open(3), "the other side alone has ended it");
    // A stream of the server, whatever its number.
    assert_eq!(peer.say(&[syn(2), syn(5), syn(5)]), Ok(vec![]));
    assert_eq!(
        peer.heard(),
        [2, 5, 5].map(|stream| rst(stream, status::REFUSED_STREAM))
    );
    assert_eq!(peer.say(&[data(2, b"x", false), data(4, b"x", true)]), Ok(vec![]));
    assert_eq!(peer.heard(), [], "it was under way");
    assert_eq!(peer.say(&[Frame::Ping(1), Frame::Ping(2)]), Ok(vec![]));
    assert_eq!(peer.heard(), [Frame::Ping(2)], "its own question comes back");
    peer.session.ping();
    peer.session.ping();
    assert_eq!(peer.heard(), [Frame::Ping(3), Frame::Ping(5)]);
    assert_eq!(peer.say(&[rst(1, 3)]), Ok(vec![Event::Reset(1)]));
    assert!(!peer.session.is_open(1));
    peer.session.end(status::OK);
    assert_eq!(peer.heard(), [Frame::GoAway { last: 0, status: 0 }]);
    let never = Violation::Frame("data of a stream that was never opened");
    assert_eq!(peer.say(&[data(7, b"x", false)]), Err(never));
}

/// Moves what one side has written to the other one. Returns what follows there.
fn moved(from: &mut Session, to: &mut Session) -> Vec<Event> {
    let bytes = from.output().split();
    to.receive(&bytes);
    std::iter::from_fn(|| to.event().unwrap()).collect()
}

fn frames() -> impl Strategy<Value = Frame> {
    let stream = || 0..12_u32;
    prop_oneof![
        3 => (stream(), any::<bool>(), any::<bool>()).prop_map(|(stream, fin, unidirectional)| Frame::SynStream {
            stream: stream * 2 + 1,
            headers: Headers::new(),
            fin,
            unidirectional
        }),
        1 => (1..12_u32).prop_map(|stream| rst(stream, 5)),
        6 => (1..12_u32, 0..40_000_usize, any::<bool>()).prop_map(|(stream, size, fin)| data(stream, &vec![7; size], fin)),
        1 => (stream(), any::<u32>()).prop_map(|(stream, by)| Frame::WindowUpdate { stream, by: by >> 1 }),
        1 => any::<u32>().prop_map(|value| Frame::Settings(vec![(INITIAL_WINDOW, value)])),
        1 => any::<u32>().prop_map(|id| Frame::Ping(id >> 1)),
    ]
}

/// What this side does between frames.
#[derive(Clone, Debug)]
enum Act {
    Accept(u32),
    Send(u32, usize, bool),
    Reset(u32),
    Consume(u32, usize),
}

fn acts() -> impl Strategy<Value = Act> {
    let stream = || 0..24_u32;
    prop_oneof![
        stream().prop_map(Act::Accept),
        (stream(), 0..40_000_usize, any::<bool>()).prop_map(|(stream, size, fin)| Act::Send(stream, size, fin)),
        stream().prop_map(Act::Reset),
        (stream(), 0..40_000_usize).prop_map(|(stream, size)| Act::Consume(stream, size)),
    ]
}

proptest! {
    #[test]
    fn a_session_keeps_its_books_whatever_both_sides_do(steps in vec((frames(), acts()), 0..40)) {
        let mut peer = Peer::new();
        for (frame, act) in steps {
            let said = peer.say(&[frame]);
            match act {
                Act::Accept(stream) => peer.session.accept(stream),
                Act::Send(stream, size, fin) => peer.session.send(stream, vec![7; size].into(), fin),
                Act::Reset(stream) => peer.session.reset(stream, status::CANCEL),
                Act::Consume(stream, size) => peer.session.consumed(stream, size),
            }
            let session = &peer.session;
            let held: usize = session.streams.values().map(|state| state.held).sum();
            prop_assert_eq!(session.held, held);
            prop_assert!(session.streams.len() <= LIMITS.streams);
            prop_assert!(session.consumed < WINDOW / 2);
            peer.heard();
            if said.is_err() {
                break;
            }
        }
    }

    #[test]
    fn a_client_and_a_server_understand_each_other(
        pieces in vec((any::<bool>(), 0..2_usize, vec(any::<u8>(), 0..3000)), 0..20),
    ) {
        let (mut client, mut server) = (Session::client(LIMITS), Session::new(LIMITS));
        let streams = [client.open(vec![("a".to_owned(), "b".to_owned())]), client.open(vec![])];
        for event in moved(&mut client, &mut server) {
            let Event::Opened { stream, .. } = event else { panic!("{event:?}") };
            server.accept(stream);
        }
        prop_assert_eq!(moved(&mut server, &mut client), []);
        for (up, stream, bytes) in pieces {
            let (from, to) = if up { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let (stream, size, bytes) = (streams[stream], bytes.len(), Bytes::from(bytes));
            from.send(stream, bytes.clone(), false);
            prop_assert_eq!(from.drained(), [stream]);
            let expect = if size == 0 { vec![] } else { vec![Event::Data { stream, bytes }] };
            prop_assert_eq!(moved(from, to), expect);
            to.consumed(stream, size);
            prop_assert_eq!(moved(to, from), []);
        }
        for stream in streams {
            client.send(stream, Bytes::new(), true);
            server.send(stream, Bytes::new(), true);
            prop_assert_eq!(moved(&mut client, &mut server), [Event::Finished(stream)]);
            prop_assert_eq!(moved(&mut server, &mut client), [Event::Finished(stream)]);
        }
        prop_assert!(client.streams.is_empty() && server.streams.is_empty());
    }
}
