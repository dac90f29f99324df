//! Where the fields of a YAML document stand.
//!
//! Errors name a field by its path: `spec.patches[0].definitions[1].selector.kind`, or with a key in place of a number:
//! `spec.variables[region].schema`. [`Positions::find`] follows such a path as far as the document has it.

use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Options, Spanned};

/// A place in a text: line and column, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its name, or the value if it has none.
    pub(crate) name: Position,
    /// Its value.
    pub(crate) value: Position,
    /// Whether the document has the whole path, and not only a part above it.
    pub(crate) is_whole: bool,
}

/// The places of all fields of a document.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    root: Mark,
}

/// The place of a value, and of what is below it.
#[derive(Clone, Debug)]
struct Mark {
    at: Position,
    below: Below,
}

#[derive(Clone, Debug)]
enum Below {
    Nothing,
    List(Vec<Mark>),
    Map(Vec<(String, Position, Mark)>),
}

/// The fields by which a path may name an item of a list, the usual ones first.
const KEYS: [&str; 5] = ["name", "class", "type", "key", "path"];

impl Positions {
    /// The places in a document that begins in a line of a text. None if it is no YAML.
    pub(crate) fn read(text: &str, options: Options, first_line: usize) -> Option<Self> {
        let marked: Spanned<Below> = serde_saphyr::from_str_with_options(text, options).ok()?;
        let mut root = mark(marked);
        root.shift(first_line.saturating_sub(1));
        Some(Self { root })
    }

    /// The places of a document that is too large for this: its beginning.
    pub(crate) fn of_line(line: usize) -> Self {
        let at = Position { line, column: 1 };
        Self {
            root: Mark {
                at,
                below: Below::Nothing,
            },
        }
    }

    /// The place of a path in the document `value`, or of the last part of it that is there.
    pub(crate) fn find(&self, value: &Value, path: &str) -> Place {
        let mut at = Step {
            mark: &self.root,
            value,
            name: self.root.at,
        };
        let mut rest = path;
        while !rest.is_empty() {
            let Some((next, after)) = at.step(rest) else { break };
            (at, rest) = (next, after);
        }
        Place {
            name: at.name,
            value: at.mark.at,
            is_whole: rest.is_empty(),
        }
    }
}

#[derive(Clone, Copy)]
struct Step<'a> {
    mark: &'a Mark,
    value: &'a Value,
    name: Position,
}

impl Step<'_> {
    /// One step along a path, and what is left of it.
    fn step(self, path: &str) -> Option<(Self, &str)> {
        if let Some(inside) = path.strip_prefix('[') {
            // A key may have brackets itself.
            let ends = inside.match_indices(']').map(|(end, _)| end);
            return ends.into_iter().find_map(|end| {
                let rest = &inside[end + 1..];
                let ends_here = rest.is_empty() || rest.starts_with(['.', '[']);
                let found = ends_here.then(|| self.item(&inside[..end])).flatten()?;
                Some((found, rest))
            });
        }
        let path = path.strip_prefix('.').unwrap_or(path);
        let Below::Map(entries) = &self.mark.below else {
            return None;
        };
        // A name may have points itself: the longest one that fits is meant.
        let fits = |name: &str| {
            let rest = path.strip_prefix(name)?;
            (!name.is_empty() && (rest.is_empty() || rest.starts_with(['.', '[']))).then_some(rest)
        };
        let entry = entries.iter().filter(|(name, ..)| fits(name).is_some());
        let (name, ..) = entry.max_by_key(|(name, ..)| name.len())?;
        Some((self.field(name)?, fits(name)?))
    }

    fn field(self, name: &str) -> Option<Self> {
        let Below::Map(entries) = &self.mark.below else {
            return None;
        };
        let (_, at, mark) = entries.iter().find(|(other, ..)| other == name)?;
        Some(Self {
            mark,
            value: self.value.get(name)?,
            name: *at,
        })
    }

    /// An item of a list by its number or by one of its fields, or a field whose name is in brackets.
    fn item(self, key: &str) -> Option<Self> {
        let Below::List(marks) = &self.mark.below else {
            return self.field(key);
        };
        let items = self.value.as_array()?;
        let by_field = || {
            KEYS.iter()
                .find_map(|field| items.iter().position(|item| item[*field] == *key))
        };
        let index = key
            .parse()
            .ok()
            .filter(|index| *index < items.len())
            .or_else(by_field)?;
        let mark = marks.get(index)?;
        Some(Self {
            mark,
            value: &items[index],
            name: mark.at,
        })
    }
}

impl Mark {
    /// Moves all places down by some lines.
    fn shift(&mut self, lines: usize) {
        self.at.line += lines;
        match &mut self.below {
            Below::Nothing => {}
            Below::List(items) => items.iter_mut().for_each(|item| item.shift(lines)),
            Below::Map(entries) => {
                for (_, at, mark) in entries {
                    at.line += lines;
                    mark.shift(lines);
                }
            }
        }
    }
}

fn position(at: Location) -> Position {
    let number = |number: u64| usize::try_from(number).unwrap_or(1);
    Position {
        line: number(at.line()),
        column: number(at.column()),
    }
}

fn mark(marked: Spanned<Below>) -> Mark {
    Mark {
        at: position(marked.referenced),
        below: marked.value,
    }
}

impl<'de> Deserialize<'de> for Below {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Marks)
    }
}

/// Reads a document for its places alone.
struct Marks;

impl<'de> Visitor<'de> for Marks {
    type Value = Below;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_str<E>(self, _: &str) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_none<E>(self) -> Result<Below, E> {
        Ok(Below::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Below, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Below, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Below::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Below, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Below>>()? {
            list.push(mark(item));
        }
        Ok(Below::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Below, A::Error> {
        let mut map = Vec::new();
        while let Some(name) = entries.next_key::<Spanned<String>>()? {
            let value: Spanned<Below> = entries.next_value()?;
            map.push((name.value, position(name.referenced), mark(value)));
        }
        Ok(Below::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
metadata:
  annotations:
    a.b/c: x
    a.b: y
spec:
  variables:
  - name: region
    schema: {openAPIV3Schema: {type: string, \"properties\": {\"a]b\": {type: 7}}}}
  - name: \"1\"
    value: &v
      deep: [1, [2, 3]]
  again: *v
  text: |
    first
    second
";

    fn at(path: &str) -> (usize, usize, bool) {
        let options = Options::default();
        let value = windlass_gocompat::yaml::read(TEXT, options.clone()).unwrap();
        let found = Positions::read(TEXT, options, 1).unwrap().find(&value, path);
        (found.name.line, found.name.column, found.is_whole)
    }

    #[test]
    fn paths_are_found_with_numbers_keys_and_points_in_names() {
        let check = |path: &str, expect: (usize, usize, bool)| assert_eq!(at(path), expect, "{path}");
        check("", (1, 1, true));
        check("spec", (5, 1, true));
        check("metadata.annotations.a.b/c", (3, 5, true));
        check("metadata.annotations.a.b", (4, 5, true));
        check("metadata.annotations[a.b/c]", (3, 5, true));
        check("spec.variables[0].name", (7, 5, true));
        check("spec.variables[region].schema.openAPIV3Schema.type", (8, 32, true));
        check(
            "spec.variables[region].schema.openAPIV3Schema.properties[a]b].type",
            (8, 69, true),
        );
        check("spec.variables[1].value.deep[1][0]", (11, 18, true));
        check("spec.text", (13, 3, true));
    }

    #[test]
    fn a_path_that_is_not_there_leads_to_its_last_part_that_is() {
        let check = |path: &str, expect: (usize, usize, bool)| assert_eq!(at(path), expect, "{path}");
        check("spec.nothing.below", (5, 1, false));
        check("spec.variables[7].name", (6, 3, false));
        check("spec.variables[none]", (6, 3, false));
        check("spec.text.x", (13, 3, false));
        check("][.", (1, 1, false));
    }

    #[test]
    fn an_alias_stands_where_it_is_used_and_a_block_of_text_at_its_first_line() {
        let options = Options::default();
        let value = windlass_gocompat::yaml::read(TEXT, options.clone()).unwrap();
        let positions = Positions::read(TEXT, options, 11).unwrap();
        assert_eq!(
            positions.find(&value, "spec.again").value,
            Position { line: 22, column: 10 }
        );
        assert_eq!(
            positions.find(&value, "spec.text").value,
            Position { line: 24, column: 5 }
        );
        assert_eq!(positions.find(&value, "spec.again.deep").name.line, 22);
    }
}
