//! Differences that are meant, each with its reason.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use crate::path;

/// The list.
#[derive(Debug, Default)]
pub struct Allowed {
    lines: Vec<(Line, AtomicUsize)>,
}

/// A line of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// `AREA/TOPIC: CLAIM`, or the beginning of it.
    case: String,
    /// The path of what differs, with `*` for a step and `**` for any number of steps.
    path: String,
    /// Why it is meant.
    why: String,
}

impl Allowed {
    /// Reads the list.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let lines: Vec<Line> = serde_saphyr::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        if let Some(line) = lines.iter().find(|line| line.why.len() < 20) {
            return Err(format!(
                "{}: {} needs a reason that explains it",
                file.display(),
                line.case
            ));
        }
        Ok(Self {
            lines: lines.into_iter().map(|line| (line, AtomicUsize::new(0))).collect(),
        })
    }

    /// Whether a difference is meant.
    pub fn covers(&self, topic: &str, claim: &str, at: &str) -> bool {
        let name = format!("{topic}: {claim}");
        let mut found = false;
        for (line, used) in &self.lines {
            if name.starts_with(&line.case) && path::matches(&line.path, at) {
                used.fetch_add(1, Ordering::Relaxed);
                found = true;
            }
        }
        found
    }

    /// Lines that nothing needed.
    pub fn unused(&self) -> Vec<String> {
        let unused = self.lines.iter().filter(|(_, used)| used.load(Ordering::Relaxed) == 0);
        unused
            .map(|(line, _)| format!("{} at {} ({})", line.case, line.path, line.why))
            .collect()
    }
}
