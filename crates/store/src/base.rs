//! Writes all stored objects to one file: a base, which logs continue, or a snapshot.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::codec::{FileHeader, Framer, Kind};
use crate::files::{Files, Growing};
use crate::load::UNFINISHED;
use crate::record::Record;

/// The size of a frame.
const FRAME_BYTES: usize = 1 << 20;
/// Bytes between two syncs, so that other requests do not wait long for the disk.
const SYNC_BYTES: usize = 16 << 20;

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "an object is too large")
}

/// Writes a file that is complete or absent. Returns its length. Ends with an error when `stop` is set.
pub(crate) fn write(
    files: &dyn Files,
    name: &str,
    kind: Kind,
    header: &FileHeader,
    records: &[Arc<Record>],
    stop: &AtomicBool,
) -> io::Result<u64> {
    let unfinished = format!("{name}{UNFINISHED}");
    let done = write_all(&mut *files.create(&unfinished)?, kind, header, records, stop)
        .and_then(|length| files.rename(&unfinished, name).map(|()| length))
        .and_then(|length| files.sync().map(|()| length));
    if done.is_err() {
        let _ = files.remove(&unfinished);
    }
    done
}

fn write_all(
    file: &mut dyn Growing,
    kind: Kind,
    header: &FileHeader,
    records: &[Arc<Record>],
    stop: &AtomicBool,
) -> io::Result<u64> {
    let mut buffer = header.encode(kind);
    let (mut length, mut unsynced) = (0, 0);
    let mut flush = |buffer: &mut Vec<u8>, last: bool| {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        file.write(buffer)?;
        length += buffer.len() as u64;
        unsynced += buffer.len();
        buffer.clear();
        if last || unsynced >= SYNC_BYTES {
            unsynced = 0;
            file.sync()?;
        }
        Ok(length)
    };
    let mut rest = records;
    while !rest.is_empty() {
        let mut framer = Framer::records(&mut buffer);
        while let Some((record, others)) = rest.split_first() {
            framer.put(record);
            rest = others;
            if framer.len() >= FRAME_BYTES {
                break;
            }
        }
        if !framer.finish(header.salt) {
            return Err(too_long());
        }
        flush(&mut buffer, false)?;
    }
    if !Framer::end(&mut buffer, records.len() as u64).finish(header.salt) {
        return Err(too_long());
    }
    flush(&mut buffer, true)
}
