//! The dialect of JSONPath that kubectl and printer columns use.
//!
//! Paths come from definitions, and objects from their users. So a path has few levels, and what it visits in an object is bounded.

use std::cell::Cell;

use serde_json::Value;
use windlass_meta::budget::{PATH_BYTES, PATH_LEVELS, PATH_VALUES};

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Step>);

/// Why a path cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// It is longer or deeper than a path may be.
    Limit(String),
    /// It is no path of this dialect.
    Syntax(String),
}

impl From<String> for PathError {
    fn from(why: String) -> Self {
        Self::Syntax(why)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>, i64),
    All,
    Descend,
    Union(Vec<Self>),
    Filter(Vec<Self>, Option<(Compare, Operand)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Constant(Value),
    Path(Vec<Step>),
}

impl JsonPath {
    /// Parses `.a.b[0].c`, `.a[?(@.type=="X")].b`, `{.a}`, `..a`, `.a\.b`, `['a']`, `[*]`, `[1:2]`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES {
            return Err(PathError::Limit(format!("must have at most {PATH_BYTES} bytes")));
        }
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let text = text.trim().trim_start_matches('$');
        let chars: Vec<char> = text.chars().collect();
        let mut parser = Parser { chars, at: 0, level: 0 };
        let steps = parser.steps(false)?;
        if parser.at < parser.chars.len() {
            return Err(format!("unexpected {:?} in path {text:?}", parser.chars[parser.at]).into());
        }
        Ok(Self(steps))
    }

    /// The values that the path finds. Those beyond [`PATH_VALUES`] visited ones are left out.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        walk(&self.0, vec![value], &Left(Cell::new(PATH_VALUES)))
    }

    /// The text of the found values, as a printer column or kubectl shows it, separated by blanks.
    #[cfg(test)]
    fn print(&self, value: &Value) -> String {
        self.find(value).into_iter().map(text_of).collect::<Vec<_>>().join(" ")
    }
}

/// A value as text: strings without quotes, everything else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// How many filters are open.
    level: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        if self.peek() == Some(c) {
            self.at += 1;
            return true;
        }
        false
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Parses steps up to the end or, within a filter, up to the first character that is not part of one.
    fn steps(&mut self, in_filter: bool) -> Result<Vec<Step>, PathError> {
        let mut out = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '.' => {
                    self.at += 1;
                    // What is below of all that is below is the same.
                    if self.eat('.') && out.last() != Some(&Step::Descend) {
                        out.push(Step::Descend);
                    }
                    if self.eat('*') {
                        out.push(Step::All);
                    } else if self.peek().is_some_and(|c| c != '[') {
                        let name = self.name(in_filter);
                        if !name.is_empty() {
                            out.push(Step::Field(name));
                        }
                    }
                }
                '[' => out.push(self.bracket()?),
                _ if in_filter => break,
                '*' => {
                    self.at += 1;
                    out.push(Step::All);
                }
                _ if out.is_empty() => {
                    let name = self.name(in_filter);
                    if name.is_empty() {
                        return Err(format!("unexpected {c:?}").into());
                    }
                    out.push(Step::Field(name));
                }
                _ => return Err(format!("unexpected {c:?}").into()),
            }
        }
        Ok(out)
    }

    fn name(&mut self, in_filter: bool) -> String {
        let mut out = String::new();
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.at += 1;
                out.extend(self.peek());
                self.at += 1;
                continue;
            }
            let ends = matches!(c, '.' | '[' | ']' | '{' | '}')
                || (in_filter && (matches!(c, '=' | '!' | '<' | '>' | ')') || c.is_whitespace()));
            if ends {
                break;
            }
            out.push(c);
            self.at += 1;
        }
        out
    }

    fn bracket(&mut self) -> Result<Step, PathError> {
        self.at += 1;
        if self.eat('?') {
            if !self.eat('(') {
                return Err("a filter must begin with [?(".to_owned().into());
            }
            self.level += 1;
            if self.level > PATH_LEVELS {
                let why = format!("must not nest filters more than {PATH_LEVELS} levels deep");
                return Err(PathError::Limit(why));
            }
            let step = self.filter()?;
            self.level -= 1;
            self.blanks();
            if !self.eat(')') || !self.eat(']') {
                return Err("a filter must end with )]".to_owned().into());
            }
            return Ok(step);
        }
        let mut parts = Vec::new();
        loop {
            self.blanks();
            parts.push(self.selector()?);
            self.blanks();
            if self.eat(']') {
                break;
            }
            if !self.eat(',') {
                return Err("unterminated array".to_owned().into());
            }
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        Ok(Step::Union(parts))
    }

    fn selector(&mut self) -> Result<Step, String> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Step::All)
            }
            Some(quote @ ('\'' | '"')) => Ok(Step::Field(self.quoted(quote)?)),
            _ => {
                let first = self.number();
                if !self.eat(':') {
                    return first.map(Step::Index).ok_or_else(|| "expected an index".to_owned());
                }
                let end = self.number();
                let step = if self.eat(':') { self.number() } else { None };
                Ok(Step::Slice(first, end, step.unwrap_or(1)))
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == quote {
                return Ok(out);
            }
            if c == '\\' {
                out.extend(self.peek());
                self.at += 1;
            } else {
                out.push(c);
            }
        }
        Err("unterminated quoted string".to_owned())
    }

    fn number(&mut self) -> Option<i64> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_digit() || (c == '-' && self.at == start))
        {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect::<String>().parse().ok()
    }

    fn filter(&mut self) -> Result<Step, PathError> {
        self.blanks();
        if !self.eat('@') {
            return Err("a filter must begin with @".to_owned().into());
        }
        let left = self.steps(true)?;
        self.blanks();
        let mut sign = String::new();
        while self.peek().is_some_and(|c| matches!(c, '=' | '!' | '<' | '>')) {
            sign.extend(self.peek());
            self.at += 1;
        }
        let compare = match sign.as_str() {
            "" => return Ok(Step::Filter(left, None)),
            "==" | "=" => Compare::Equal,
            "!=" => Compare::NotEqual,
            "<" => Compare::Less,
            "<=" => Compare::LessEqual,
            ">" => Compare::Greater,
            ">=" => Compare::GreaterEqual,
            other => return Err(format!("unrecognized filter operator {other}").into()),
        };
        self.blanks();
        let right = match self.peek() {
            Some('@') => {
                self.at += 1;
                Operand::Path(self.steps(true)?)
            }
            Some(quote @ ('\'' | '"')) => Operand::Constant(self.quoted(quote)?.into()),
            _ => {
                let mut word = String::new();
                while self.peek().is_some_and(|c| c != ')' && !c.is_whitespace()) {
                    word.extend(self.peek());
                    self.at += 1;
                }
                Operand::Constant(serde_json::from_str(&word).unwrap_or_else(|_| word.into()))
            }
        };
        Ok(Step::Filter(left, Some((compare, right))))
    }
}

/// How many values may still be visited.
struct Left(Cell<usize>);

impl Left {
    /// Takes values from what is left, as many as there are.
    fn take<'a>(&self, values: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
        values.take_while(|_| self.one()).collect()
    }

    fn one(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

fn walk<'a>(steps: &[Step], from: Vec<&'a Value>, left: &Left) -> Vec<&'a Value> {
    let mut at = from;
    for step in steps {
        at = at.into_iter().flat_map(|v| go(step, v, left)).collect();
    }
    at
}

fn go<'a>(step: &Step, value: &'a Value, left: &Left) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => left.take(value.get(name).into_iter()),
        Step::Index(index) => {
            let found = value.as_array().and_then(|a| a.get(position(*index, a.len())?));
            left.take(found.into_iter())
        }
        Step::Slice(from, to, by) => {
            let Some(list) = value.as_array() else {
                return Vec::new();
            };
            let bound = |i: Option<i64>, or: usize| {
                i.map_or(or, |i| position(i, list.len()).unwrap_or(list.len()).min(list.len()))
            };
            let (from, to) = (bound(*from, 0), bound(*to, list.len()));
            let by = usize::try_from((*by).max(1)).unwrap_or(1);
            left.take(list.get(from..to.max(from)).unwrap_or_default().iter().step_by(by))
        }
        Step::All => match value {
            Value::Array(items) => left.take(items.iter()),
            Value::Object(map) => left.take(map.values()),
            _ => Vec::new(),
        },
        Step::Descend => {
            let mut out = vec![value];
            let below: Vec<&Value> = go(&Step::All, value, left);
            out.extend(below.into_iter().flat_map(|v| go(step, v, left)));
            out
        }
        Step::Union(parts) => parts.iter().flat_map(|p| go(p, value, left)).collect(),
        Step::Filter(before, test) => go(&Step::All, value, left)
            .into_iter()
            .filter(|item| {
                let found = walk(before, vec![item], left);
                match test {
                    None => !found.is_empty(),
                    Some((compare, right)) => found.first().is_some_and(|found| {
                        let right = match right {
                            Operand::Constant(value) => Some(value),
                            Operand::Path(steps) => walk(steps, vec![item], left).first().copied(),
                        };
                        right.is_some_and(|right| holds(*compare, found, right))
                    }),
                }
            })
            .collect(),
    }
}

fn position(index: i64, len: usize) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 {
        len.checked_sub(distance)
    } else {
        Some(distance)
    }
}

fn holds(compare: Compare, left: &Value, right: &Value) -> bool {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) => (a == b).then_some(Ordering::Equal),
    };
    match compare {
        Compare::Equal => order == Some(Ordering::Equal),
        Compare::NotEqual => order != Some(Ordering::Equal),
        Compare::Less => order == Some(Ordering::Less),
        Compare::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Compare::Greater => order == Some(Ordering::Greater),
        Compare::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, want: &str) {
        let value = json!({
            "a": {"b": "x", "n": 3, "t": true, "c.d": "dotted"},
            "list": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}],
        });
        assert_eq!(JsonPath::parse(path).unwrap().print(&value), want, "{path}");
    }

    #[test]
    fn finds_what_kubectl_finds() {
        check(".a.b", "x");
        check("{.a.n}", "3");
        check("$.a.t", "true");
        check(r".a.c\.d", "dotted");
        check(".a['c.d']", "dotted");
        check(".list[0].type", "Ready");
        check(".list[-1].type", "Other");
        check(".list[*].type", "Ready Other");
        check(".list[0:1].type", "Ready");
        check(r#".list[?(@.type=="Ready")].status"#, "True");
        check(".list[?(@.type=='Other')].status", "False");
        check(".list[?(@.n>1)].type", "Other");
        check(".list[?(@.n)].type", "Ready Other");
        check("..status", "True False");
        check(".missing.path", "");
        check(".list[0,1].n", "1 2");
    }

    #[test]
    fn broken_paths_are_refused() {
        for bad in [".a[", ".a[?(@.b==1]", ".a]", ".a['b"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nested_filters_and_long_paths_are_refused() {
        let filters = |levels: usize| format!("{}{}", "[?(@".repeat(levels), ")]".repeat(levels));
        assert!(JsonPath::parse(&filters(PATH_LEVELS)).is_ok());
        let is_limited = |path: &str| matches!(JsonPath::parse(path), Err(PathError::Limit(_)));
        assert!(is_limited(&filters(PATH_LEVELS + 1)) && is_limited(&".a[?(@".repeat(300)));
        assert!(JsonPath::parse(&format!(".{}", "a".repeat(PATH_BYTES - 1))).is_ok());
        assert!(is_limited(&format!(".{}", "a".repeat(PATH_BYTES))));
    }

    /// Each `..*` finds a value once for each of the values above it.
    #[test]
    fn what_a_path_visits_is_bounded() {
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep, 0]);
        }
        let found = JsonPath::parse(&"..*".repeat(50)).unwrap().find(&deep).len();
        assert!(found <= PATH_VALUES, "{found}");
        let wide = json!({"a": vec![0; PATH_VALUES]});
        let path = JsonPath::parse(".a[*]").unwrap();
        assert_eq!(path.find(&wide).len(), PATH_VALUES - 1);
        assert_eq!(JsonPath::parse("......a").unwrap(), JsonPath::parse("..a").unwrap());
        assert_eq!(
            JsonPath::parse(".a[-9223372036854775808]").unwrap().find(&wide),
            Vec::<&Value>::new()
        );
    }
}
