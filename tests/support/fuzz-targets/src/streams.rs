//! What a client sends over SPDY to a server that echoes its data, and a server to a client with two streams.

use std::collections::BTreeMap;

use windlass_spdy::{Event, Limits, Session, Violation};

const LIMITS: Limits = Limits {
    streams: 8,
    header_bytes: 4 << 10,
    held: 64 << 10,
    output: 64 << 10,
};

/// What the server has made of the bytes.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    data: BTreeMap<u32, Vec<u8>>,
    finished: Vec<u32>,
    reset: Vec<u32>,
    violation: Option<Violation>,
}

/// Runs the target on one input; a panic is a bug in what it calls. The first byte is the size of the pieces in which the others come.
pub fn run(input: &[u8]) {
    let Some((size, bytes)) = input.split_first() else {
        return;
    };
    let client = || {
        let mut session = Session::client(LIMITS);
        session.open(vec![]);
        session.open(vec![]);
        session
    };
    for start in [|| Session::new(LIMITS), client] {
        let whole = echoed(start(), bytes, bytes.len().max(1));
        assert_eq!(
            whole,
            echoed(start(), bytes, usize::from(*size) + 1),
            "it does not matter where the bytes are split"
        );
    }
}

fn echoed(mut session: Session, bytes: &[u8], size: usize) -> Seen {
    let mut seen = Seen::default();
    for piece in bytes.chunks(size) {
        session.receive(piece);
        loop {
            match session.event() {
                Ok(Some(event)) => take(&mut session, &mut seen, event),
                Ok(None) => break,
                Err(violation) => {
                    seen.violation = Some(violation);
                    return seen;
                }
            }
        }
        let waits = session.output().len();
        assert!(
            waits < 64 * (bytes.len() + 1024),
            "{waits} bytes answer {}",
            bytes.len()
        );
    }
    seen
}

fn take(session: &mut Session, seen: &mut Seen, event: Event) {
    match event {
        Event::Opened { stream, .. } => session.accept(stream),
        Event::Data { stream, bytes } => {
            seen.data.entry(stream).or_default().extend_from_slice(&bytes);
            session.consumed(stream, bytes.len());
            if session.is_open(stream) {
                session.send(stream, bytes, false);
            }
        }
        Event::Finished(stream) => {
            seen.finished.push(stream);
            session.send(stream, bytes::Bytes::new(), true);
        }
        Event::Reset(stream) => seen.reset.push(stream),
        Event::GoneAway => {}
    }
}
