//! The text form of label selectors: the same grammar as in Kubernetes, including its special cases and error messages.

use std::collections::BTreeSet;

use windlass_schema::FieldError;

use super::{Op, Requirement};
use crate::names::{label_key_problems, label_value_problems};

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Word,
    Not,
    Comma,
    Open,
    Close,
    Equal,
    NotEqual,
    Greater,
    Less,
    In,
    NotIn,
    Unknown,
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

fn is_sign(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn sign(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" | "=" => Token::Equal,
        ">" => Token::Greater,
        "<" => Token::Less,
        "!=" => Token::NotEqual,
        "(" => Token::Open,
        _ => return None,
    })
}

fn scan(text: &str) -> Vec<(Token, &str)> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_sign(first) {
            // The longest operator that starts here. Single-character operators end here, except for `=` and `!` before `=`.
            let two = rest.get(..2).filter(|t| sign(t).is_some());
            two.map_or(1, str::len)
        } else {
            rest.find(|c: char| is_sign(c) || c.is_whitespace())
                .unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(length);
        let token = match word {
            "in" => Token::In,
            "notin" => Token::NotIn,
            _ if is_sign(first) => sign(word).unwrap_or(Token::Unknown),
            _ => Token::Word,
        };
        out.push((token, word));
        rest = after.trim_start();
    }
    out
}

impl<'a> Parser<'a> {
    /// The next token where `in` and `notin` are operators.
    fn operator(&mut self) -> (Token, &'a str) {
        let out = self.tokens.get(self.at).copied().unwrap_or((Token::End, ""));
        self.at += 1;
        out
    }

    /// The next token where `in` and `notin` are words.
    fn next(&mut self) -> (Token, &'a str) {
        let out = self.peek();
        self.at += 1;
        out
    }

    fn peek(&self) -> (Token, &'a str) {
        match self.tokens.get(self.at).copied() {
            Some((Token::In | Token::NotIn, word)) => (Token::Word, word),
            Some(other) => other,
            None => (Token::End, ""),
        }
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut out = Vec::new();
        loop {
            match self.peek() {
                (Token::Word | Token::Not, _) => {
                    let one = self.requirement();
                    out.push(one.map_err(|why| format!("unable to parse requirement: {why}"))?);
                    match self.next() {
                        (Token::End, _) => return Ok(out),
                        (Token::Comma, _) => {
                            let (token, word) = self.peek();
                            if !matches!(token, Token::Word | Token::Not) {
                                return Err(format!("found '{word}', expected: identifier after ','"));
                            }
                        }
                        (_, word) => return Err(format!("found '{word}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(out),
                (_, word) => return Err(format!("found '{word}', expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next();
        let absent = token == Token::Not;
        if absent {
            (token, key) = self.next();
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(problem) = label_key_problems(key).into_iter().next() {
            return Err(FieldError::invalid("<nil>", key.into(), problem).to_string());
        }
        let ends = matches!(self.peek().0, Token::End | Token::Comma);
        if absent || ends {
            let op = if absent { Op::Absent } else { Op::Exists };
            return Ok(Requirement::new(key, op, BTreeSet::new()));
        }
        let (token, word) = self.operator();
        let op = match token {
            Token::In | Token::Equal => Op::In,
            Token::NotIn | Token::NotEqual => Op::NotIn,
            Token::Greater => Op::Greater,
            Token::Less => Op::Less,
            _ => return Err(format!("found '{word}', expected: {OPERATORS}")),
        };
        let values = if matches!(token, Token::In | Token::NotIn) {
            self.values()?
        } else {
            BTreeSet::from([self.value()?])
        };
        check_values(key, op, &values)?;
        Ok(Requirement::new(key, op, values))
    }

    fn value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next() {
            (Token::Word, word) => Ok(word),
            (_, word) => Err(format!("found '{word}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let (token, word) = self.next();
        if token != Token::Open {
            return Err(format!("found '{word}' expected: '('"));
        }
        let out = match self.peek() {
            (Token::Word | Token::Comma, _) => self.words()?,
            (Token::Close, _) => BTreeSet::from([""]),
            (_, word) => return Err(format!("found '{word}', expected: ',', ')' or identifier")),
        };
        self.next();
        Ok(out)
    }

    /// Values up to the closing parenthesis; adjacent commas mean an empty value.
    fn words(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut out = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Word, word) => {
                    out.insert(word);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(out),
                        (_, word) => return Err(format!("found '{word}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if out.is_empty() {
                        out.insert("");
                    }
                    match self.peek().0 {
                        Token::Close => {
                            out.insert("");
                            return Ok(out);
                        }
                        Token::Comma => {
                            self.next();
                            out.insert("");
                        }
                        _ => {}
                    }
                }
                (_, word) => return Err(format!("found '{word}', expected: ',', or identifier")),
            }
        }
    }
}

fn check_values(key: &str, op: Op, values: &BTreeSet<&str>) -> Result<(), String> {
    for (i, value) in values.iter().enumerate() {
        if matches!(op, Op::Greater | Op::Less) && value.parse::<i64>().is_err() {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(FieldError::invalid(format!("values[{i}]"), (*value).into(), why).to_string());
        }
        if let Some(problem) = label_value_problems(value).into_iter().next() {
            return Err(FieldError::invalid(format!("values[{i}][{key}]"), (*value).into(), problem).to_string());
        }
    }
    Ok(())
}

/// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    Parser {
        tokens: scan(text),
        at: 0,
    }
    .selector()
}
