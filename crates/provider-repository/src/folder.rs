//! Local folders, for command lines.

use std::io;
use std::path::Path;

use bytes::Bytes;

use crate::content;
use crate::error::Error;
use crate::names::METADATA;
use crate::version;

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Unreadable {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}

pub(crate) async fn versions(base: &Path, label: &str) -> Result<Vec<String>, Error> {
    let folder = base.join(label);
    let failed = |error: io::Error| unreadable(&folder, &error);
    let mut entries = tokio::fs::read_dir(&folder).await.map_err(failed)?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        if entry.path().is_dir() {
            found.extend(entry.file_name().into_string());
        }
    }
    Ok(found)
}

pub(crate) async fn file(base: &Path, label: &str, version: &str, name: &str) -> Result<String, Error> {
    let place = base.join(label);
    // Versions come from specs: only a valid version may be part of a path.
    if version::parse(version).is_none() {
        return Err(no_version(&place, version, base, label).await);
    }
    let path = place.join(version).join(name);
    match tokio::fs::read(&path).await {
        Ok(content) => content::text(&path.display().to_string(), &Bytes::from(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (version, place_text) = (version.to_owned(), place.display().to_string());
            if !place.join(&version).is_dir() {
                Err(no_version(&place, &version, base, label).await)
            } else if name == METADATA {
                Err(Error::NoMetadata {
                    place: place_text,
                    version,
                })
            } else {
                Err(Error::FileNotFound {
                    available: names(&place.join(&version)),
                    place: place_text,
                    version,
                    file: name.to_owned(),
                })
            }
        }
        Err(error) => Err(unreadable(&path, &error)),
    }
}

async fn no_version(place: &Path, version: &str, base: &Path, label: &str) -> Error {
    Error::VersionNotFound {
        place: place.display().to_string(),
        version: version.to_owned(),
        available: version::sorted(versions(base, label).await.unwrap_or_default()),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
