//! The table of functions for rules, with the types of their arguments and results.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::typing::Ty;

/// An overload of a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) id: &'static str,
    /// Whether it is called on its first argument.
    pub(super) member: bool,
    pub(super) arguments: Vec<Ty>,
    pub(super) result: Ty,
    /// The number of type parameters.
    pub(super) params: usize,
}

/// Each line is a function, an overload's id (with a dot before it when it is called on its first argument), its arguments
/// and its result; A and B stand for any type.
static TABLE: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    let lines = include_str!("signatures.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some((name, overload)) = parse(line) {
            table.entry(name).or_default().push(overload);
        }
    }
    table
});

/// The overloads of a function, if it exists.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    TABLE.get(name).map(Vec::as_slice)
}

/// All functions with their overloads.
#[cfg(test)]
pub(super) fn table() -> impl Iterator<Item = (&'static str, &'static Overload)> {
    TABLE
        .iter()
        .flat_map(|(name, all)| all.iter().map(move |overload| (*name, overload)))
}

fn parse(line: &'static str) -> Option<(&'static str, Overload)> {
    let (name, rest) = line.split_once(' ')?;
    let (id, rest) = rest.split_once(" (")?;
    let (arguments, result) = split_call(rest)?;
    let arguments = split(arguments).into_iter().map(ty).collect::<Option<Vec<Ty>>>()?;
    let result = ty(result)?;
    let params = [&arguments[..], std::slice::from_ref(&result)]
        .concat()
        .iter()
        .map(highest)
        .max()
        .unwrap_or(0);
    Some((
        name,
        Overload {
            id: id.trim_start_matches('.'),
            member: id.starts_with('.'),
            arguments,
            result,
            params,
        },
    ))
}

/// Splits at the closing parenthesis that matches the opening one before the text.
fn split_call(text: &'static str) -> Option<(&'static str, &'static str)> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some((&text[..at], text[at + 1..].trim())),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits at commas outside of parentheses.
fn split(text: &'static str) -> Vec<&'static str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        out.push(text[start..].trim());
    }
    out
}

fn ty(text: &'static str) -> Option<Ty> {
    if let Some((name, rest)) = text.split_once('(') {
        let parts = split(rest.strip_suffix(')')?);
        let part = |at: usize| parts.get(at).and_then(|part| ty(part));
        return Some(match name {
            "list" => Ty::list(part(0)?),
            "map" => Ty::map(part(0)?, part(1)?),
            "optional_type" => Ty::optional(part(0)?),
            "type" => Ty::Type(std::sync::Arc::new(part(0)?)),
            _ => return None,
        });
    }
    Some(match text {
        "A" => Ty::Param(0),
        "B" => Ty::Param(1),
        other => Ty::plain(other).unwrap_or(Ty::Extra(other)),
    })
}

fn highest(ty: &Ty) -> usize {
    match ty {
        Ty::Param(id) => id + 1,
        Ty::List(of) | Ty::Optional(of) | Ty::Type(of) => highest(of),
        Ty::Map(key, value) => highest(key).max(highest(value)),
        _ => 0,
    }
}

/// A type with its parameters moved up by `by`.
pub(super) fn shifted(ty: &Ty, by: usize) -> Ty {
    match ty {
        Ty::Param(id) => Ty::Param(id + by),
        Ty::List(of) => Ty::list(shifted(of, by)),
        Ty::Optional(of) => Ty::optional(shifted(of, by)),
        Ty::Type(of) => Ty::Type(std::sync::Arc::new(shifted(of, by))),
        Ty::Map(key, value) => Ty::map(shifted(key, by), shifted(value, by)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("signatures.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert_eq!(TABLE.values().map(Vec::len).sum::<usize>(), lines);
        let index = &overloads("_[_]").unwrap()[1];
        assert_eq!((index.id, index.params, index.member), ("index_map", 2, false));
        assert_eq!(index.arguments[0].to_string(), "map(_var0, _var1)");
        let named = &overloads("format.named").unwrap()[0];
        assert_eq!(named.result.to_string(), "optional_type(kubernetes.NamedFormat)");
    }
}
