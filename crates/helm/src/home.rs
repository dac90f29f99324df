//! The folders of an engine, which are private and removed with it.
//!
//! Below the home, each engine has its own locked folder. An unlocked folder belonged to a killed process: the next process
//! removes it, with the files of interrupted calls.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
const LOCK: &str = "lock";
const PREFIX: &str = "engine-";

/// The number of engines created by this process.
static ENGINES: AtomicU64 = AtomicU64::new(0);

/// The folder of an engine. It is removed with the last handle.
#[derive(Clone, Debug)]
pub(crate) struct Home(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
    calls: AtomicU64,
}

impl Home {
    /// Creates a folder below `base`, and removes leftovers.
    pub(crate) fn open(base: &Path) -> io::Result<Self> {
        // Helm runs in another working directory, so the path must be absolute.
        let base = &std::path::absolute(base)?;
        make(base)?;
        // A folder that other users can read was not created here.
        let mode = fs::metadata(base)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(base, fs::Permissions::from_mode(PRIVATE_DIR))?;
        }
        sweep(base)?;
        let number = ENGINES.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
        // The leftover of a process with the same id.
        let _ = fs::remove_dir_all(&folder);
        // Locked before it gets its name, so that no other process takes it for a leftover.
        let begun = base.join(format!(".{PREFIX}{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&begun);
        DirBuilder::new().mode(PRIVATE_DIR).create(&begun)?;
        let lock = private_file(&begun.join(LOCK))?;
        lock.try_lock()?;
        fs::rename(&begun, &folder)?;
        for part in ["calls", "charts", "indexes"] {
            make(&folder.join(part))?;
        }
        Ok(Self(Arc::new(Inner {
            folder,
            _lock: lock,
            calls: AtomicU64::new(0),
        })))
    }

    /// The folder of archives.
    pub(crate) fn charts(&self) -> PathBuf {
        self.0.folder.join("charts")
    }

    /// The folder of a repository's index.
    pub(crate) fn index(&self, repository: &str) -> io::Result<PathBuf> {
        let folder = self.0.folder.join("indexes").join(repository);
        make(&folder)?;
        Ok(folder)
    }

    /// A folder for a call, which helm also uses for its own folders.
    pub(crate) fn call(&self) -> io::Result<CallFolder> {
        let number = self.0.calls.fetch_add(1, Ordering::Relaxed);
        let path = self.0.folder.join("calls").join(number.to_string());
        DirBuilder::new().mode(PRIVATE_DIR).create(&path)?;
        Ok(CallFolder {
            path,
            _home: self.clone(),
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The next process removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of a call. It is removed at the end of the call.
#[derive(Debug)]
pub(crate) struct CallFolder {
    path: PathBuf,
    _home: Home,
}

impl CallFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that only the owner can read.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        private_file(&path)?.write_all(content)?;
        Ok(path)
    }
}

impl Drop for CallFolder {
    fn drop(&mut self) {
        // As above.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(folder)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE_FILE)
        .open(path)
}

/// Removes unlocked folders.
fn sweep(base: &Path) -> io::Result<()> {
    for entry in fs::read_dir(base)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) {
            continue;
        }
        let left = match File::open(path.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if left {
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn inside(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The path relative to the current directory.
    fn relative(path: &Path) -> PathBuf {
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        up.join(path.strip_prefix("/").unwrap())
    }

    #[test]
    fn helm_gets_absolute_paths() {
        let base = tempfile::tempdir().unwrap();
        let told = relative(base.path());
        assert!(told.is_relative());
        let home = Home::open(&told).unwrap();
        let call = home.call().unwrap();
        assert!(call.path().is_absolute() && home.charts().is_absolute());
        let program = base.path().join("helm");
        fs::write(&program, "").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let found = crate::probe::Probe::look(&relative(&program), None).unwrap();
        assert!(found.path.is_absolute(), "{found:?}");
        let found = crate::probe::Probe::look(Path::new("helm"), Some(relative(base.path()).as_os_str())).unwrap();
        assert!(found.path.is_absolute(), "{found:?}");
    }

    #[test]
    fn what_a_call_writes_is_private_and_goes_with_it() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("helm");
        let home = Home::open(&base).unwrap();
        assert_eq!(mode(&base), 0o700);
        let call = home.call().unwrap();
        let file = call.write("kubeconfig", b"hidden").unwrap();
        assert_eq!((mode(call.path()), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read(&file).unwrap(), b"hidden");
        assert!(call.write("kubeconfig", b"again").is_err());
        // The engine's folder exists as long as a call needs it.
        drop(home);
        assert!(file.is_file());
        drop(call);
        assert_eq!(inside(&base), Vec::<String>::new());
    }

    #[test]
    fn a_home_that_others_can_read_is_closed() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let _home = Home::open(base.path()).unwrap();
        assert_eq!(mode(base.path()), 0o700);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_others_hold_is_not() {
        let base = tempfile::tempdir().unwrap();
        let left = base.path().join("engine-1-0");
        make(&left.join("calls/0")).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("calls/0/kubeconfig"), "hidden").unwrap();
        let broken = base.path().join("engine-2-0");
        make(&broken).unwrap();
        let other = base.path().join("other");
        make(&other).unwrap();

        let first = Home::open(base.path()).unwrap();
        assert!(!left.exists() && !broken.exists() && other.exists());
        let call = first.call().unwrap();
        let second = Home::open(base.path()).unwrap();
        assert!(call.path().is_dir());
        assert_ne!(first.0.folder, second.0.folder);
    }
}
