//! A data folder in the state after the first start of a server: prepared once, and copied for every test.
//!
//! Validating the definitions of all kinds and generating keys takes most of the time of a first start, and is the same each
//! time.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::OnceCell;
use windlass_manager::{Embedded, EmbeddedOptions};

/// The files of a folder. In memory, because a folder of the process would not be removed at its end.
struct Files(Vec<(PathBuf, Vec<u8>, Permissions)>);

static PREPARED: OnceCell<Files> = OnceCell::const_new();

/// Fills an empty folder.
pub(crate) async fn copy_to(folder: &Path) {
    let files = PREPARED.get_or_init(prepare).await;
    files.write(folder).expect("the folder of a test can be written");
}

/// Options of a start with `definitions` in `data_dir`.
pub(crate) fn options(data_dir: &Path, definitions: bool) -> EmbeddedOptions {
    EmbeddedOptions {
        data_dir: data_dir.to_owned(),
        kubeconfig: None,
        port: 0,
        tokens: None,
        definitions,
    }
}

async fn prepare() -> Files {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let embedded = Embedded::start(options(folder.path(), true)).await;
    let embedded = embedded.expect("the API server starts");
    embedded.shutdown().await;
    drop(embedded);
    let mut files = Vec::new();
    read(folder.path(), Path::new(""), &mut files).expect("what a server wrote can be read");
    Files(files)
}

fn read(root: &Path, below: &Path, files: &mut Vec<(PathBuf, Vec<u8>, Permissions)>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            read(root, &path, files)?;
        } else {
            files.push((path, fs::read(entry.path())?, entry.metadata()?.permissions()));
        }
    }
    Ok(())
}

impl Files {
    fn write(&self, folder: &Path) -> io::Result<()> {
        for (path, content, permissions) in &self.0 {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(&path, content)?;
            fs::set_permissions(&path, permissions.clone())?;
        }
        Ok(())
    }
}
