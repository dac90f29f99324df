//! The data folder of the log: a flat set of append-only files, behind a trait so that tests can inject faults.

#[cfg(test)]
pub(crate) mod fake;

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// A folder of files.
pub(crate) trait Files: Debug + Send + Sync {
    /// The names of its files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens a file for reading from its beginning. Also returns its current length.
    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)>;
    /// Creates an empty file for writing.
    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>>;
    /// Opens an existing file for writing. [`Growing::cut`] sets the position.
    fn resume(&self, name: &str) -> io::Result<Box<dyn Growing>>;
    /// Renames a file. Durable only after [`Files::sync`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Durable only after [`Files::sync`].
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Syncs names and removals.
    fn sync(&self) -> io::Result<()>;
}

/// An append-only file.
pub(crate) trait Growing: Debug + Send {
    /// Writes at the end. After an error any part of it may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Syncs written data.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates to a length and continues there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// A folder of the file system.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Files for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut out = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            if let Ok(name) = entry?.file_name().into_string() {
                out.push(name);
            }
        }
        Ok(out)
    }

    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let file = File::open(self.0.join(name))?;
        let length = file.metadata()?.len();
        Ok((Box::new(file.take(length)), length))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        Ok(Box::new(Real(options.open(self.0.join(name))?)))
    }

    fn resume(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        Ok(Box::new(Real(OpenOptions::new().write(true).open(self.0.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

#[derive(Debug)]
struct Real(File);

impl Growing for Real {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.seek(SeekFrom::Start(length)).map(drop)
    }
}
