//! Frames: what they are, and how they are read and written.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::headers::{Deflater, Headers, Inflater};

/// The version of the protocol in control frames. SPDY/3.1 has the same.
const VERSION: u16 = 3;
/// The most bytes of a control frame. Those of Kubernetes' clients have less than 200.
const CONTROL: usize = 16 << 10;
/// The most bytes of a data frame.
const DATA: usize = (1 << 24) - 1;
const FIN: u8 = 1;
const UNIDIRECTIONAL: u8 = 2;
/// The length of the head of a frame.
const HEAD: usize = 8;

/// The reasons of RST_STREAM and GOAWAY frames that are sent.
pub mod status {
    /// RST_STREAM and GOAWAY: the other side has violated the protocol.
    pub const PROTOCOL_ERROR: u32 = 1;
    /// RST_STREAM: a frame is for a stream that is not open.
    pub const INVALID_STREAM: u32 = 2;
    /// RST_STREAM: the stream is refused before anything was done.
    pub const REFUSED_STREAM: u32 = 3;
    /// RST_STREAM: the stream is not needed any more.
    pub const CANCEL: u32 = 5;
    /// RST_STREAM: the window would be larger than any can be.
    pub const FLOW_CONTROL_ERROR: u32 = 7;
    /// GOAWAY: the connection ends in order.
    pub const OK: u32 = 0;
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A block of headers.
    #[error("headers cannot be read: {0}")]
    Headers(&'static str),
    /// A frame.
    #[error("a frame cannot be read: {0}")]
    Frame(&'static str),
    /// A stream that must not be opened.
    #[error("stream {0} cannot be opened: the numbers of a client's streams are odd and grow")]
    Number(u32),
}

/// A frame. `fin` says that its sender sends nothing more on the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// The number of the stream.
        stream: u32,
        /// What the stream is for.
        headers: Headers,
        /// The last of the stream.
        fin: bool,
        /// The other side sends nothing on the stream.
        unidirectional: bool,
    },
    /// Accepts a stream.
    SynReply {
        /// The number of the stream.
        stream: u32,
        /// Further headers.
        headers: Headers,
        /// The last of the stream.
        fin: bool,
    },
    /// Ends a stream in both directions.
    RstStream {
        /// The number of the stream.
        stream: u32,
        /// Why.
        status: u32,
    },
    /// Settings, by number.
    Settings(Vec<(u32, u32)>),
    /// A question that is answered with itself.
    Ping(u32),
    /// No further streams are accepted.
    GoAway {
        /// The last stream that was accepted.
        last: u32,
        /// Why.
        status: u32,
    },
    /// Further headers of a stream.
    Headers {
        /// The number of the stream.
        stream: u32,
        /// The headers.
        headers: Headers,
        /// The last of the stream.
        fin: bool,
    },
    /// More bytes may be sent.
    WindowUpdate {
        /// The number of the stream; zero is the connection.
        stream: u32,
        /// How many more.
        by: u32,
    },
    /// Data of a stream. A long frame is read in pieces, as they are received. Only the last one has `fin`.
    Data {
        /// The number of the stream.
        stream: u32,
        /// The bytes.
        bytes: Bytes,
        /// The last of the stream.
        fin: bool,
    },
    /// A control frame of a type that is not known. Such frames are ignored.
    Unknown(u16),
}

/// Reads frames.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    inflater: Inflater,
    /// The stream of the data frame that is not complete yet, how much is missing, and its flag.
    data: Option<(u32, usize, bool)>,
}

impl Decoder {
    /// A decoder for blocks of at most `header_bytes` decompressed bytes.
    pub fn new(header_bytes: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            inflater: Inflater::new(header_bytes),
            data: None,
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, if enough of it was received. After an error, nothing more can be read.
    pub fn frame(&mut self) -> Result<Option<Frame>, Violation> {
        if let Some((stream, missing, fin)) = self.data {
            if missing > 0 && self.buffer.is_empty() {
                return Ok(None);
            }
            let bytes = self.buffer.split_to(missing.min(self.buffer.len())).freeze();
            let missing = missing - bytes.len();
            self.data = (missing > 0).then_some((stream, missing, fin));
            let fin = fin && missing == 0;
            return Ok(Some(Frame::Data { stream, bytes, fin }));
        }
        let Some(head) = self.buffer.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let (mut first, mut second) = (&head[..4], &head[4..]);
        let (first, second) = (first.get_u32(), second.get_u32());
        let (flags, length) = ((second >> 24) as u8, (second & 0x00ff_ffff) as usize);
        if first & (1 << 31) == 0 {
            if first == 0 {
                return Err(Violation::Frame("data of stream 0"));
            }
            self.buffer.advance(HEAD);
            self.data = Some((first, length, flags & FIN != 0));
            return self.frame();
        }
        if (first >> 16) & 0x7fff != u32::from(VERSION) {
            return Err(Violation::Frame("it is of another version"));
        }
        if length > CONTROL {
            return Err(Violation::Frame("it is too long"));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        let frame = self.buffer.split_to(HEAD + length).freeze();
        self.control((first & 0xffff) as u16, flags, &frame[HEAD..]).map(Some)
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: &[u8]) -> Result<Frame, Violation> {
        let fin = flags & FIN != 0;
        let least = match kind {
            1 => 10,
            3 | 7 | 9 => 8,
            2 | 4 | 6 | 8 => 4,
            other => return Ok(Frame::Unknown(other)),
        };
        if body.len() < least {
            return Err(Violation::Frame("it is too short"));
        }
        let number = body.get_u32() & 0x7fff_ffff;
        let has_stream = matches!(kind, 1..=3 | 8);
        if has_stream && number == 0 {
            return Err(Violation::Frame("stream 0 cannot be used"));
        }
        let stream = number;
        Ok(match kind {
            1 => {
                // The associated stream, the priority and the slot of the credentials.
                body.advance(6);
                let headers = self.inflater.read(body)?;
                let unidirectional = flags & UNIDIRECTIONAL != 0;
                Frame::SynStream {
                    stream,
                    headers,
                    fin,
                    unidirectional,
                }
            }
            2 => {
                let headers = self.inflater.read(body)?;
                Frame::SynReply { stream, headers, fin }
            }
            3 => Frame::RstStream {
                stream,
                status: body.get_u32(),
            },
            4 => settings(number, body)?,
            // All 32 bits are the number of the question. Its first bit is lost above, and no program counts that far.
            6 => Frame::Ping(number),
            7 => Frame::GoAway {
                last: number,
                status: body.get_u32(),
            },
            8 => {
                let headers = self.inflater.read(body)?;
                Frame::Headers { stream, headers, fin }
            }
            _ => Frame::WindowUpdate {
                stream,
                by: body.get_u32() & 0x7fff_ffff,
            },
        })
    }
}

fn settings(count: u32, body: &[u8]) -> Result<Frame, Violation> {
    let entries = body.chunks_exact(8);
    if usize::try_from(count) != Ok(entries.len()) || !entries.remainder().is_empty() {
        return Err(Violation::Frame("its settings are not as many as it says"));
    }
    let entries = entries.map(|mut entry| (entry.get_u32() & 0x00ff_ffff, entry.get_u32()));
    Ok(Frame::Settings(entries.collect()))
}

/// Writes frames.
#[derive(Debug)]
pub struct Encoder(Deflater);

impl Default for Encoder {
    fn default() -> Self {
        Self(Deflater::new())
    }
}

impl Encoder {
    /// Writes a frame. Data that is longer than a frame can be is divided.
    pub fn write(&mut self, frame: &Frame, out: &mut BytesMut) {
        let fin = |fin: bool| if fin { FIN } else { 0 };
        match frame {
            Frame::SynStream {
                stream,
                headers,
                fin: last,
                unidirectional,
            } => {
                let block = self.0.write(headers);
                let flags = fin(*last) | if *unidirectional { UNIDIRECTIONAL } else { 0 };
                head(out, 1, flags, 10 + block.len());
                out.put_u32(*stream);
                out.put_bytes(0, 6);
                out.put_slice(&block);
            }
            Frame::SynReply {
                stream,
                headers,
                fin: last,
            } => self.with_headers(2, *stream, headers, fin(*last), out),
            Frame::Headers {
                stream,
                headers,
                fin: last,
            } => self.with_headers(8, *stream, headers, fin(*last), out),
            Frame::RstStream { stream, status } => numbers(out, 3, &[*stream, *status]),
            Frame::Settings(entries) => {
                head(out, 4, 0, 4 + 8 * entries.len());
                out.put_u32(u32::try_from(entries.len()).unwrap_or(u32::MAX));
                for (id, value) in entries {
                    out.put_u32(*id);
                    out.put_u32(*value);
                }
            }
            Frame::Ping(id) => numbers(out, 6, &[*id]),
            Frame::GoAway { last, status } => numbers(out, 7, &[*last, *status]),
            Frame::WindowUpdate { stream, by } => numbers(out, 9, &[*stream, *by]),
            Frame::Data {
                stream,
                bytes,
                fin: last,
            } => {
                let mut rest = bytes.as_ref();
                loop {
                    let piece = rest.len().min(DATA);
                    let is_last = piece == rest.len();
                    out.put_u32(*stream);
                    length(out, fin(*last && is_last), piece);
                    out.put_slice(&rest[..piece]);
                    rest = &rest[piece..];
                    if is_last {
                        break;
                    }
                }
            }
            // Frames that are not known have no contents.
            Frame::Unknown(kind) => head(out, *kind, 0, 0),
        }
    }

    fn with_headers(&mut self, kind: u16, stream: u32, headers: &Headers, flags: u8, out: &mut BytesMut) {
        let block = self.0.write(headers);
        head(out, kind, flags, 4 + block.len());
        out.put_u32(stream);
        out.put_slice(&block);
    }
}

fn length(out: &mut BytesMut, flags: u8, length: usize) {
    out.put_u8(flags);
    out.put_uint(u64::try_from(length).unwrap_or(u64::MAX), 3);
}

fn head(out: &mut BytesMut, kind: u16, flags: u8, of: usize) {
    out.put_u16(1 << 15 | VERSION);
    out.put_u16(kind);
    length(out, flags, of);
}

fn numbers(out: &mut BytesMut, kind: u16, numbers: &[u32]) {
    head(out, kind, 0, 4 * numbers.len());
    for number in numbers {
        out.put_u32(*number);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HEADER_BYTES: usize = 4 << 10;

    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, Violation> {
        let mut decoder = Decoder::new(HEADER_BYTES);
        let mut found: Vec<Frame> = Vec::new();
        for bytes in bytes.chunks(piece.max(1)) {
            decoder.push(bytes);
            while let Some(frame) = decoder.frame()? {
                // Pieces of a data frame are put together again.
                if let (
                    Frame::Data { stream, bytes, fin },
                    Some(Frame::Data {
                        stream: of,
                        bytes: before,
                        fin: ended,
                    }),
                ) = (&frame, found.last_mut())
                    && stream == of
                    && !*ended
                {
                    *before = [before.as_ref(), bytes].concat().into();
                    *ended = *fin;
                    continue;
                }
                found.push(frame);
            }
        }
        Ok(found)
    }

    fn written(frames: &[Frame]) -> BytesMut {
        let (mut encoder, mut out) = (Encoder::default(), BytesMut::new());
        for frame in frames {
            encoder.write(frame, &mut out);
        }
        out
    }

    fn headers() -> impl Strategy<Value = Headers> {
        proptest::collection::btree_map("[a-z:-]{1,12}", "[ -~äß\0]{0,60}", 0..6)
            .prop_map(|all| all.into_iter().collect())
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let stream = || 1..0x8000_0000_u32;
        prop_oneof![
            (stream(), headers(), any::<bool>(), any::<bool>()).prop_map(|(stream, headers, fin, unidirectional)| {
                Frame::SynStream {
                    stream,
                    headers,
                    fin,
                    unidirectional,
                }
            }),
            (stream(), headers(), any::<bool>()).prop_map(|(stream, headers, fin)| Frame::SynReply {
                stream,
                headers,
                fin
            }),
            (stream(), headers(), any::<bool>()).prop_map(|(stream, headers, fin)| Frame::Headers {
                stream,
                headers,
                fin
            }),
            (stream(), any::<u32>()).prop_map(|(stream, status)| Frame::RstStream { stream, status }),
            vec((0..0x0100_0000_u32, any::<u32>()), 0..5).prop_map(Frame::Settings),
            stream().prop_map(Frame::Ping),
            (stream(), any::<u32>()).prop_map(|(last, status)| Frame::GoAway { last, status }),
            (0..0x8000_0000_u32, stream()).prop_map(|(stream, by)| Frame::WindowUpdate { stream, by }),
            // Frames without an end are joined by the test, so each ends its stream.
            (stream(), vec(any::<u8>(), 0..300)).prop_map(|(stream, bytes)| Frame::Data {
                stream,
                bytes: bytes.into(),
                fin: true
            }),
            (10..40_000_u16).prop_map(Frame::Unknown),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_comes(frames in vec(frames(), 0..12), piece in 1..200_usize) {
            prop_assert_eq!(read(&written(&frames), piece), Ok(frames));
        }

        #[test]
        fn any_bytes_are_read_or_refused_and_it_does_not_matter_how_they_come(
            frames in vec(frames(), 0..6),
            changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
            piece in 1..50_usize,
        ) {
            let mut bytes = written(&frames).to_vec();
            for (place, byte) in changes {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = byte;
                }
            }
            prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len()));
        }
    }

    #[test]
    fn a_long_data_frame_is_not_kept() {
        let mut decoder = Decoder::new(HEADER_BYTES);
        decoder.push(&[0, 0, 0, 1, 1, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.frame(), Ok(None));
        let mut bytes = DATA;
        while bytes > 0 {
            let piece = bytes.min(1 << 16);
            decoder.push(&vec![7; piece]);
            bytes -= piece;
            let Ok(Some(Frame::Data { bytes: read, fin, .. })) = decoder.frame() else {
                panic!("no data");
            };
            assert_eq!((read.len(), fin), (piece, bytes == 0));
            assert_eq!((decoder.frame(), decoder.buffer.len()), (Ok(None), 0));
        }
    }

    #[test]
    fn a_bad_frame_is_refused_before_it_is_complete() {
        let check =
            |bytes: &[u8], why: &'static str| assert_eq!(read(bytes, 1), Err(Violation::Frame(why)), "{bytes:?}");
        check(&[0, 0, 0, 0, 0, 0, 0, 1], "data of stream 0");
        check(&[0x80, 2, 0, 6, 0, 0, 0, 4], "it is of another version");
        check(&[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff], "it is too long");
        check(&[0x80, 3, 0, 6, 0, 0, 0, 1, 0], "it is too short");
        check(
            &[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1],
            "stream 0 cannot be used",
        );
        check(
            &[0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1],
            "its settings are not as many as it says",
        );
    }
}
