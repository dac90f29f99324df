//! The state of a connection: of a server, whose streams the other side opens, or of a client, which opens them.
//!
//! Kubernetes' programs in Go neither send WINDOW_UPDATE frames nor heed them: for them, TCP alone holds back a sender. So the windows of this
//! side limit nothing until the other side has shown that it counts them, by a WINDOW_UPDATE or an initial window in SETTINGS. And what
//! such a program sends beyond its window is no violation: [`Session::may_receive`] says when to stop reading.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use crate::frame::{Decoder, Encoder, Frame, Violation, status};
use crate::headers::Headers;

/// The window of a stream, and of the connection, in bytes: the protocol's default.
pub const WINDOW: usize = 64 << 10;
/// The largest window that the protocol knows.
const LARGEST: i64 = i32::MAX as i64;
/// The number of the setting for the window of each new stream.
const INITIAL_WINDOW: u32 = 7;
/// The number of the setting for the most streams.
const MOST_STREAMS: u32 = 4;

/// What one connection may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most streams of the other side that are open at a time. A client accepts none.
    pub streams: usize,
    /// The most bytes of the headers of a stream, decompressed.
    pub header_bytes: usize,
    /// How many received bytes are held until reading stops.
    pub held: usize,
    /// How many bytes wait for being sent until no more data is taken. Answers may wait as much again until reading stops.
    pub output: usize,
}

/// What the other side has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has opened a stream, which [`Session::accept`] or [`Session::reset`] answers.
    Opened {
        /// The number of the stream.
        stream: u32,
        /// What it is for.
        headers: Headers,
    },
    /// Data was received. [`Session::consumed`] gives back its room.
    Data {
        /// The number of the stream.
        stream: u32,
        /// The bytes.
        bytes: Bytes,
    },
    /// It sends nothing more on a stream.
    Finished(u32),
    /// It has ended a stream in both directions.
    Reset(u32),
    /// It opens no further streams.
    GoneAway,
}

/// A stream that is not closed in both directions, or whose data is still held.
#[derive(Debug)]
struct Stream {
    /// The other side may send.
    receives: bool,
    /// This side may send.
    sends: bool,
    /// Received bytes that are not consumed.
    held: usize,
    /// Consumed bytes for which no WINDOW_UPDATE was sent.
    consumed: usize,
    /// What the other side's window has left; below zero, more was sent than a window that it counts allows.
    window: i64,
    /// What waits for the window, and whether it is the last.
    waiting: Option<(Bytes, bool)>,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    decoder: Decoder,
    encoder: Encoder,
    output: BytesMut,
    streams: BTreeMap<u32, Stream>,
    /// Whether this side opens the streams.
    is_client: bool,
    /// The last stream that was opened by the side that may, also if it was refused.
    last: u32,
    /// The last stream that a server has opened; all of them are refused.
    pushed: u32,
    /// The streams of which everything was put into the output since they were asked for.
    drained: Vec<u32>,
    held: usize,
    consumed: usize,
    /// The window of each new stream.
    initial: i64,
    /// Whether the other side counts the windows of streams.
    counts_streams: bool,
    /// Whether it counts the window of the connection, and what that has left.
    counts_connection: bool,
    window: i64,
    pings: u32,
    /// An event that follows from the same frame as the last one.
    next: Option<Event>,
    failed: Option<Violation>,
    ended: bool,
}

impl Session {
    /// A connection whose streams the other side opens.
    pub fn new(limits: Limits) -> Self {
        let mut session = Self::of(limits, false);
        let most = u32::try_from(limits.streams).unwrap_or(u32::MAX);
        session.write(&Frame::Settings(vec![(MOST_STREAMS, most)]));
        session
    }

    /// A connection whose streams this side opens, with [`Session::open`].
    pub fn client(limits: Limits) -> Self {
        Self::of(limits, true)
    }

    fn of(limits: Limits, is_client: bool) -> Self {
        let window = i64::try_from(WINDOW).unwrap_or(LARGEST);
        Self {
            limits,
            decoder: Decoder::new(limits.header_bytes),
            encoder: Encoder::default(),
            output: BytesMut::new(),
            streams: BTreeMap::new(),
            is_client,
            last: 0,
            pushed: 0,
            drained: Vec::new(),
            held: 0,
            consumed: 0,
            initial: window,
            counts_streams: false,
            counts_connection: false,
            window,
            pings: 0,
            next: None,
            failed: None,
            ended: false,
        }
    }

    fn write(&mut self, frame: &Frame) {
        self.encoder.write(frame, &mut self.output);
    }

    /// Adds received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// Whether more bytes should be received: not while too many are held, or wait for being sent. A stream with a full window counts: a
    /// client that does not count windows would go on.
    pub fn may_receive(&self) -> bool {
        self.output.len() < 2 * self.limits.output
            && self.held < self.limits.held
            && (self.held < WINDOW || self.streams.values().all(|stream| stream.held < WINDOW))
    }

    /// What is to be sent. The caller removes what it has sent.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Whether further data should be given for sending.
    pub fn may_send(&self) -> bool {
        self.output.len() < self.limits.output
    }

    /// What follows from the received bytes. After an error the output ends with a GOAWAY frame, and nothing more is read.
    pub fn event(&mut self) -> Result<Option<Event>, Violation> {
        if let Some(event) = self.next.take() {
            return Ok(Some(event));
        }
        if let Some(violation) = &self.failed {
            return Err(violation.clone());
        }
        loop {
            let event = match self.decoder.frame() {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => self.take(frame),
                Err(violation) => Err(violation),
            };
            match event {
                Ok(None) => {}
                Ok(event) => return Ok(event),
                Err(violation) => {
                    self.failed = Some(violation.clone());
                    self.end(status::PROTOCOL_ERROR);
                    return Err(violation);
                }
            }
        }
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Event>, Violation> {
        match frame {
            Frame::SynStream {
                stream,
                headers,
                fin,
                unidirectional,
            } => self.opened(stream, headers, fin, unidirectional),
            Frame::Data { stream, bytes, fin } => self.data(stream, bytes, fin),
            Frame::RstStream { stream, .. } => Ok(self.forget(stream).then_some(Event::Reset(stream))),
            Frame::Settings(entries) => {
                for (_, value) in entries.into_iter().filter(|(id, _)| *id == INITIAL_WINDOW) {
                    self.initial_window(value);
                }
                Ok(None)
            }
            Frame::WindowUpdate { stream, by } => Ok(self.window_update(stream, by)),
            // The numbers of a client's questions are odd, those of a server's even.
            Frame::Ping(id) if (id % 2 == 0) == self.is_client => {
                self.write(&Frame::Ping(id));
                Ok(None)
            }
            Frame::GoAway { .. } => Ok(Some(Event::GoneAway)),
            Frame::Headers { stream, fin: true, .. } | Frame::SynReply { stream, fin: true, .. } => {
                self.data(stream, Bytes::new(), true)
            }
            // Nothing waits for a reply: a stream that is refused is reset.
            Frame::Headers { .. } | Frame::SynReply { .. } | Frame::Ping(_) | Frame::Unknown(_) => Ok(None),
        }
    }

    fn opened(
        &mut self,
        stream: u32,
        headers: Headers,
        fin: bool,
        unidirectional: bool,
    ) -> Result<Option<Event>, Violation> {
        if self.is_client {
            self.pushed = self.pushed.max(stream);
            let status = status::REFUSED_STREAM;
            self.write(&Frame::RstStream { stream, status });
            return Ok(None);
        }
        if stream.is_multiple_of(2) || stream <= self.last {
            return Err(Violation::Number(stream));
        }
        self.last = stream;
        if self.ended || self.streams.len() >= self.limits.streams {
            let status = status::REFUSED_STREAM;
            self.write(&Frame::RstStream { stream, status });
            return Ok(None);
        }
        self.insert(stream, !fin, !unidirectional);
        self.next = fin.then_some(Event::Finished(stream));
        Ok(Some(Event::Opened { stream, headers }))
    }

    fn insert(&mut self, stream: u32, receives: bool, sends: bool) {
        let state = Stream {
            receives,
            sends,
            held: 0,
            consumed: 0,
            window: self.initial,
            waiting: None,
        };
        self.streams.insert(stream, state);
    }

    /// Opens a stream of a client, in both directions. Returns its number. Data may follow at once.
    pub fn open(&mut self, headers: Headers) -> u32 {
        // Odd numbers that grow.
        let stream = if self.last == 0 { 1 } else { self.last + 2 };
        self.last = stream;
        self.insert(stream, true, true);
        self.write(&Frame::SynStream {
            stream,
            headers,
            fin: false,
            unidirectional: false,
        });
        stream
    }

    fn data(&mut self, stream: u32, bytes: Bytes, fin: bool) -> Result<Option<Event>, Violation> {
        let Some(state) = self.streams.get_mut(&stream).filter(|state| state.receives) else {
            // What was under way when a stream was ended is no error. The room of the connection comes back.
            self.take_back(bytes.len());
            if stream > self.last.max(self.pushed) {
                // A client knows its streams: what is received is something else, such as text.
                if self.is_client {
                    return Err(Violation::Frame("data of a stream that was never opened"));
                }
                let status = status::INVALID_STREAM;
                self.write(&Frame::RstStream { stream, status });
            }
            return Ok(None);
        };
        state.held += bytes.len();
        state.receives = !fin;
        self.held += bytes.len();
        let finished = fin.then_some(Event::Finished(stream));
        self.tidy(stream);
        if bytes.is_empty() {
            return Ok(finished);
        }
        self.next = finished;
        Ok(Some(Event::Data { stream, bytes }))
    }

    /// Accepts a stream that was opened.
    pub fn accept(&mut self, stream: u32) {
        if self.streams.contains_key(&stream) {
            let headers = Headers::new();
            let fin = self.streams.get(&stream).is_some_and(|state| !state.sends);
            self.write(&Frame::SynReply { stream, headers, fin });
        }
    }

    /// Ends a stream in both directions, unless it has ended. What is held of it counts no more.
    pub fn reset(&mut self, stream: u32, status: u32) {
        let is_open = self
            .streams
            .get(&stream)
            .is_some_and(|state| state.receives || state.sends);
        if self.forget(stream) && is_open {
            self.write(&Frame::RstStream { stream, status });
        }
    }

    /// Forgets a stream. Whether there was one.
    fn forget(&mut self, stream: u32) -> bool {
        let Some(state) = self.streams.remove(&stream) else {
            return false;
        };
        self.held -= state.held;
        self.take_back(state.held);
        true
    }

    /// Forgets a stream that is closed in both directions.
    fn tidy(&mut self, stream: u32) {
        let is_over = |state: &Stream| !state.receives && !state.sends && state.held == 0 && state.waiting.is_none();
        if self.streams.get(&stream).is_some_and(is_over) {
            self.streams.remove(&stream);
        }
    }

    /// Sends data, or keeps it until the other side has room. The caller sends nothing more on the stream until it is drained, and
    /// nothing after the last.
    pub fn send(&mut self, stream: u32, bytes: Bytes, fin: bool) {
        if let Some(state) = self.streams.get_mut(&stream).filter(|state| state.sends) {
            let (mut all, before) = (bytes, state.waiting.take());
            if let Some((first, _)) = before {
                all = [first.as_ref(), all.as_ref()].concat().into();
            }
            state.waiting = Some((all, fin));
            self.flush(stream);
        }
    }

    /// Whether this side may still send on a stream.
    pub fn is_open(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|state| state.sends)
    }

    /// The streams of which everything that was given for sending is in the output, since the last call.
    pub fn drained(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.drained)
    }

    /// Puts what waits on a stream into the output, as far as there is room.
    fn flush(&mut self, stream: u32) {
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        let Some((mut bytes, fin)) = state.waiting.take() else {
            return;
        };
        let mut room = i64::MAX;
        if self.counts_streams {
            room = room.min(state.window);
        }
        if self.counts_connection {
            room = room.min(self.window);
        }
        let piece = bytes.len().min(usize::try_from(room).unwrap_or(0));
        let now = bytes.split_to(piece);
        let sent = i64::try_from(piece).unwrap_or(LARGEST);
        state.window -= sent;
        self.window -= sent;
        let is_all = bytes.is_empty();
        if is_all {
            state.sends = !fin;
            self.drained.push(stream);
        } else {
            state.waiting = Some((bytes, fin));
        }
        let fin = fin && is_all;
        if piece > 0 || fin {
            let bytes = now;
            self.write(&Frame::Data { stream, bytes, fin });
        }
        self.tidy(stream);
    }

    fn flush_all(&mut self) {
        let waiting = self.streams.iter().filter(|(_, state)| state.waiting.is_some());
        for stream in waiting.map(|(stream, _)| *stream).collect::<Vec<_>>() {
            self.flush(stream);
        }
    }

    /// Gives back the room of received data.
    pub fn consumed(&mut self, stream: u32, bytes: usize) {
        let Some(state) = self.streams.get_mut(&stream) else {
            // It was given back when the stream ended.
            return;
        };
        let bytes = bytes.min(state.held);
        state.held -= bytes;
        state.consumed += bytes;
        self.held -= bytes;
        let is_due = state.receives && state.consumed >= WINDOW / 2;
        let by = if is_due { std::mem::take(&mut state.consumed) } else { 0 };
        self.grow(stream, by);
        self.take_back(bytes);
        self.tidy(stream);
    }

    /// Gives back room of the connection.
    fn take_back(&mut self, bytes: usize) {
        self.consumed += bytes;
        if self.consumed >= WINDOW / 2 {
            let by = std::mem::take(&mut self.consumed);
            self.grow(0, by);
        }
    }

    fn grow(&mut self, stream: u32, by: usize) {
        if by > 0 {
            let by = u32::try_from(by).unwrap_or(u32::MAX >> 1);
            self.write(&Frame::WindowUpdate { stream, by });
        }
    }

    fn initial_window(&mut self, value: u32) {
        let value = i64::from(value).min(LARGEST);
        self.counts_streams = true;
        for state in self.streams.values_mut() {
            state.window += value - self.initial;
        }
        self.initial = value;
        self.flush_all();
    }

    fn window_update(&mut self, stream: u32, by: u32) -> Option<Event> {
        if stream == 0 {
            self.counts_connection = true;
            self.window = (self.window + i64::from(by)).min(LARGEST);
            self.flush_all();
            return None;
        }
        self.counts_streams = true;
        let state = self.streams.get_mut(&stream)?;
        state.window += i64::from(by);
        if state.window > LARGEST {
            self.reset(stream, status::FLOW_CONTROL_ERROR);
            // As if the other side had ended it.
            return Some(Event::Reset(stream));
        }
        self.flush_all();
        None
    }

    /// Asks whether the other side is there. Nothing waits for the answer: a connection without a peer fails by the question.
    pub fn ping(&mut self) {
        self.pings = self.pings.wrapping_add(2) & (u32::MAX >> 1);
        self.write(&Frame::Ping(self.pings | u32::from(self.is_client)));
    }

    /// Says that this side accepts no more streams.
    pub fn end(&mut self, status: u32) {
        if !std::mem::replace(&mut self.ended, true) {
            // The last one of the other side.
            let last = if self.is_client { 0 } else { self.last };
            self.write(&Frame::GoAway { last, status });
        }
    }
}

#[cfg(test)]
mod tests;
