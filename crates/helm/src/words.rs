//! Helm's error messages: extracts the relevant part and hides secrets.

use std::borrow::Cow;

/// The length limit of a message.
const LONGEST: usize = 2000;
/// The replacement of secrets.
const HIDDEN: &str = "***";
/// Shorter secrets are not hidden: they would match parts of many words.
const SHORTEST_SECRET: usize = 4;

/// Texts to hide.
#[derive(Clone, Default)]
pub(crate) struct Mask(Vec<String>);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mask").field(&self.0.len()).finish()
    }
}

impl Mask {
    /// Adds a text to hide.
    pub(crate) fn hide(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= SHORTEST_SECRET && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
            // A text may be a part of another one.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Joins two masks.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        for secret in &other.0 {
            self.hide(secret);
        }
        self
    }

    fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in &self.0 {
            if masked.contains(secret.as_str()) {
                masked = Cow::Owned(masked.replace(secret.as_str(), HIDDEN));
            }
        }
        masked
    }
}

/// Helm's error message: from its last `Error:` on, else all output, without secrets, shortened for a condition.
pub(crate) fn of(printed: &str, mask: &Mask) -> String {
    let printed = mask.apply(printed);
    let mut error = Vec::new();
    for line in printed
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
    {
        match line.strip_prefix("Error: ") {
            Some(begin) => error = vec![begin],
            None if is_chatter(line) => {}
            None => error.push(line),
        }
    }
    bounded(&error.join("\n"))
}

/// Whether a line is a warning or log line instead of the error.
fn is_chatter(line: &str) -> bool {
    let is_log = line.starts_with("level=") || line.starts_with("time=");
    let glog = line.as_bytes();
    let is_glog = glog.len() > 5 && b"IWEF".contains(&glog[0]) && glog[1..5].iter().all(u8::is_ascii_digit);
    line.starts_with("WARNING") || is_log || is_glog
}

/// Shortens a text in the middle: the beginning has the operation and the end the cause.
fn bounded(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let half = LONGEST / 2 - 4;
    let (head, tail) = (
        text.floor_char_boundary(half),
        text.ceil_char_boundary(text.len() - half),
    );
    format!("{} ... {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_what_follows_its_mark() {
        let mask = Mask::default();
        let printed = "WARNING: old\nlevel=WARN msg=\"x\"\nI1122 12:00:00.000000 1 x.go:1] y\nError: INSTALLATION FAILED: a:\n- b\n\n  - c\n";
        assert_eq!(of(printed, &mask), "INSTALLATION FAILED: a:\n- b\n  - c");
        assert_eq!(of("panic: odd\n", &mask), "panic: odd");
        assert_eq!(of("", &mask), "");
    }

    #[test]
    fn secrets_are_not_in_it() {
        let mut mask = Mask::default();
        for secret in ["pass", "password-of-a-user\n", "abc", ""] {
            mask.hide(secret);
        }
        assert_eq!(
            of("Error: password-of-a-user and pass and abc", &mask),
            "*** and *** and abc"
        );
        assert_eq!(format!("{mask:?}"), "Mask(2)");
    }

    #[test]
    fn long_errors_lose_their_middle() {
        let text = format!("Error: begin {} end", "ü".repeat(4000));
        let words = of(&text, &Mask::default());
        assert!(
            words.len() <= LONGEST && words.starts_with("begin ü") && words.ends_with("ü end"),
            "{words}"
        );
    }
}
