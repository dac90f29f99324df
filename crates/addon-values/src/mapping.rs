//! Checks that a rendered text is valid as Helm values: YAML with a mapping at the top, or empty.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::DuplicateKeyPolicy;
use windlass_gocompat::yaml::bounded;

use crate::ValuesError;

/// The top level of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    Nothing,
    Mapping,
    List,
    Text,
    Number,
    Boolean,
}

/// Whether a text has values; an error if it has other content.
pub(crate) fn has_values(text: &str) -> Result<bool, ValuesError> {
    let found = match top(text)? {
        Top::Nothing => return Ok(false),
        Top::Mapping => return Ok(true),
        Top::List => "a list",
        Top::Text => "a text",
        Top::Number => "a number",
        Top::Boolean => "a boolean",
    };
    Err(ValuesError::NotAMapping { found })
}

fn top(text: &str) -> Result<Top, ValuesError> {
    let is_content = |line: &str| !matches!(line.trim_start().chars().next(), None | Some('#'));
    if !text.lines().any(is_content) {
        return Ok(Top::Nothing);
    }
    // Of equal keys, Helm uses the last. Errors must not quote the text, which may be a secret.
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, bounded(options), |de| de.deserialize_any(TopVisitor))
        .map_err(|why| ValuesError::NotYaml { why: why.to_string() })
}

struct TopVisitor;

impl<'de> Visitor<'de> for TopVisitor {
    type Value = Top;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Top, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Top::Mapping)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Top, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Top::List)
    }

    fn visit_unit<E>(self) -> Result<Top, E> {
        Ok(Top::Nothing)
    }

    fn visit_none<E>(self) -> Result<Top, E> {
        Ok(Top::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Top, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Top, E> {
        Ok(Top::Boolean)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Top, E> {
        Ok(Top::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Top, E> {
        Ok(Top::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Top, E> {
        Ok(Top::Number)
    }

    fn visit_str<E>(self, _: &str) -> Result<Top, E> {
        Ok(Top::Text)
    }
}
