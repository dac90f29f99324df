//! Reads a data folder: the newest base, and the logs that follow it.

use std::io::{self, Read};
use std::sync::Arc;

use crate::codec::{self, Entry, FILE_HEADER, FRAME_HEADER, FileHeader, Frame, FrameHeader, Kind, Names, holds_frame};
use crate::files::Files;
use crate::memory::Memory;
use crate::record::{Event, Record};
use crate::store::Limits;

/// Suffix of unfinished files, which are ignored and safe to remove.
pub(crate) const UNFINISHED: &str = ".new";
/// The revision of an empty store.
pub(crate) const FIRST_REVISION: u64 = 1;
/// The first log.
pub(crate) const FIRST: u64 = 1;

/// The name of a log.
pub(crate) fn log_name(sequence: u64) -> String {
    format!("log-{sequence:010}")
}

/// The name of a base.
pub(crate) fn base_name(sequence: u64) -> String {
    format!("base-{sequence:010}")
}

/// The file with the length of the log at an orderly end. A shorter log has lost data.
pub(crate) const CLOSED: &str = "closed";

/// The content of that file.
pub(crate) fn closed_text(sequence: u64, length: u64) -> String {
    format!("{} {length}\n", log_name(sequence))
}

fn number(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// Whether a name is that of a log or base, finished or not.
pub(crate) fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    number(name, "log-").or_else(|| number(name, "base-")).is_some()
}

/// The end of the last log, and the other files.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) sequence: u64,
    pub(crate) salt: u32,
    /// The length of the last log up to its last complete frame.
    pub(crate) length: u64,
    /// Bytes of logs since the base.
    pub(crate) since_base: u64,
    pub(crate) base_bytes: u64,
    /// Obsolete files.
    pub(crate) leftovers: Vec<String>,
}

/// Errors of reading a folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("{what}")]
    Io { what: String, source: io::Error },
    #[error("{0}")]
    Damaged(String),
}

fn io_wrong(what: impl Into<String>) -> impl FnOnce(io::Error) -> Wrong {
    let what = what.into();
    move |source| Wrong::Io { what, source }
}

/// The files of a folder, by number.
#[derive(Debug, Default)]
struct Inventory {
    base: Option<u64>,
    logs: Vec<u64>,
    leftovers: Vec<String>,
}

fn inventory(files: &dyn Files) -> Result<Inventory, Wrong> {
    let names = files.names().map_err(io_wrong("cannot be listed"))?;
    let base = names.iter().filter_map(|n| number(n, "base-")).max();
    let start = base.unwrap_or(FIRST);
    let mut logs: Vec<u64> = names.iter().filter_map(|n| number(n, "log-")).collect();
    logs.sort_unstable();
    logs.retain(|n| *n >= start);
    let stale = |name: &String| {
        is_ours(name)
            && (name.ends_with(UNFINISHED)
                || number(name, "log-").is_some_and(|n| n < start)
                || number(name, "base-").is_some_and(|n| Some(n) != base))
    };
    let leftovers = names.iter().filter(|name| stale(name)).cloned().collect();
    for (want, have) in (start..).zip(logs.iter().chain([&u64::MAX])) {
        if want != *have && (want == start || *have != u64::MAX) {
            return Err(Wrong::Damaged(format!("{} is missing", log_name(want))));
        }
    }
    Ok(Inventory { base, logs, leftovers })
}

/// A file that is read frame by frame.
pub(crate) struct Frames {
    name: String,
    input: io::BufReader<Box<dyn Read + Send>>,
    pub(crate) header: FileHeader,
    length: u64,
    /// The position of the reader.
    pub(crate) at: u64,
    payload: Vec<u8>,
}

/// The next element of a file.
enum Step {
    Frame,
    End,
    /// Not a frame; with whether the file continues after it.
    Broken {
        goes_on: bool,
    },
}

impl Frames {
    pub(crate) fn open(files: &dyn Files, name: &str, kind: Kind) -> Result<Self, Wrong> {
        let (input, length) = files.open(name).map_err(io_wrong(format!("{name} cannot be opened")))?;
        let mut input = io::BufReader::with_capacity(256 << 10, input);
        let mut bytes = [0; FILE_HEADER];
        let header = match input.read_exact(&mut bytes) {
            Ok(()) => FileHeader::decode(kind, &bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(io_wrong(format!("{name} cannot be read"))(error)),
        };
        let Some(header) = header else {
            return Err(Wrong::Damaged(format!(
                "the beginning of {name} is not as it was written"
            )));
        };
        Ok(Self {
            name: name.to_owned(),
            input,
            header,
            length,
            at: FILE_HEADER as u64,
            payload: Vec::new(),
        })
    }

    fn step(&mut self) -> Result<Step, Wrong> {
        let left = self.length - self.at;
        if left == 0 {
            return Ok(Step::End);
        }
        let name = &self.name;
        let failed = |e| io_wrong(format!("{name} cannot be read"))(e);
        let mut bytes = [0; FRAME_HEADER];
        if left < FRAME_HEADER as u64 {
            return Ok(Step::Broken { goes_on: false });
        }
        self.input.read_exact(&mut bytes).map_err(failed)?;
        let rest = left - FRAME_HEADER as u64;
        let Some(header) = FrameHeader::decode(&bytes, self.header.salt) else {
            let mut tail = bytes.to_vec();
            self.input.read_to_end(&mut tail).map_err(failed)?;
            let goes_on = holds_frame(&tail, self.header.salt);
            return Ok(Step::Broken { goes_on });
        };
        if u64::from(header.length) > rest {
            return Ok(Step::Broken { goes_on: false });
        }
        self.payload.resize(header.length as usize, 0);
        self.input.read_exact(&mut self.payload).map_err(failed)?;
        if !header.fits(&self.payload) {
            // Only the last of several frames in one write can be incomplete.
            return Ok(Step::Broken {
                goes_on: u64::from(header.length) < rest,
            });
        }
        self.at += FRAME_HEADER as u64 + u64::from(header.length);
        Ok(Step::Frame)
    }

    fn damaged(&self, what: &str) -> Wrong {
        Wrong::Damaged(format!("{} {what} at byte {}", self.name, self.at))
    }

    fn frame(&self, names: &mut Names) -> Result<Frame, Wrong> {
        codec::decode(&self.payload, names).ok_or_else(|| self.damaged("holds unknown data, before"))
    }
}

/// Reads a base or snapshot, which is complete or unusable.
pub(crate) fn read_base(frames: &mut Frames, limits: Limits, names: &mut Names) -> Result<Memory, Wrong> {
    let mut memory = Memory::new(frames.header.revision, limits);
    let mut found = 0;
    loop {
        match frames.step()? {
            Step::Frame => {}
            Step::End => return Err(frames.damaged("is cut off")),
            Step::Broken { .. } => return Err(frames.damaged("is not as it was written")),
        }
        match frames.frame(names)? {
            Frame::Records(entries) => {
                for entry in entries {
                    match entry {
                        Entry::Put(record) if record.revision <= memory.revision => {
                            memory.load(record);
                            found += 1;
                        }
                        _ => return Err(frames.damaged("holds what does not belong there, before")),
                    }
                }
            }
            Frame::End { objects } if objects == found && frames.at == frames.length => return Ok(memory),
            _ => return Err(frames.damaged("does not end as it should")),
        }
    }
}

/// Applies the changes of a log up to a revision, at which it was abandoned. Returns whether its end looks like after a crash.
fn replay(frames: &mut Frames, memory: &mut Memory, limit: u64, is_last: bool, names: &mut Names) -> Result<(), Wrong> {
    loop {
        match frames.step()? {
            Step::Frame => {}
            Step::Broken { goes_on } if goes_on && is_last => {
                return Err(frames.damaged("is not as it was written"));
            }
            Step::End | Step::Broken { .. } => break,
        }
        let Frame::Batch { from, to, entries } = frames.frame(names)? else {
            return Err(frames.damaged("holds what does not belong there, before"));
        };
        if from >= limit {
            // The write failed and was reported as failed. Later writes are in the next log.
            break;
        }
        if from != memory.revision {
            return Err(Wrong::Damaged(format!(
                "{} goes on from revision {from}, expected {}",
                frames.name, memory.revision
            )));
        }
        for entry in entries {
            let Some(event) = event(memory, entry) else {
                return Err(frames.damaged("removes what is not there, before"));
            };
            memory.apply(&Arc::new(event));
        }
        if memory.revision != to {
            return Err(frames.damaged("ends a change at another revision than it says, before"));
        }
    }
    if is_last || memory.revision == limit {
        Ok(())
    } else {
        Err(frames.damaged("is not as it was written"))
    }
}

fn event(memory: &Memory, entry: Entry) -> Option<Event> {
    let with = |record: Record, deleted: bool| {
        let previous = memory.get(&record.key).cloned();
        (!deleted || previous.is_some()).then(|| Event {
            record: Arc::new(record),
            previous,
            deleted,
        })
    };
    match entry {
        Entry::Put(record) => with(record, false),
        Entry::RemoveAs(record) => with(record, true),
        Entry::Remove { key, revision } => {
            let last = memory.get(&key)?.deleted_at(revision);
            with(last, true)
        }
    }
}

/// Reads a whole folder, which may be in use: the result is the state at some moment.
pub(crate) fn load(files: &dyn Files, limits: Limits) -> Result<(Memory, Position), Wrong> {
    let inventory = inventory(files)?;
    let mut names = Names::new();
    let said = match files.open(CLOSED) {
        Ok((said, _)) => Some(said),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io_wrong(format!("{CLOSED} cannot be opened"))(error)),
    };
    // All files are opened before the first is read: an open file stays readable after its removal.
    let mut base = match inventory.base {
        Some(number) => Some(Frames::open(files, &base_name(number), Kind::Base)?),
        None => None,
    };
    let mut logs = Vec::new();
    for number in &inventory.logs {
        let frames = Frames::open(files, &log_name(*number), Kind::Log)?;
        if frames.header.sequence != *number {
            return Err(Wrong::Damaged(format!("{} is another log", frames.name)));
        }
        logs.push(frames);
    }
    let (mut memory, base_bytes) = match &mut base {
        Some(frames) => (read_base(frames, limits, &mut names)?, frames.length),
        None => (Memory::new(FIRST_REVISION, limits), 0),
    };
    let limits: Vec<u64> = logs.iter().skip(1).map(|l| l.header.revision).collect();
    let mut since_base = 0;
    for (index, frames) in logs.iter_mut().enumerate() {
        if frames.header.revision != memory.revision {
            return Err(Wrong::Damaged(format!(
                "{} follows revision {}, but what is there ends at {}",
                frames.name, frames.header.revision, memory.revision
            )));
        }
        let limit = limits.get(index).copied();
        replay(
            frames,
            &mut memory,
            limit.unwrap_or(u64::MAX),
            limit.is_none(),
            &mut names,
        )?;
        since_base += frames.at;
    }
    let Some(last) = logs.last() else {
        return Err(Wrong::Damaged(format!("{} is missing", log_name(FIRST))));
    };
    if let Some(mut said) = said {
        let mut text = String::new();
        said.read_to_string(&mut text)
            .map_err(io_wrong(format!("{CLOSED} cannot be read")))?;
        if text != closed_text(last.header.sequence, last.at) {
            let ends = closed_text(last.header.sequence, last.at);
            return Err(Wrong::Damaged(format!(
                "it was closed at the end of {:?} (log and length), but what is there ends at {:?}",
                text.trim_end(),
                ends.trim_end()
            )));
        }
    }
    let position = Position {
        sequence: last.header.sequence,
        salt: last.header.salt,
        length: last.at,
        since_base,
        base_bytes,
        leftovers: inventory.leftovers,
    };
    Ok((memory, position))
}
