//! Label selectors in the notation of `kubectl -l`: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{Operator, Selector, Term, is_word};

impl Selector {
    /// Parses the notation of `kubectl -l`; the error is the first one.
    pub fn parse_text(text: &str) -> Result<Self, String> {
        split(text)
            .into_iter()
            .map(|term| Term::read(term.trim()).map_err(|why| format!("{why} in {text:?}")))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// The selector in the notation of `kubectl -l`, terms sorted by key.
pub fn to_text(selector: &LabelSelector) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        terms.push((key.clone(), format!("{key}={value}")));
    }
    for term in selector.match_expressions.iter().flatten() {
        let key = &term.key;
        let mut values = term.values.clone().unwrap_or_default();
        values.sort();
        let values = values.join(",");
        let text = match term.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            _ => format!("!{key}"),
        };
        terms.push((key.clone(), text));
    }
    terms.sort();
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
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
    fn read(term: &str) -> Result<Self, String> {
        if let Some(key) = term.strip_prefix('!') {
            return Self::new(key, Operator::DoesNotExist, []);
        }
        if let Some((key, value)) = term.split_once("!=") {
            return Self::new(key, Operator::NotIn, [word(value)?]);
        }
        if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            return Self::new(key, Operator::In, [word(value)?]);
        }
        let Some((front, list)) = term.split_once('(') else {
            return Self::new(term, Operator::Exists, []);
        };
        let list = list
            .trim_end()
            .strip_suffix(')')
            .ok_or_else(|| format!("{term:?} lacks a closing parenthesis"))?;
        let values = list.split(',').map(word).collect::<Result<Vec<_>, _>>()?;
        match front.trim_end().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => Self::new(key, Operator::In, values),
            Some((key, "notin")) => Self::new(key, Operator::NotIn, values),
            _ => Err(format!("{term:?} has neither in nor notin before its parenthesis")),
        }
    }

    fn new(key: &str, operator: Operator, values: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let key = key.trim();
        let name = key.rsplit('/').next().unwrap_or(key);
        if key.matches('/').count() > 1 || !is_word(name) || name.is_empty() {
            return Err(format!("{key:?} is not the key of a label"));
        }
        Ok(Self {
            key: key.to_owned(),
            operator,
            values: values.into_iter().collect(),
        })
    }
}

fn word(text: &str) -> Result<String, String> {
    let text = text.trim();
    if is_word(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the value of a label"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_selected() {
        let labels = [("a", "1"), ("x.io/b", "two")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = labels.into();
        let check = |text: &str, expect: bool| {
            assert_eq!(
                Selector::parse_text(text).unwrap().matches(Some(&labels)),
                expect,
                "{text}"
            );
            let none = Selector::parse_text(text).unwrap().matches(None);
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
            assert!(Selector::parse_text(text).is_err(), "{text}");
        }
    }
}
