//! Parses YAML as Go's Kubernetes tools do, and recognizes other content.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error};
use windlass_gocompat::yaml;

/// Content other than YAML that servers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotYaml {
    /// A web page: a login, proxy or error page.
    Html,
    /// XML: the error format of object stores.
    Xml,
    /// Binary data.
    Binary,
}

/// How many times its own length the text of a document may have when aliases are replaced.
const EXPANSION: usize = 4;
/// Bytes that aliases may add in any case.
const FREE_EXPANSION: usize = 64 << 10;
/// Up to this limit, floats represent whole numbers exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Parses one document: `0644` is octal, `yes` is true, `1e3` and `1.0` are whole numbers, the last of equal keys wins. (Go reads
/// a *key* `y` as `true`; this is left out, because authors mean the letter. A number that is too large is an error, not a text.)
pub(crate) fn read(text: &str) -> Result<Value, Error> {
    let mut options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    // Aliases repeat text: a small document must not become a large one.
    if let Some(budget) = &mut options.budget {
        budget.max_total_scalar_bytes = budget
            .max_total_scalar_bytes
            .min(text.len() * EXPANSION + FREE_EXPANSION);
    }
    let mut value = yaml::read(text, options)?;
    make_whole(&mut value);
    Ok(value)
}

/// Go writes whole floats without a point, and servers read them as integers.
fn make_whole(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            // By text, which needs no cast: `-0` is `0` there, too.
            let whole = whole.and_then(|float| format!("{float:.0}").parse::<i64>().ok());
            if let Some(whole) = whole {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// The type of a text that is obviously not YAML.
pub(crate) fn sniff(text: &str) -> Option<NotYaml> {
    if text.contains('\0') {
        return Some(NotYaml::Binary);
    }
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let begins = |with: &str| {
        let head = start.get(..with.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(with))
    };
    if begins("<!doctype html") || begins("<html") || begins("<head") || begins("<body") || begins("<!--") {
        return Some(NotYaml::Html);
    }
    start.starts_with('<').then_some(NotYaml::Xml)
}
