//! Finds the variables of a text.

use std::borrow::Cow;

use super::ops::Op;
use super::{Arg, Call, Node};

/// The limit of nested defaults: real files have fewer, and deeper ones could exhaust the stack.
const MAX_DEPTH: usize = 32;

/// How much of an expression an error shows.
const SHOWN: usize = 40;

/// An expression that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {shown:?} is no variable: {problem}; a text \"${{\" that is not meant as one is written \"$${{\""
)]
pub struct SyntaxError {
    /// The line that it begins on, from 1.
    pub line: usize,
    /// Its beginning.
    pub shown: String,
    /// The problem.
    pub problem: Problem,
}

/// The problem of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No name where one is expected.
    #[error("a name of letters, digits and underscores is missing")]
    Name,
    /// Unexpected text after the name or the expression.
    #[error("\"}}\" is missing, or what follows the name is not understood")]
    Brace,
    /// An operator lacks its argument.
    #[error("the operator after the name lacks its argument")]
    Argument,
    /// A replacement has no second slash.
    #[error("a replacement is written ${{NAME/text/other}}, on one line")]
    Replacement,
    /// Too many variables within one another.
    #[error("more than {MAX_DEPTH} variables are within one another")]
    Depth,
}

type Parsed<T> = Result<T, Problem>;

pub(super) fn parse(text: &str) -> Result<Vec<Node<'_>>, SyntaxError> {
    let mut parser = Parser { text, at: 0 };
    let mut nodes = Vec::new();
    let mut start = 0;
    while let Some(found) = text[parser.at..].find('$') {
        let dollar = parser.at + found;
        match text.as_bytes().get(dollar + 1) {
            Some(b'{') => {
                nodes.push(Node::Text(&text[start..dollar]));
                parser.at = dollar + 2;
                let call = parser.call(0).map_err(|problem| error(text, dollar, problem))?;
                nodes.push(Node::Call(Box::new(call)));
                start = parser.at;
            }
            Some(b'$') => {
                nodes.push(Node::Text(&text[start..=dollar]));
                parser.at = dollar + 2;
                start = parser.at;
                if let Some((name, end)) = parser.padded_name(dollar + 2) {
                    nodes.extend([Node::Text("{"), Node::Text(name), Node::Text("}")]);
                    parser.at = end;
                    start = end;
                }
            }
            _ => parser.at = dollar + 1,
        }
    }
    nodes.push(Node::Text(&text[start..]));
    nodes.retain(|node| !matches!(node, Node::Text("")));
    Ok(nodes)
}

fn error(text: &str, at: usize, problem: Problem) -> SyntaxError {
    let rest = text[at..].lines().next().unwrap_or_default();
    SyntaxError {
        line: 1 + text[..at].bytes().filter(|byte| *byte == b'\n').count(),
        shown: rest.chars().take(SHOWN).collect(),
        problem,
    }
}

/// Characters of names.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes as many of `chars` as there are, at most `most`.
    fn take(&mut self, chars: &[char], most: usize) -> &'a str {
        let rest = self.rest();
        let length: usize = rest
            .chars()
            .take(most)
            .take_while(|c| chars.contains(c))
            .map(char::len_utf8)
            .sum();
        self.at += length;
        &rest[..length]
    }

    fn name(&mut self) -> Parsed<&'a str> {
        let rest = self.rest();
        let length = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
        self.at += length;
        if length == 0 {
            return Err(Problem::Name);
        }
        Ok(&rest[..length])
    }

    fn close(&mut self) -> Parsed<()> {
        if self.take(&['}'], 1).is_empty() {
            return Err(Problem::Brace);
        }
        Ok(())
    }

    /// A name with blanks around it between the braces of `${ NAME }`; `open` is the position of its `{`. Also returns its end.
    fn padded_name(&self, open: usize) -> Option<(&'a str, usize)> {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c');
        let inside = self.text[open..].strip_prefix('{')?;
        let start = inside.trim_start_matches(blank);
        let length = start.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let (name, end) = start.split_at(length);
        let after = end.trim_start_matches(blank).strip_prefix('}')?;
        let padded = start.len() < inside.len() || !end.starts_with('}');
        (padded && !name.is_empty()).then_some((name, self.text.len() - after.len()))
    }

    /// Parses an expression after `${`, up to its `}`.
    fn call(&mut self, depth: usize) -> Parsed<Call<'a>> {
        if depth > MAX_DEPTH {
            return Err(Problem::Depth);
        }
        if let Some((name, end)) = self.padded_name(self.at - 1) {
            self.at = end;
            return Ok(Call {
                name,
                op: Op::Default,
                args: Vec::new(),
            });
        }
        if !self.take(&['#'], 1).is_empty() {
            let name = self.name()?;
            self.close()?;
            return Ok(Call {
                name,
                op: Op::Length,
                args: Vec::new(),
            });
        }
        let name = self.name()?;
        let (op, args) = self.operation(depth)?;
        Ok(Call { name, op, args })
    }

    fn operation(&mut self, depth: usize) -> Parsed<(Op, Vec<Arg<'a>>)> {
        match self.peek() {
            Some(':') => {
                self.at += 1;
                if self.take(&['=', '-', '?', '+'], 1).is_empty() {
                    return self.substring(depth);
                }
                self.default(depth)
            }
            Some('=') => {
                self.at += 1;
                self.default(depth)
            }
            Some(',' | '^') => {
                let op = match self.take(&[',', '^'], 2) {
                    "," => Op::LowerFirst,
                    ",," => Op::Lower,
                    "^" => Op::UpperFirst,
                    "^^" => Op::Upper,
                    _ => Op::Default,
                };
                self.close()?;
                Ok((op, Vec::new()))
            }
            Some('/') => self.replacement(depth),
            Some('#') => {
                let longest = self.take(&['#'], 2).len() == 2;
                self.trimming(Op::TrimStart { longest }, depth)
            }
            Some('%') => {
                let longest = self.take(&['%'], 2).len() == 2;
                self.trimming(Op::TrimEnd { longest }, depth)
            }
            _ => {
                self.close()?;
                Ok((Op::Default, Vec::new()))
            }
        }
    }

    fn default(&mut self, depth: usize) -> Parsed<(Op, Vec<Arg<'a>>)> {
        let mut args = Vec::new();
        while self.peek() != Some('}') {
            args.push(self.argument(&['}'], false, depth)?);
        }
        self.close()?;
        Ok((Op::Default, args))
    }

    fn substring(&mut self, depth: usize) -> Parsed<(Op, Vec<Arg<'a>>)> {
        let mut args = vec![self.argument(&[':', '}'], false, depth)?];
        if !self.take(&[':'], usize::MAX).is_empty() {
            args.push(self.argument(&['}'], false, depth)?);
        }
        self.close()?;
        Ok((Op::Substring, args))
    }

    fn trimming(&mut self, op: Op, depth: usize) -> Parsed<(Op, Vec<Arg<'a>>)> {
        let args = vec![self.argument(&['}'], false, depth)?];
        self.close()?;
        Ok((op, args))
    }

    fn replacement(&mut self, depth: usize) -> Parsed<(Op, Vec<Arg<'a>>)> {
        self.at += 1;
        let op = match self.take(&['/', '#', '%'], 1) {
            "/" => Op::ReplaceAll,
            "#" => Op::ReplaceStart,
            "%" => Op::ReplaceEnd,
            _ => Op::ReplaceFirst,
        };
        let start = self.at;
        let mut args = vec![self.argument(&['/'], true, depth)?];
        // Without its second slash, the text would extend to the next one anywhere in the file.
        let spans_lines = self.text[start..self.at].contains('\n');
        if spans_lines || self.take(&['/'], usize::MAX).is_empty() {
            return Err(Problem::Replacement);
        }
        if self.peek() != Some('}') {
            args.push(self.argument(&['}'], true, depth)?);
        }
        self.close()?;
        Ok((op, args))
    }

    /// Text up to one of `ends` or to a variable, or that variable. With `escapes`, `\/`, `\\` and `$$` are single characters.
    fn argument(&mut self, ends: &[char], escapes: bool, depth: usize) -> Parsed<Arg<'a>> {
        if self.rest().starts_with("${") {
            self.at += 2;
            return self.call(depth + 1).map(Arg::Call);
        }
        let rest = self.rest();
        let mut text = Cow::Borrowed("");
        let mut start = 0;
        let mut end = rest.len();
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            if c == '$' && next == Some('{') {
                end = at;
                break;
            }
            if escapes && matches!((c, next), ('$', Some('$')) | ('\\', Some('/' | '\\'))) {
                text.to_mut().push_str(&rest[start..at]);
                start = at + 1;
                chars.next();
            } else if ends.contains(&c) {
                end = at;
                break;
            }
        }
        self.at += end;
        if end == 0 {
            return Err(Problem::Argument);
        }
        if start == 0 {
            text = Cow::Borrowed(&rest[..end]);
        } else {
            text.to_mut().push_str(&rest[start..end]);
        }
        Ok(Arg::Text(text))
    }
}
