//! Label selectors as `kubectl -l` takes them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use serde_json::Value;

/// All terms hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    /// Also true where the label is missing.
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        split(text)
            .into_iter()
            .map(|term| Term::parse(term.trim()).map_err(|why| format!("{why} in {text:?}")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|term| {
            let have = labels.get(&term.key).and_then(Value::as_str);
            let listed = |list: &[String]| have.is_some_and(|have| list.iter().any(|one| one == have));
            match &term.test {
                Test::In(list) => listed(list),
                Test::NotIn(list) => !listed(list),
                Test::Exists => have.is_some(),
                Test::Absent => have.is_none(),
            }
        })
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

impl Term {
    fn parse(term: &str) -> Result<Self, String> {
        if let Some(key) = term.strip_prefix('!') {
            return Self::new(key, Test::Absent);
        }
        if let Some((key, value)) = term.split_once("!=") {
            return Self::new(key, Test::NotIn(vec![word(value)?]));
        }
        if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            return Self::new(key, Test::In(vec![word(value)?]));
        }
        let Some((front, list)) = term.split_once('(') else {
            return Self::new(term, Test::Exists);
        };
        let list = list
            .trim_end()
            .strip_suffix(')')
            .ok_or_else(|| format!("{term:?} lacks a closing parenthesis"))?;
        let values = list.split(',').map(word).collect::<Result<_, _>>()?;
        match front.trim_end().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => Self::new(key, Test::In(values)),
            Some((key, "notin")) => Self::new(key, Test::NotIn(values)),
            _ => Err(format!("{term:?} has neither in nor notin before its parenthesis")),
        }
    }

    fn new(key: &str, test: Test) -> Result<Self, String> {
        let key = key.trim();
        let name = key.rsplit('/').next().unwrap_or(key);
        if key.matches('/').count() > 1 || !is_part(name) || name.is_empty() {
            return Err(format!("{key:?} is not the key of a label"));
        }
        Ok(Self {
            key: key.to_owned(),
            test,
        })
    }
}

fn word(text: &str) -> Result<String, String> {
    let text = text.trim();
    if is_part(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the value of a label"))
    }
}

/// Letters, digits and `-_.` between letters or digits, at most 63; also nothing at all.
fn is_part(text: &str) -> bool {
    let outer = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && outer(text.chars().next())
        && outer(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_selected() {
        let labels = json!({"a": "1", "x.io/b": "two"});
        let check = |text: &str, expect: bool| {
            assert_eq!(Selector::parse(text).unwrap().matches(&labels), expect, "{text}");
            let none = Selector::parse(text).unwrap().matches(&Value::Null);
            assert_eq!(
                none,
                text.starts_with('!') || text.contains("c!=") || text.contains("c notin"),
                "{text}"
            );
        };
        check("a=1", true);
        check("a==1, x.io/b!=three", true);
        check("a=2", false);
        check("a!=1,a", false);
        check("c!=1", true);
        check("a in (1, 2)", true);
        check("a notin (1,2),a", false);
        check("c notin (1)", true);
        check("a", true);
        check("!a", false);
        check("a in (1),x.io/b in (two,three)", true);
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            "", "a in (1", "a of (1)", "(1)", "=1", "a=b c", "a,", "-a=1", "a/b/c", "a=b=c", "a>1",
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
