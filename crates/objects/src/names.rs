//! Validation of names, labels and annotations, with the messages of Kubernetes.

use serde_json::Value;
use windlass_schema::{FieldError, Kind};

const LABEL_WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035_WORDS: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_WORDS: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_WORDS: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Group and resource as messages name them: `pods`, `deployments.apps`.
pub fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// `v1` or `group/version`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The naming rule of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Lower case letters, digits, `-` and `.`, at most 253.
    Subdomain,
    /// Lower case letters, digits and `-`, at most 63.
    Label,
    /// As a label, but not starting with a digit.
    Label1035,
    /// Any path segment (RBAC).
    PathSegment,
}

fn edge(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let b = text.as_bytes();
    !b.is_empty() && edge(b[0]) && edge(b[b.len() - 1]) && b.iter().all(|&c| edge(c) || c == b'-')
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// The problems of a DNS label.
pub fn label_problems(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > 63 {
        out.push(too_long(63));
    }
    if !is_label(text) {
        let is_subdomain = text.split('.').all(is_label);
        out.push(
            if is_subdomain {
                "must not contain dots"
            } else {
                LABEL_WORDS
            }
            .to_owned(),
        );
    }
    out
}

/// The problems of a DNS subdomain.
pub fn subdomain_problems(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > 253 {
        out.push(too_long(253));
    }
    if !text.split('.').all(is_label) {
        out.push(SUBDOMAIN_WORDS.to_owned());
    }
    out
}

impl NameRule {
    /// The problems of a name; for a prefix, a trailing dash is ignored.
    pub fn problems(self, name: &str, prefix: bool) -> Vec<String> {
        let masked;
        let mut name = name;
        if prefix && name.len() > 1 && name.ends_with('-') {
            masked = format!("{}a", &name[..name.len() - 1]);
            name = &masked;
        }
        match self {
            Self::Subdomain => subdomain_problems(name),
            Self::Label => label_problems(name),
            Self::Label1035 => {
                let mut out = Vec::new();
                if name.len() > 63 {
                    out.push(too_long(63));
                }
                if !is_label(name) || name.as_bytes()[0].is_ascii_digit() {
                    out.push(LABEL_1035_WORDS.to_owned());
                }
                out
            }
            Self::PathSegment => {
                let mut out = Vec::new();
                if matches!(name, "." | "..") {
                    out.push(format!("may not be '{name}'"));
                }
                for part in ["/", "%"] {
                    if name.contains(part) {
                        out.push(format!("may not contain '{part}'"));
                    }
                }
                out
            }
        }
    }
}

fn is_name_part(text: &str) -> bool {
    let b = text.as_bytes();
    !b.is_empty()
        && b[0].is_ascii_alphanumeric()
        && b[b.len() - 1].is_ascii_alphanumeric()
        && b.iter()
            .all(|&c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// The problems of a label key.
pub fn label_key_problems(key: &str) -> Vec<String> {
    key_problems(key, "a valid label key")
}

/// The problems of an annotation key or finalizer.
pub fn qualified_name_problems(key: &str) -> Vec<String> {
    key_problems(key, "a qualified name")
}

fn key_problems(key: &str, what: &str) -> Vec<String> {
    let mut out = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(
                    subdomain_problems(prefix)
                        .into_iter()
                        .map(|p| format!("prefix part {p}")),
                );
            }
            *name
        }
        _ => {
            return vec![format!(
                "{what} {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                QUALIFIED_WORDS.trim_start_matches("name part ")
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        out.push(format!("name part {}", too_many_bytes(63)));
    }
    if !is_name_part(name) {
        out.push(QUALIFIED_WORDS.to_owned());
    }
    out
}

/// The problems of a label value.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut out = Vec::new();
    if value.len() > 63 {
        out.push(too_many_bytes(63));
    }
    if !value.is_empty() && !is_name_part(value) {
        out.push(VALUE_WORDS.to_owned());
    }
    out
}

/// Checks a map of labels.
pub fn check_labels(labels: &Value, path: &str, errors: &mut impl Extend<FieldError>) {
    let Some(labels) = labels.as_object() else {
        return;
    };
    for (key, value) in labels {
        let of_key = label_key_problems(key).into_iter();
        errors.extend(of_key.map(|problem| FieldError::invalid(path, key.as_str().into(), problem)));
        let of_value = label_value_problems(value.as_str().unwrap_or("")).into_iter();
        errors.extend(of_value.map(|problem| FieldError::invalid(path, value.clone(), problem)));
    }
}

/// Checks a map of annotations.
pub fn check_annotations(annotations: &Value, path: &str, errors: &mut impl Extend<FieldError>) {
    const MAX: usize = 256 << 10;
    let Some(annotations) = annotations.as_object() else {
        return;
    };
    let mut total = 0;
    for (key, value) in annotations {
        let problems = qualified_name_problems(&key.to_lowercase()).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(path, key.as_str().into(), problem)));
        total += key.len() + value.as_str().unwrap_or("").len();
    }
    if total > MAX {
        let why = format!("may not be more than {MAX} bytes");
        errors.extend([FieldError::new(path, Kind::TooLong, None, why)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        let ok = |rule: NameRule, name: &str| assert_eq!(rule.problems(name, false), Vec::<String>::new());
        let bad = |rule: NameRule, name: &str| assert!(!rule.problems(name, false).is_empty(), "{name}");
        ok(NameRule::Subdomain, "a.b-c.d");
        ok(NameRule::Label, "0-a");
        ok(NameRule::PathSegment, "system:node");
        bad(NameRule::Subdomain, "A");
        bad(NameRule::Subdomain, "a..b");
        bad(NameRule::Label, "a.b");
        bad(NameRule::Label, &"a".repeat(64));
        bad(NameRule::Label1035, "1a");
        bad(NameRule::PathSegment, "a/b");
        assert!(NameRule::Subdomain.problems("web-", true).is_empty());
    }

    #[test]
    fn label_keys_may_have_one_prefix() {
        assert!(qualified_name_problems("example.com/Name_1").is_empty());
        for bad in ["/a", "a/", "a/b/c", "UP/a", "-a", ""] {
            assert!(!qualified_name_problems(bad).is_empty(), "{bad}");
        }
    }
}
