//! A data folder in the state after the first start of a server with some contents: prepared once, and copied for every test.
//!
//! Validating the definitions of kinds and generating keys takes most of the time of a first start, and is the same each time.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use windlass_controller_runtime::Metrics;
use windlass_manager::{Embedded, EmbeddedOptions, FeatureGates, Selection};

use crate::server::{Contents, define};

/// The files of a folder. In memory, because a folder of the process would not be removed at its end.
struct Files(Vec<(PathBuf, Vec<u8>, Permissions)>);

/// The key of contents, and whether they have our admission.
type Key = (u64, bool);

/// The folders that are prepared, or being prepared.
static PREPARED: Mutex<BTreeMap<Key, Arc<OnceCell<Files>>>> = Mutex::new(BTreeMap::new());

/// Fills an empty folder, unless nothing is to be in it.
pub(crate) async fn copy_to(folder: &Path, contents: &Contents) {
    if !contents.ours && contents.others.is_empty() {
        return;
    }
    let key = (contents.key(), contents.admits);
    let cell = Arc::clone(PREPARED.lock().entry(key).or_default());
    let files = cell.get_or_init(|| prepare(contents)).await;
    files.write(folder).expect("the folder of a test can be written");
}

/// Options of a start with these contents in `data_dir`.
pub(crate) fn options(data_dir: &Path, contents: &Contents) -> EmbeddedOptions {
    EmbeddedOptions {
        data_dir: data_dir.to_owned(),
        kubeconfig: None,
        port: 0,
        tokens: None,
        definitions: contents.admits,
        gates: FeatureGates::default(),
        built_ins: Selection::all().built_ins(),
    }
}

async fn prepare(contents: &Contents) -> Files {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let embedded = Embedded::start(options(folder.path(), contents)).await;
    let embedded = embedded.expect("the API server starts");
    // With its admission, the server installs our definitions itself.
    let definitions = if contents.admits {
        contents.others.to_vec()
    } else {
        contents.definitions()
    };
    if !definitions.is_empty() {
        define(&embedded.client("definitions", &Metrics::new()), &definitions).await;
    }
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
