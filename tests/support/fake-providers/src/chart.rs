//! Charts, in the form of `helm package`.

use std::collections::BTreeMap;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::answer::sha256;

/// The block size of an archive.
const BLOCK: usize = 512;

/// A test chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartLike {
    metadata: Value,
    files: BTreeMap<String, String>,
}

impl ChartLike {
    /// A chart without files.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            metadata: json!({"apiVersion": "v2", "name": name, "version": version, "appVersion": "1.0"}),
            files: BTreeMap::new(),
        }
    }

    /// Sets a field of `Chart.yaml`.
    #[must_use]
    pub fn says(mut self, field: &str, value: Value) -> Self {
        self.metadata[field] = value;
        self
    }

    /// Adds a file: `values.yaml`, `templates/x.yaml`, `crds/x.yaml`, `charts/other/Chart.yaml`.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.insert(path.to_owned(), content.to_owned());
        self
    }

    /// Adds a dependency.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        let folder = format!("charts/{}", other.name());
        self.files
            .insert(format!("{folder}/Chart.yaml"), other.metadata.to_string());
        let files = other
            .files
            .iter()
            .map(|(path, content)| (format!("{folder}/{path}"), content.clone()));
        self.files.extend(files);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap_or_default()
    }

    /// Its version.
    pub fn version(&self) -> &str {
        self.metadata["version"].as_str().unwrap_or_default()
    }

    pub(crate) fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// The published file; equal charts give equal bytes.
    pub fn archive(&self) -> Bytes {
        let mut tar = Vec::new();
        let own = (&"Chart.yaml".to_owned(), &self.metadata.to_string());
        for (path, content) in std::iter::once(own).chain(&self.files) {
            tar.extend(header(&format!("{}/{path}", self.name()), content.len()));
            tar.extend(content.as_bytes());
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        tar.resize(tar.len() + 2 * BLOCK, 0);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to memory cannot fail.
        let _ = gzip.write_all(&tar);
        gzip.finish().unwrap_or_default().into()
    }

    /// Its entry in the index of a repository.
    pub(crate) fn entry(&self, url: &str) -> Value {
        let mut entry = self.metadata.clone();
        entry["urls"] = json!([url]);
        entry["digest"] = sha256(&self.archive()).into();
        entry["created"] = "2026-01-02T03:04:05Z".into();
        entry
    }
}

/// The header of a file in an archive.
fn header(path: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    // The checksum is computed over a header with blanks in its place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_archive_holds_the_files_of_the_chart_and_of_those_that_it_depends_on() {
        let part = ChartLike::new("part", "0.1.0").file("templates/b.yaml", "b");
        let chart = ChartLike::new("web", "1.0.0").file("templates/a.yaml", "a").with(&part);
        assert_eq!(chart.archive(), chart.clone().archive());
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(&chart.archive()[..])
            .read_to_end(&mut tar)
            .unwrap();
        let names: Vec<String> = tar
            .chunks(BLOCK)
            .filter(|block| block.get(257..262) == Some(b"ustar"))
            .map(|block| String::from_utf8_lossy(&block[..100]).trim_end_matches('\0').to_owned())
            .collect();
        let expect = [
            "Chart.yaml",
            "charts/part/Chart.yaml",
            "charts/part/templates/b.yaml",
            "templates/a.yaml",
        ];
        assert_eq!(names, expect.map(|name| format!("web/{name}")));
    }
}
