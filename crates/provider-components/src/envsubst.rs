//! Replaces variables in texts, as `clusterctl` does.
//!
//! `${NAME}` is a variable. `$NAME` is text, and `$$` outside of variables is one dollar, so that `$${NAME}` is text, too. Blanks
//! around a name (`${ NAME }`) are accepted.
//!
//! | form | becomes |
//! | --- | --- |
//! | `${NAME}` | the value |
//! | `${NAME:=text}`, `${NAME:-text}`, `${NAME=text}`, also with `:?` and `:+` | the value, or the text when that is empty; the text may have variables |
//! | `${NAME^}`, `${NAME^^}`, `${NAME,}`, `${NAME,,}` | with the first letter, or all of them, in upper or lower case |
//! | `${#NAME}` | the length in bytes |
//! | `${NAME:from}`, `${NAME:from:length}` | a part of it; a negative `from` counts from the end |
//! | `${NAME#pattern}`, `${NAME##pattern}` | without the shortest, longest beginning that fits; `*`, `?` and `[a-z]` in it |
//! | `${NAME%pattern}`, `${NAME%%pattern}` | the same at its end; with the pattern read backwards, so sets do not work there |
//! | `${NAME/text/other}`, `${NAME//text/other}` | with the first, with every occurrence replaced; `\/` is a slash |
//! | `${NAME/#text/other}`, `${NAME/%text/other}` | with that beginning, that end replaced |
//!
//! Forms that clusterctl does not know are errors: `${NAME-text}`, `${NAME+text}`, `${NAME?text}`.
//!
//! **Required variables** ([`Template::variables`]): variables in the text itself, not within another's default, whose first
//! occurrence has nothing after the name or an empty default (`${NAME:=}`). Any arguments of the first occurrence, also the
//! pattern of a replacement, count as its default. An unset variable that occurs only within a default is empty.
//!
//! Three differences from clusterctl, where its behaviour is a defect: a zero byte does not end the text, a negative length
//! counts from the end instead of ending the program, and characters are never split.

mod ops;
mod parse;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ops::Op;
pub use parse::{Problem, SyntaxError};

/// The size limit of a variable's result. Nested replacements could exceed any memory.
const MAX_VALUE: usize = 4 << 20;

/// The size limit of a template's result.
const MAX_TEXT: usize = 64 << 20;

/// A text with variables. It borrows the text: parsing copies nothing.
#[derive(Debug)]
pub struct Template<'a> {
    nodes: Vec<Node<'a>>,
    length: usize,
}

#[derive(Debug)]
enum Node<'a> {
    Text(&'a str),
    Call(Box<Call<'a>>),
}

/// A variable and the operation on its value.
#[derive(Debug)]
struct Call<'a> {
    name: &'a str,
    op: Op,
    args: Vec<Arg<'a>>,
}

#[derive(Debug)]
enum Arg<'a> {
    Text(Cow<'a, str>),
    Call(Call<'a>),
}

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// Required variables have no value; all of them, sorted.
    #[error("value for variables [{}] is not set", names.join(", "))]
    Missing {
        /// Their names.
        names: Vec<String>,
    },
    /// The result of a variable would be too long, or take too long to compute.
    #[error(
        "what ${{{name}}} becomes is longer than {MAX_VALUE} bytes or takes too long to find; simplify the expression"
    )]
    TooLong {
        /// The variable.
        name: String,
    },
    /// The whole text would be too long.
    #[error("the text would be longer than {MAX_TEXT} bytes with its variables replaced")]
    TooMuch,
}

impl<'a> Template<'a> {
    /// Finds the variables of a text.
    pub fn parse(text: &'a str) -> Result<Self, SyntaxError> {
        Ok(Self {
            nodes: parse::parse(text)?,
            length: text.len(),
        })
    }

    /// The variables by name with their defaults, as in `clusterctl generate provider --describe`: without a default, a value is
    /// required. A default that is another variable is `${OTHER}`.
    pub fn variables(&self) -> BTreeMap<String, Option<String>> {
        let mut found = BTreeMap::new();
        for call in self.calls() {
            if !found.contains_key(call.name) {
                found.insert(call.name.to_owned(), call.default());
            }
        }
        found
    }

    /// Every variable that may be looked up, including those within defaults.
    pub fn names(&self) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        for call in self.calls() {
            call.names(&mut found);
        }
        found
    }

    /// The text with values in place of variables. Each variable is looked up once.
    pub fn render(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, RenderError> {
        let values: BTreeMap<&str, Option<String>> =
            self.names().into_iter().map(|name| (name, lookup(name))).collect();
        let missing: Vec<String> = self
            .variables()
            .into_iter()
            .filter(|(name, default)| default.is_none() && values.get(name.as_str()).is_none_or(Option::is_none))
            .map(|(name, _)| name)
            .collect();
        if !missing.is_empty() {
            return Err(RenderError::Missing { names: missing });
        }
        let mut text = String::with_capacity(self.length);
        for node in &self.nodes {
            match node {
                Node::Text(part) => text.push_str(part),
                Node::Call(call) => text.push_str(&call.value(&values)?),
            }
            if text.len() > MAX_TEXT {
                return Err(RenderError::TooMuch);
            }
        }
        Ok(text)
    }

    fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Text(_) => None,
            Node::Call(call) => Some(&**call),
        })
    }
}

impl<'a> Call<'a> {
    fn default(&self) -> Option<String> {
        let mut default = String::new();
        for arg in &self.args {
            match arg {
                Arg::Text(text) => default.push_str(text),
                Arg::Call(call) => {
                    default.push_str("${");
                    default.push_str(call.name);
                    default.push('}');
                }
            }
        }
        Some(default).filter(|text| !text.is_empty())
    }

    fn names(&self, found: &mut BTreeSet<&'a str>) {
        found.insert(self.name);
        for arg in &self.args {
            if let Arg::Call(call) = arg {
                call.names(found);
            }
        }
    }

    fn value<'v>(&'v self, values: &'v BTreeMap<&str, Option<String>>) -> Result<Cow<'v, str>, RenderError> {
        let too_long = || RenderError::TooLong {
            name: self.name.to_owned(),
        };
        let args: Vec<Cow<'v, str>> = self
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Text(text) => Ok(Cow::Borrowed(&**text)),
                Arg::Call(call) => call.value(values),
            })
            .collect::<Result<_, _>>()?;
        let value = values.get(self.name).and_then(Option::as_deref).unwrap_or_default();
        let text = ops::apply(self.op, value, &args, MAX_VALUE).ok_or_else(too_long)?;
        if text.len() > MAX_VALUE {
            return Err(too_long());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
