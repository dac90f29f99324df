//! What is wrong with a configuration, and where.

/// More problems are counted, not kept.
const MOST: usize = 20;

/// Problems of a configuration. Their texts never have its contents, which may be secret.
#[derive(Default)]
pub(super) struct Findings {
    /// Where the reader is.
    path: String,
    /// The lines before the document that is read.
    pub(super) lines_before: u64,
    found: Vec<Finding>,
    more: usize,
    errors: usize,
}

#[derive(Clone)]
struct Finding {
    is_error: bool,
    text: String,
}

impl Findings {
    /// Does something in a part of the current place.
    pub(super) fn within<T>(&mut self, part: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        if before > 0 && !part.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(part);
        let result = work(self);
        self.path.truncate(before);
        result
    }

    /// Adds an error: the configuration cannot be used.
    pub(super) fn error(&mut self, part: &str, why: &str) {
        self.errors += 1;
        self.add(true, part, why);
    }

    /// Adds an error if there is one.
    pub(super) fn error_if(&mut self, part: &str, why: Option<&str>) {
        if let Some(why) = why {
            self.error(part, why);
        }
    }

    /// Adds a warning: an error only where warnings count as errors.
    pub(super) fn warn(&mut self, part: &str, why: &str) {
        self.add(false, part, why);
    }

    fn add(&mut self, is_error: bool, part: &str, why: &str) {
        let is_full = self.found.len() >= MOST;
        // An error is worth more than a warning.
        let warning = self.found.iter().position(|finding| !finding.is_error);
        if is_full
            && is_error
            && let Some(warning) = warning
        {
            self.found.remove(warning);
        } else if is_full {
            self.more += 1;
            return;
        }
        let text = self.within(part, |findings| {
            let place = if findings.path.is_empty() { "" } else { ": " };
            format!("{}{place}{why}", findings.path)
        });
        self.found.push(Finding { is_error, text });
    }

    /// The warnings, or the reason why the configuration cannot be used.
    pub(super) fn verdict(self, is_strict: bool) -> Result<Vec<String>, String> {
        let is_empty = self.found.is_empty();
        let fatal = self.errors > 0;
        let mut texts: Vec<String> = self.found.into_iter().map(|finding| finding.text).collect();
        if self.more > 0 {
            texts.push(format!("and {} more", self.more));
        }
        if is_empty || !fatal && !is_strict {
            return Ok(texts);
        }
        let note = if fatal {
            ""
        } else {
            " (strict is set: warnings count as errors)"
        };
        Err(format!("{}{note}", texts.join("; ")))
    }
}
