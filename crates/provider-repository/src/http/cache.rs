//! A cache of fetched files by ETag. A cached file is used only after the server has revalidated it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use windlass_meta::repeats::Repeats;

use crate::digest;

/// Content and its ETag from the server.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) tag: String,
    pub(crate) body: Bytes,
}

/// A bounded cache in memory, and optionally in a folder.
#[derive(Debug)]
pub(crate) struct Cache {
    memory: Mutex<Memory>,
    folder: Option<PathBuf>,
    /// What was logged of files that could not be written.
    said: Repeats,
}

#[derive(Debug)]
struct Memory {
    entries: BTreeMap<String, (Kept, u64)>,
    size: usize,
    limit: usize,
    clock: u64,
}

/// The first line of a cache file.
#[derive(Serialize, Deserialize)]
struct Head {
    key: String,
    tag: String,
    sha256: String,
}

impl Cache {
    pub(crate) fn new(limit: usize, folder: Option<PathBuf>) -> Self {
        let memory = Memory {
            entries: BTreeMap::new(),
            size: 0,
            limit,
            clock: 0,
        };
        Self {
            memory: Mutex::new(memory),
            folder,
            said: Repeats::default(),
        }
    }

    pub(crate) async fn find(&self, key: &str) -> Option<Kept> {
        let found = self.memory.lock().find(key);
        match (found, &self.folder) {
            (Some(kept), _) => Some(kept),
            (None, Some(folder)) => read(&path(folder, key), key).await,
            (None, None) => None,
        }
    }

    pub(crate) async fn keep(&self, key: &str, kept: Kept) {
        if let Some(folder) = &self.folder {
            // If the cache cannot be written, requests are only slower.
            if let Err(error) = write(folder, key, &kept).await {
                let place = folder.display().to_string();
                if let Some(repeated) = self.said.line(&place, &error.to_string(), Instant::now()) {
                    let what = "cannot write to the cache of fetched files";
                    tracing::warn!(folder = place, %error, repeated, "{what}");
                }
            }
        }
        self.memory.lock().keep(key, kept);
    }
}

impl Memory {
    fn find(&mut self, key: &str) -> Option<Kept> {
        self.clock += 1;
        let (kept, used) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(kept.clone())
    }

    fn keep(&mut self, key: &str, kept: Kept) {
        self.clock += 1;
        self.forget(key);
        if kept.body.len() > self.limit {
            return;
        }
        self.size += kept.body.len();
        self.entries.insert(key.to_owned(), (kept, self.clock));
        while self.size > self.limit {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, key: &str) {
        if let Some((gone, _)) = self.entries.remove(key) {
            self.size -= gone.body.len();
        }
    }
}

fn path(folder: &Path, key: &str) -> PathBuf {
    folder.join(digest::sha256(key.as_bytes()))
}

async fn read(path: &Path, key: &str) -> Option<Kept> {
    let content = tokio::fs::read(path).await.ok()?;
    let end = content.iter().position(|&byte| byte == b'\n')?;
    let head: Head = serde_json::from_slice(&content[..end]).ok()?;
    let body = Bytes::from(content).slice(end + 1..);
    // An incomplete or changed file is ignored.
    (head.key == key && head.sha256 == digest::sha256(&body)).then_some(Kept { tag: head.tag, body })
}

async fn write(folder: &Path, key: &str, kept: &Kept) -> std::io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).await?;
    let head = Head {
        key: key.to_owned(),
        tag: kept.tag.clone(),
        sha256: digest::sha256(&kept.body),
    };
    let mut content = serde_json::to_vec(&head)?;
    content.push(b'\n');
    content.extend_from_slice(&kept.body);
    let path = path(folder, key);
    let beside = path.with_extension(format!("{}", std::process::id()));
    // Left by a process that was killed. Nothing is written through a link that someone else has put there.
    let _ = tokio::fs::remove_file(&beside).await;
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&beside).await?;
    file.write_all(&content).await?;
    file.flush().await?;
    tokio::fs::rename(&beside, &path).await
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn kept(tag: &str, size: usize) -> Kept {
        Kept {
            tag: tag.to_owned(),
            body: vec![b'x'; size].into(),
        }
    }

    #[tokio::test]
    async fn the_cache_never_grows_over_its_bound() {
        let cache = Cache::new(100, None);
        for (key, size) in [("a", 40), ("b", 40)] {
            cache.keep(key, kept("1", size)).await;
        }
        assert!(cache.find("a").await.is_some());
        cache.keep("c", kept("1", 40)).await;
        assert!(cache.find("b").await.is_none(), "what was used longest ago goes");
        assert!(cache.find("a").await.is_some() && cache.find("c").await.is_some());
        cache.keep("a", kept("2", 101)).await;
        assert!(cache.find("a").await.is_none(), "the old content does not stay");
        assert_eq!(cache.memory.lock().size, 40);
    }

    #[tokio::test]
    async fn a_folder_outlives_the_process_and_damage_is_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = || Cache::new(100, Some(folder.path().to_owned()));
        cache().keep("a", kept("1", 300)).await;
        assert_eq!(cache().find("a").await.unwrap().body.len(), 300);
        assert!(cache().find("b").await.is_none());
        let file = path(folder.path(), "a");
        // Addresses may be signed, and their contents may be private.
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut content = std::fs::read(&file).unwrap();
        content.pop();
        std::fs::write(&file, content).unwrap();
        assert!(cache().find("a").await.is_none());
    }
}
