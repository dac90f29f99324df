//! Regular expressions in Go's syntax (RE2), written for the engine of the crate `regex`.
//!
//! The two look alike and differ in what people write: in Go `\d` is about ASCII, brackets do not nest, a `-` after a class is a dash, a `{`
//! that begins no repetition is a brace, and what Perl or the engine know besides is refused. So a pattern is read by Go's grammar, and each
//! part is written in a form in which the engine means the same. The rules are those of Go's package `regexp/syntax` with its flags for Perl.

use std::fmt;

mod class;

/// The most times that a repetition may ask for, also with repetitions inside.
const MOST_TIMES: u32 = 1000;

/// What groups are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// They keep what they match.
    Kept,
    /// They only group: an engine would keep their places for each of its states.
    Plain,
}

/// Why a pattern is no regular expression, in the words of Go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexpError {
    code: &'static str,
    part: String,
}

impl RegexpError {
    fn new(code: &'static str, part: &str) -> Self {
        Self {
            code,
            part: part.to_owned(),
        }
    }
}

impl fmt::Display for RegexpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.code, self.part)
    }
}

impl std::error::Error for RegexpError {}

const MISSING_ARGUMENT: &str = "missing argument to repetition operator";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_RANGE: &str = "invalid character class range";
const INVALID_PERL: &str = "invalid or unsupported Perl syntax";

/// Writes a pattern of Go for the engine. The time it takes grows with its length.
pub fn translate(pattern: &str, groups: Groups) -> Result<String, RegexpError> {
    let mut parser = Parser {
        pattern,
        groups,
        out: String::with_capacity(pattern.len() + 8),
        levels: vec![Level::default()],
        last_repeat: None,
        last_end: pattern.rfind(":]"),
    };
    let mut at = 0;
    while at < pattern.len() {
        at = parser.step(at)?;
    }
    if parser.levels.len() > 1 {
        return Err(RegexpError::new("missing closing )", pattern));
    }
    Ok(parser.out)
}

/// What is known of an open group.
#[derive(Default)]
struct Level {
    /// The times of the last part, which a repetition would multiply; none if there is nothing to repeat.
    last: Option<u32>,
    /// The most times of a part of the group.
    most: u32,
}

struct Parser<'a> {
    pattern: &'a str,
    groups: Groups,
    out: String,
    levels: Vec<Level>,
    /// Where the repetition began that the part before ended with.
    last_repeat: Option<usize>,
    /// Where the last `:]` is, as a pattern may have many places where a named class could begin.
    last_end: Option<usize>,
}

impl Parser<'_> {
    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// There is a new part that can be repeated.
    fn part(&mut self, times: u32) {
        let level = self.level();
        level.last = Some(times);
        level.most = level.most.max(times);
    }

    fn error(&self, code: &'static str, from: usize, to: usize) -> RegexpError {
        RegexpError::new(code, self.pattern.get(from..to).unwrap_or_default())
    }

    /// Reads one part; returns where the next begins.
    fn step(&mut self, at: usize) -> Result<usize, RegexpError> {
        let rest = &self.pattern[at..];
        let last_repeat = self.last_repeat.take();
        let Some(first) = rest.chars().next() else {
            return Ok(self.pattern.len());
        };
        match first {
            '(' if rest.starts_with("(?") => self.perl_group(at),
            '(' => {
                self.open("(");
                Ok(at + 1)
            }
            '|' => {
                self.out.push('|');
                self.level().last = None;
                Ok(at + 1)
            }
            ')' => {
                if self.levels.len() < 2 {
                    return Err(RegexpError::new("unexpected )", self.pattern));
                }
                let most = self.levels.pop().map_or(0, |level| level.most);
                self.out.push(')');
                self.part(most);
                Ok(at + 1)
            }
            '^' | '$' | '.' => {
                self.out.push(first);
                self.part(1);
                Ok(at + 1)
            }
            '[' => {
                let end = class::bracket(self.pattern, at, self.last_end, &mut self.out)?;
                self.part(1);
                Ok(end)
            }
            '*' | '+' | '?' => self.repeat(at, at + 1, last_repeat, None),
            '{' => match times(rest) {
                None => {
                    self.literal('{');
                    Ok(at + 1)
                }
                Some((min, max, length)) => {
                    let good = |count: u32| count <= MOST_TIMES;
                    if !good(min) || max.is_some_and(|max| !good(max) || max < min) {
                        return Err(self.error("invalid repeat count", at, at + length));
                    }
                    self.repeat(at, at + length, last_repeat, Some((min, max)))
                }
            },
            '\\' => self.escape(at),
            other => {
                self.literal(other);
                Ok(at + other.len_utf8())
            }
        }
    }

    fn literal(&mut self, c: char) {
        class::write_char(c, &mut self.out);
        self.part(1);
    }

    fn open(&mut self, opening: &str) {
        self.out.push_str(match self.groups {
            Groups::Plain if opening == "(" || opening.starts_with("(?P<") => "(?:",
            _ => opening,
        });
        self.levels.push(Level::default());
    }

    /// A repetition from `from` to `to`, with its bounds if it has some.
    fn repeat(
        &mut self,
        from: usize,
        to: usize,
        last_repeat: Option<usize>,
        bounds: Option<(u32, Option<u32>)>,
    ) -> Result<usize, RegexpError> {
        let is_lazy = self.pattern[to..].starts_with('?');
        let end = to + usize::from(is_lazy);
        if let Some(before) = last_repeat {
            return Err(self.error("invalid nested repetition operator", before, end));
        }
        let Some(inner) = self.level().last else {
            return Err(self.error(MISSING_ARGUMENT, from, end));
        };
        let times = match bounds {
            Some((_, Some(0))) => 1,
            Some((min, max)) if min >= 2 || max.is_some_and(|max| max >= 2) => {
                inner.saturating_mul(max.unwrap_or(min).max(1))
            }
            _ => inner,
        };
        if times > MOST_TIMES {
            return Err(self.error("invalid repeat count", from, end));
        }
        self.out.push_str(&self.pattern[from..end]);
        self.part(times);
        self.last_repeat = Some(from);
        Ok(end)
    }

    /// A group that begins with `(?`: one with a name or with flags.
    fn perl_group(&mut self, at: usize) -> Result<usize, RegexpError> {
        let rest = &self.pattern[at..];
        if let Some(name_at) = ["(?P<", "(?<"].iter().find(|begin| rest.starts_with(**begin)) {
            let Some(length) = rest.find('>') else {
                return Err(self.error("invalid named capture", at, self.pattern.len()));
            };
            let name = &rest[name_at.len()..length];
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(self.error("invalid named capture", at, at + length + 1));
            }
            self.open(&format!("(?P<{name}>"));
            return Ok(at + length + 1);
        }
        let (mut is_minus, mut has_flag) = (false, false);
        for (offset, c) in rest.char_indices().skip(2) {
            match c {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_minus => (is_minus, has_flag) = (true, false),
                ':' | ')' if !is_minus || has_flag => {
                    let flags = &rest[..=offset];
                    if c == ':' {
                        self.open(flags);
                    } else if flags != "(?)" {
                        self.out.push_str(flags);
                    }
                    return Ok(at + offset + 1);
                }
                _ => return Err(self.error(INVALID_PERL, at, at + offset + c.len_utf8())),
            }
        }
        Err(self.error(INVALID_PERL, at, self.pattern.len()))
    }

    fn escape(&mut self, at: usize) -> Result<usize, RegexpError> {
        let rest = &self.pattern[at..];
        let written = match rest.as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            Some(b'z') => r"\z",
            Some(b'Q') => {
                let quoted = &rest[2..];
                let (literal, end) = match quoted.find("\\E") {
                    Some(length) => (&quoted[..length], at + length + 4),
                    None => (quoted, self.pattern.len()),
                };
                literal.chars().for_each(|c| self.literal(c));
                return Ok(end);
            }
            _ => {
                let end = class::escaped(self.pattern, at, &mut self.out)?;
                self.part(1);
                return Ok(end);
            }
        };
        self.out.push_str(written);
        self.part(1);
        Ok(at + 2)
    }
}

/// The bounds of a repetition that a text begins with, and its length: `{2}`, `{2,}`, `{2,5}`. None if it is no repetition.
fn times(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let inner = text.strip_prefix('{')?;
    let length = inner
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b',')
        .count();
    let inner = inner.get(..length).filter(|_| inner[length..].starts_with('}'))?;
    let count = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = is_number && (digits.len() == 1 || !digits.starts_with('0'));
        is_canonical.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => (count(inner)?, Some(count(inner)?)),
        Some((min, "")) => (count(min)?, None),
        Some((min, max)) => (count(min)?, Some(count(max)?)),
    };
    Some((min, max, inner.len() + 2))
}

#[cfg(test)]
mod tests;
