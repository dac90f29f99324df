//! Files that are complete or absent, and readable by their owner only.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::ManagerError;

/// Creates a folder with its parents, for its owner only. An existing folder is unchanged.
pub(crate) fn make_folder(path: &Path) -> Result<(), ManagerError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| failed("make the folder", path, source))
}

/// Writes a file of mode 0600 so that a reader, also after a crash, sees the old content or the new.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), ManagerError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    let write = || -> io::Result<()> {
        // A leftover may have other permissions.
        match fs::remove_file(unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(unfinished, path)
    };
    write().map_err(|source| failed("write", path, source))
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ManagerError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("read", path, source)),
    }
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> ManagerError {
    ManagerError::File {
        verb,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_replaced_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        make_folder(path.parent().unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), None);
        for text in ["one", "two"] {
            write_private(&path, text).unwrap();
            assert_eq!(read(&path).unwrap().as_deref(), Some(text));
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        write_private(&file, "").unwrap();
        let error = write_private(&file.join("below"), "").unwrap_err();
        assert!(error.to_string().contains("file/below"), "{error}");
    }
}
