//! The files of commands that work on manifests: files, directories with them, and standard input.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;

use windlass_class_check::{File, Kinds};
use windlass_manager::FeatureGates;
use windlass_manager::registry::{admission, kinds};

use crate::error::CliError;

/// The name of standard input on the command line.
const STDIN: &str = "-";
/// The most bytes of all files together.
const MOST_BYTES: u64 = 256 << 20;
/// The most levels of directories.
const MOST_LEVELS: usize = 32;
/// The ends of names that files in directories have.
const ENDS: [&str; 3] = ["yaml", "yml", "json"];

/// The kinds that the program serves, with their admission rules.
pub(super) fn our_kinds() -> Kinds {
    Kinds::new(&kinds::all_crds(), admission::rules(&FeatureGates::default()))
}

/// The stack of a thread that works on objects from files: they may be as deep as an API server allows.
const STACK_BYTES: usize = 64 << 20;

/// Does something with a stack that is large enough for deep objects, whatever the limits of the process are.
pub(super) fn deeply<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, CliError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(|source| CliError::failed("cannot start a thread", source))?;
        // A panic is a defect, and ends the program as it does elsewhere.
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads files, each once, in the order of the command line; the files of a directory in the order of their paths.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<File>, CliError> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for path in paths {
        if path.as_os_str() == STDIN {
            found.push(path.clone());
            continue;
        }
        let kind = fs::metadata(path)
            .map_err(|source| unreadable(path, source))?
            .file_type();
        let before = found.len();
        collect(path, kind, MOST_LEVELS, &mut found)?;
        if before == found.len() {
            let what = format!("{} has no file whose name ends in .yaml, .yml or .json", path.display());
            return Err(CliError::Input { what, source: None });
        }
    }
    let mut left = MOST_BYTES;
    let mut files = Vec::new();
    for path in found {
        // The same file may be named twice: by itself, and with its directory.
        let key = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if seen.insert(key) {
            files.push(read(&path, &mut left)?);
        }
    }
    Ok(files)
}

fn unreadable(path: &Path, source: io::Error) -> CliError {
    CliError::Input {
        what: format!("cannot read {}", path.display()),
        source: Some(source),
    }
}

fn collect(path: &Path, kind: FileType, levels: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    if !kind.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    if levels == 0 {
        let what = format!(
            "{} is too deep: {MOST_LEVELS} levels of directories are read",
            path.display()
        );
        return Err(CliError::Input { what, source: None });
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(|source| unreadable(path, source))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let below = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a directory may lead back to it, and a pipe may never end.
        let kind = entry.file_type().map_err(|source| unreadable(&below, source))?;
        let is_named = below
            .extension()
            .is_some_and(|end| ENDS.iter().any(|known| end == *known));
        let is_file = || fs::metadata(&below).is_ok_and(|found| found.is_file());
        if kind.is_dir() || (is_named && is_file()) {
            collect(&below, kind, levels - 1, found)?;
        }
    }
    Ok(())
}

fn read(path: &Path, left: &mut u64) -> Result<File, CliError> {
    let mut bytes = Vec::new();
    let is_stdin = path.as_os_str() == STDIN;
    let read = if is_stdin {
        io::stdin().lock().take(*left + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(*left + 1).read_to_end(&mut bytes))
    };
    let name = if is_stdin {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    };
    let size = read.map_err(|source| unreadable(Path::new(&name), source))?;
    let refuse = |what: String| Err(CliError::Input { what, source: None });
    *left = match left.checked_sub(u64::try_from(size).unwrap_or(u64::MAX)) {
        Some(left) => left,
        None => {
            return refuse(format!(
                "{name} is too large: all files together may have {} MiB",
                MOST_BYTES >> 20
            ));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(File { name, text }),
        _ => refuse(format!("{name} is no text in UTF-8")),
    }
}
