//! The format of files, frames, changes and records on disk. All numbers are little-endian.
//!
//! A file begins with a header: its kind, its number, the revision that it follows and a random salt. Then come frames: a mark,
//! the length and the checksum of the contents, and a checksum of these with the salt. A frame is either complete or absent.
//! Because of the salt, no client data can look like a frame.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::record::{Event, Header, Key, OwnerLink, Record};

/// Length of a file's header.
pub(crate) const FILE_HEADER: usize = 40;
/// Length of a frame's header.
pub(crate) const FRAME_HEADER: usize = 16;
const MARK: u32 = 0x4d52_4657;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Changes.
    Log,
    /// All objects.
    Base,
    /// All objects, for users to keep.
    Snapshot,
}

impl Kind {
    fn magic(self) -> &'static [u8; 16] {
        match self {
            Self::Log => b"windlass log 2\0\n",
            Self::Base => b"windlass base 2\n",
            Self::Snapshot => b"windlass snap 1\n",
        }
    }
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) sequence: u64,
    /// The revision that the file follows or, for a base, contains.
    pub(crate) revision: u64,
    pub(crate) salt: u32,
}

impl FileHeader {
    /// A header with a random salt.
    pub(crate) fn new(sequence: u64, revision: u64) -> Self {
        use std::hash::{BuildHasher as _, Hasher as _};
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Self {
            sequence,
            revision,
            salt: u32::try_from(random & u64::from(u32::MAX)).unwrap_or_default(),
        }
    }

    pub(crate) fn encode(&self, kind: Kind) -> Vec<u8> {
        let mut out = kind.magic().to_vec();
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.revision.to_le_bytes());
        out.extend_from_slice(&self.salt.to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub(crate) fn decode(kind: Kind, bytes: &[u8; FILE_HEADER]) -> Option<Self> {
        let mut rest = Bits(bytes);
        if rest.take(16)? != kind.magic() {
            return None;
        }
        let header = Self {
            sequence: rest.u64()?,
            revision: rest.u64()?,
            salt: rest.u32()?,
        };
        (rest.u32()? == crc32fast::hash(&bytes[..FILE_HEADER - 4])).then_some(header)
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    checksum: u32,
}

fn seal(length: u32, checksum: u32, salt: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    for part in [MARK, length, checksum, salt] {
        hasher.update(&part.to_le_bytes());
    }
    hasher.finalize()
}

impl FrameHeader {
    pub(crate) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let mut rest = Bits(bytes);
        let mark = rest.u32()?;
        let (length, checksum) = (rest.u32()?, rest.u32()?);
        (mark == MARK && rest.u32()? == seal(length, checksum, salt)).then_some(Self { length, checksum })
    }

    pub(crate) fn fits(self, payload: &[u8]) -> bool {
        payload.len() == self.length as usize && crc32fast::hash(payload) == self.checksum
    }
}

/// Whether a complete frame begins anywhere in these bytes.
pub(crate) fn holds_frame(bytes: &[u8], salt: u32) -> bool {
    let mark = MARK.to_le_bytes();
    bytes.windows(4).enumerate().any(|(at, window)| {
        window == mark
            && FrameHeader::decode(&bytes[at..], salt).is_some_and(|header| {
                let start = at + FRAME_HEADER;
                bytes
                    .get(start..start + header.length as usize)
                    .is_some_and(|payload| header.fits(payload))
            })
    })
}

/// A frame under construction in a reused buffer.
#[derive(Debug)]
pub(crate) struct Framer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

const BATCH: u8 = 1;
const RECORDS: u8 = 2;
const END: u8 = 3;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
/// A removal whose last value differs from the stored one in more than the revision.
const REMOVE_AS: u8 = 3;

impl<'a> Framer<'a> {
    fn begin(out: &'a mut Vec<u8>, kind: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER]);
        out.push(kind);
        Self { out, start }
    }

    /// Changes that lead from one revision to another.
    pub(crate) fn batch(out: &'a mut Vec<u8>, from: u64, to: u64) -> Self {
        let framer = Self::begin(out, BATCH);
        framer.out.extend_from_slice(&from.to_le_bytes());
        framer.out.extend_from_slice(&to.to_le_bytes());
        framer
    }

    /// Stored objects.
    pub(crate) fn records(out: &'a mut Vec<u8>) -> Self {
        Self::begin(out, RECORDS)
    }

    /// The end of a complete file.
    pub(crate) fn end(out: &'a mut Vec<u8>, objects: u64) -> Self {
        let framer = Self::begin(out, END);
        framer.out.extend_from_slice(&objects.to_le_bytes());
        framer
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    pub(crate) fn put(&mut self, record: &Record) {
        self.entry(PUT, record, &record.value);
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let record = &event.record;
        if !event.deleted {
            self.put(record);
        } else if event.previous.as_ref().is_some_and(|p| p.is_same_but_revision(record)) {
            self.entry(REMOVE, record, &[]);
        } else {
            self.entry(REMOVE_AS, record, &record.value);
        }
    }

    fn entry(&mut self, what: u8, record: &Record, value: &[u8]) {
        let out = &mut *self.out;
        out.push(what);
        out.extend_from_slice(&record.revision.to_le_bytes());
        out.extend_from_slice(&record.rv_at.to_le_bytes());
        put_bytes(out, record.key.resource.as_bytes());
        put_bytes(out, record.key.path.as_bytes());
        if what != REMOVE {
            put_header(out, &record.header);
            put_bytes(out, value);
        }
    }

    /// Completes the frame; `false` if it exceeds the limit of a frame.
    pub(crate) fn finish(self, salt: u32) -> bool {
        let body = self.start + FRAME_HEADER;
        let Ok(length) = u32::try_from(self.out.len() - body) else {
            return false;
        };
        let checksum = crc32fast::hash(&self.out[body..]);
        let parts = [MARK, length, checksum, seal(length, checksum, salt)];
        for (place, part) in self.out[self.start..body].chunks_exact_mut(4).zip(parts) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        true
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // A text of 4 GiB makes the frame too long, and the frame is refused as a whole.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_header(out: &mut Vec<u8>, header: &Header) {
    out.push(u8::from(header.deleting));
    put_bytes(out, header.uid.as_bytes());
    put_count(out, header.labels.len());
    for (key, value) in &header.labels {
        put_bytes(out, key.as_bytes());
        put_bytes(out, value.as_bytes());
    }
    put_count(out, header.owners.len());
    for owner in &header.owners {
        out.push(u8::from(owner.blocks));
        put_bytes(out, owner.uid.as_bytes());
    }
    put_count(out, header.finalizers.len());
    for finalizer in &header.finalizers {
        put_bytes(out, finalizer.as_bytes());
    }
}

/// A reader of bytes.
struct Bits<'a>(&'a [u8]);

impl<'a> Bits<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Box<[T]>> {
        let count = self.u32()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn header(&mut self) -> Option<Header> {
        Some(Header {
            deleting: self.u8()? != 0,
            uid: self.text()?.into(),
            labels: self.list(|b| Some((b.text()?.into(), b.text()?.into())))?,
            owners: self.list(|b| {
                let blocks = b.u8()? != 0;
                Some(OwnerLink {
                    uid: b.text()?.into(),
                    blocks,
                })
            })?,
            finalizers: self.list(|b| Some(b.text()?.into()))?,
        })
    }
}

/// The contents of a frame.
#[derive(Debug)]
pub(crate) enum Frame {
    /// Changes.
    Batch { from: u64, to: u64, entries: Vec<Entry> },
    /// Stored objects.
    Records(Vec<Entry>),
    /// The end, with the number of objects.
    End { objects: u64 },
}

/// One entry of a frame.
#[derive(Debug)]
pub(crate) enum Entry {
    /// The stored object.
    Put(Record),
    /// The object is removed.
    Remove { key: Key, revision: u64 },
    /// The object is removed, with its last state.
    RemoveAs(Record),
}

/// The names of resources, shared by their records.
pub(crate) type Names = HashMap<Box<str>, Arc<str>>;

/// Decodes a frame; `None` if it is invalid.
pub(crate) fn decode(payload: &[u8], names: &mut Names) -> Option<Frame> {
    let mut rest = Bits(payload);
    let frame = match rest.u8()? {
        BATCH => Frame::Batch {
            from: rest.u64()?,
            to: rest.u64()?,
            entries: entries(&mut rest, names)?,
        },
        RECORDS => Frame::Records(entries(&mut rest, names)?),
        END => Frame::End { objects: rest.u64()? },
        _ => return None,
    };
    rest.0.is_empty().then_some(frame)
}

fn entries(rest: &mut Bits<'_>, names: &mut Names) -> Option<Vec<Entry>> {
    let mut out = Vec::new();
    while !rest.0.is_empty() {
        out.push(entry(rest, names)?);
    }
    Some(out)
}

fn entry(rest: &mut Bits<'_>, names: &mut Names) -> Option<Entry> {
    let what = rest.u8()?;
    let (revision, rv_at) = (rest.u64()?, rest.u32()?);
    let resource = rest.text()?;
    let resource = match names.get(resource) {
        Some(known) => Arc::clone(known),
        None => Arc::clone(names.entry(resource.into()).or_insert_with(|| Arc::from(resource))),
    };
    let key = Key {
        resource,
        path: rest.text()?.into(),
    };
    if what == REMOVE {
        return Some(Entry::Remove { key, revision });
    }
    let record = Record {
        key,
        revision,
        header: rest.header()?,
        value: Bytes::copy_from_slice(rest.bytes()?),
        rv_at,
    };
    match what {
        _ if !record.shows_revision() => None,
        PUT => Some(Entry::Put(record)),
        REMOVE_AS => Some(Entry::RemoveAs(record)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Draft;

    fn record() -> Record {
        let draft = Draft {
            header: Header {
                uid: "u".into(),
                labels: [("a".into(), "b".into())].into(),
                owners: [OwnerLink {
                    uid: "o".into(),
                    blocks: true,
                }]
                .into(),
                finalizers: ["f".into()].into(),
                deleting: true,
            },
            value: b"{\"rv\":\"\"}".to_vec(),
            rv_at: 7,
        };
        Record::from_draft(Key::new(&"things".into(), "ns", "n"), 12, draft)
    }

    fn framed(salt: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut framer = Framer::records(&mut out);
        framer.put(&record());
        assert!(framer.finish(salt));
        out
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let out = framed(5);
        let header = FrameHeader::decode(&out, 5).unwrap();
        let payload = &out[FRAME_HEADER..];
        assert!(header.fits(payload));
        let Some(Frame::Records(entries)) = decode(payload, &mut Names::new()) else {
            panic!("no records");
        };
        let [Entry::Put(read)] = entries.as_slice() else {
            panic!("{entries:?}");
        };
        let want = record();
        assert_eq!(
            (&read.key, read.revision, &read.header, &read.value),
            (&want.key, 12, &want.header, &want.value)
        );
    }

    #[test]
    fn no_damaged_byte_goes_unseen() {
        let whole = framed(5);
        for at in 0..whole.len() {
            let mut out = whole.clone();
            out[at] ^= 0x40;
            let fits = FrameHeader::decode(&out, 5).is_some_and(|h| h.fits(&out[FRAME_HEADER..]));
            assert!(!fits, "byte {at}");
        }
        for length in 0..whole.len() {
            assert!(!holds_frame(&whole[..length], 5));
        }
        assert!(holds_frame(&[b"abc", whole.as_slice()].concat(), 5));
        assert!(!holds_frame(&whole, 6), "a frame of another file");
    }

    #[test]
    fn nonsense_is_no_frame() {
        let whole = framed(5);
        let payload = &whole[FRAME_HEADER..];
        for length in 0..payload.len() {
            // A cut between entries may leave fewer of them, but must never cause a panic.
            if let Some(Frame::Records(entries)) = decode(&payload[..length], &mut Names::new()) {
                assert!(entries.is_empty());
            }
        }
        let file = FileHeader::new(3, 9);
        let bytes: [u8; FILE_HEADER] = file.encode(Kind::Log).try_into().unwrap();
        assert_eq!(FileHeader::decode(Kind::Log, &bytes), Some(file));
        assert_eq!(FileHeader::decode(Kind::Base, &bytes), None);
    }
}
