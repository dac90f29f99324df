//! Paths like `.a.b['c.d']` from a schema to a field below it.

use std::fmt;

use serde_json::Value;

use crate::node::{Additional, Node, Schema, Type};

/// The steps of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps(Vec<Step>);

/// The field at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path, in the usual form.
    pub path: String,
    /// The name of its first field.
    pub first: String,
    /// The type of the field, empty if it has none.
    pub kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Key(String),
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if i == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

impl Steps {
    /// Finds the field of a path without brackets, in the JSON of a schema.
    pub fn in_schema(text: &str, schema: &Value) -> Result<Found, String> {
        let (schema, _) = Schema::lenient(schema, true, None);
        let (steps, node) = Self::find(text, schema.root(), false)?;
        Ok(Found {
            path: steps.to_string(),
            first: steps.first().to_owned(),
            kind: node.kind.map_or("", Type::name),
        })
    }

    /// Reads a path that must lead to a field that the schema knows.
    pub fn parse(text: &str, node: &Node, brackets: bool) -> Result<Self, String> {
        Self::find(text, node, brackets).map(|(steps, _)| steps)
    }

    /// [`Self::parse`] that also returns the field.
    pub(crate) fn find<'n>(text: &str, node: &'n Node, brackets: bool) -> Result<(Self, &'n Node), String> {
        const END: &str = "unexpected end of JSON path";
        let mut at = node;
        let mut steps = Vec::new();
        let mut tokens = tokens(text).into_iter();
        while let Some(token) = tokens.next() {
            let name = match token {
                "[" if !brackets => return Err("array notation is not allowed".to_owned()),
                "[" => {
                    let quoted = tokens.next().ok_or(END)?;
                    let inner = quoted
                        .strip_prefix('\'')
                        .and_then(|rest| rest.strip_suffix('\''))
                        .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                    unescape(inner)?
                }
                "." => tokens.next().ok_or(END)?.to_owned(),
                other => return Err(format!("expected [ or . but got: {other}")),
            };
            let (step, below) = step(at, name)?;
            steps.push(step);
            at = below;
            if token == "[" {
                match tokens.next() {
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err(END.to_owned()),
                }
            }
        }
        Ok((Self(steps), at))
    }

    /// The name of the first field.
    fn first(&self) -> &str {
        match self.0.first() {
            Some(Step::Field(name) | Step::Key(name)) => name,
            None => "",
        }
    }
}

fn step(node: &Node, name: String) -> Result<(Step, &Node), String> {
    let unknown = || "does not refer to a valid field".to_owned();
    if !node.properties.is_empty() {
        let below = node.properties.get(&name).ok_or_else(unknown)?;
        return Ok((Step::Field(name), below));
    }
    match &node.additional {
        Additional::Values(below) => Ok((Step::Key(name), below)),
        _ => Err(unknown()),
    }
}

/// Splits at dots and brackets that are not quoted.
fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let mut escaped = false;
            let close = rest.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == '\'' && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            close.map_or(rest.len(), |(at, _)| at + 1)
        } else if rest.starts_with(['.', '[', ']']) {
            1
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(other) => {
                return Err(format!("invalid string literal: invalid escape char \\{other}"));
            }
        });
    }
    Ok(out)
}
