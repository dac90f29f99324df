//! Parses lexemes to templates.

use std::collections::BTreeMap;

use crate::functions::{Functions, NOT_OFFERED, find};
use crate::lexer::{Lexeme, Token, Wrong, lexemes};
use crate::syntax::{Block, Body, Call, Command, Node, Operand, Pipeline, Word};

/// Maximum nesting of blocks and parentheses: each level costs stack, in parsing and in evaluation.
const DEEPEST: usize = 50;

/// A template and its defined templates, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) main: Body,
    pub(crate) defined: BTreeMap<String, Body>,
}

/// Parses a template.
pub(crate) fn parse(text: &str, functions: Functions) -> Result<Parsed, Wrong> {
    let mut parser = Parser {
        lexemes: lexemes(text)?,
        at: 0,
        functions,
        variables: vec!["$".to_owned()],
        loops: 0,
        depth: 0,
        defined: BTreeMap::new(),
    };
    let (main, end) = parser.body(true)?;
    match end {
        Ends::Text => Ok(Parsed {
            main,
            defined: parser.defined,
        }),
        Ends::End | Ends::Else => parser.fail("unexpected {{end}} or {{else}}: no block is open"),
    }
}

/// The keyword that ended a body.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    End,
    Else,
    Text,
}

struct Parser {
    lexemes: Vec<Lexeme>,
    at: usize,
    functions: Functions,
    /// The variables in scope.
    variables: Vec<String>,
    /// The number of enclosing loops.
    loops: usize,
    depth: usize,
    defined: BTreeMap<String, Body>,
}

impl Parser {
    fn line(&self) -> usize {
        self.lexemes.get(self.at).or(self.lexemes.last()).map_or(1, |l| l.line)
    }

    fn peek(&self) -> &Token {
        self.lexemes.get(self.at).map_or(&Token::End, |l| &l.token)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn skip_blanks(&mut self) {
        while *self.peek() == Token::Space {
            self.at += 1;
        }
    }

    fn next_word(&mut self) -> Token {
        self.skip_blanks();
        self.next()
    }

    fn fail<T>(&self, why: impl Into<String>) -> Result<T, Wrong> {
        Err((self.line(), why.into()))
    }

    fn unexpected<T>(&self, token: &Token, place: &str) -> Result<T, Wrong> {
        self.fail(format!("unexpected {} in {place}", token.shown()))
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        if self.depth >= DEEPEST {
            return self.fail(format!("blocks and parentheses are nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }

    /// Whether the next action begins with a word.
    fn at_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    /// Texts and actions, up to the action that ends them.
    fn body(&mut self, top: bool) -> Result<(Body, Ends), Wrong> {
        let mut body = Body::default();
        loop {
            if let Token::Text(text) = self.peek() {
                body.nodes.push(Node::Text(text.clone()));
                self.at += 1;
                continue;
            }
            if *self.peek() == Token::End {
                return if top {
                    Ok((body, Ends::Text))
                } else {
                    self.fail("unexpected end of the template: a block lacks its {{end}}")
                };
            }
            self.skip_blanks();
            let word = match self.peek() {
                Token::Word(word) => word.clone(),
                _ => String::new(),
            };
            match word.as_str() {
                "end" => {
                    self.at += 1;
                    self.expect_close("end")?;
                    return Ok((body, Ends::End));
                }
                "else" => {
                    self.at += 1;
                    // `else if` and `else with` go on with the word.
                    if !self.at_word("if") && !self.at_word("with") {
                        self.expect_close("else")?;
                    }
                    return Ok((body, Ends::Else));
                }
                "define" if top => {
                    self.at += 1;
                    self.define()?;
                }
                _ => {
                    let node = self.action(&word)?;
                    body.nodes.push(node);
                }
            }
        }
    }

    fn expect_close(&mut self, place: &str) -> Result<(), Wrong> {
        match self.next_word() {
            Token::Close => Ok(()),
            token => self.unexpected(&token, place),
        }
    }

    fn action(&mut self, word: &str) -> Result<Node, Wrong> {
        let block = match word {
            "if" => Some(Word::If),
            "with" => Some(Word::With),
            "range" => Some(Word::Range),
            _ => None,
        };
        if let Some(word) = block {
            self.at += 1;
            return self.deeper(|p| p.block(word)).map(Node::Block);
        }
        match word {
            "template" => {
                self.at += 1;
                self.call("template").map(Node::Template)
            }
            "block" => {
                self.at += 1;
                let call = self.call("block")?;
                self.named_body(call.name.clone())?;
                Ok(Node::Template(call))
            }
            "break" | "continue" => {
                self.at += 1;
                self.expect_close(word)?;
                if self.loops == 0 {
                    return self.fail(format!("{{{{{word}}}}} outside of {{{{range}}}}"));
                }
                Ok(if word == "break" { Node::Break } else { Node::Continue })
            }
            "define" => self.fail("unexpected {{define}}: it must stand outside of blocks"),
            _ => self.pipeline("command", &Token::Close).map(Node::Action),
        }
    }

    fn block(&mut self, word: Word) -> Result<Block, Wrong> {
        let outer = self.variables.len();
        let pipeline = self.pipeline(word.text(), &Token::Close)?;
        self.loops += usize::from(word == Word::Range);
        let inside = self.body(false);
        self.loops -= usize::from(word == Word::Range);
        let (body, end) = inside?;
        let otherwise = if end == Ends::Else {
            Some(self.otherwise(word)?)
        } else {
            None
        };
        self.variables.truncate(outer);
        Ok(Block {
            word,
            pipeline,
            body,
            otherwise,
        })
    }

    /// The part after `else`: a body up to `end`, or another block.
    fn otherwise(&mut self, word: Word) -> Result<Body, Wrong> {
        for (next, allowed) in [("if", Word::If), ("with", Word::With)] {
            if self.after_else() && self.at_word(next) {
                if word != allowed {
                    return self.fail(format!("unexpected {next:?} in else of {}", word.text()));
                }
                self.at += 1;
                // The inner block's `end` also ends the outer one.
                let inner = self.deeper(|p| p.block(allowed))?;
                return Ok(Body {
                    nodes: vec![Node::Block(inner)],
                });
            }
        }
        let (body, end) = self.body(false)?;
        if end == Ends::Else {
            return self.fail("expected {{end}}, found a second {{else}}");
        }
        Ok(body)
    }

    /// Whether the `else` action continues with a block.
    fn after_else(&self) -> bool {
        let before = self.lexemes[..self.at].iter().rev().find(|l| l.token != Token::Space);
        before.is_some_and(|l| l.token != Token::Close)
    }

    fn name(&mut self, place: &str) -> Result<String, Wrong> {
        match self.next_word() {
            Token::Quoted(name) => Ok(name),
            token => self.unexpected(&token, &format!("{place} clause, which begins with a quoted name")),
        }
    }

    /// `"name" pipeline`; `block` requires the pipeline.
    fn call(&mut self, place: &str) -> Result<Call, Wrong> {
        let line = self.line();
        let name = self.name(place)?;
        self.skip_blanks();
        let argument = if *self.peek() == Token::Close && place == "template" {
            self.at += 1;
            None
        } else {
            Some(self.pipeline(place, &Token::Close)?)
        };
        Ok(Call { line, name, argument })
    }

    fn define(&mut self) -> Result<(), Wrong> {
        let name = self.name("define")?;
        self.expect_close("define clause")?;
        self.named_body(name)
    }

    /// A body with its own variables and loops, stored by name. A body of blanks does not replace another one.
    fn named_body(&mut self, name: String) -> Result<(), Wrong> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let loops = std::mem::take(&mut self.loops);
        let inside = self.deeper(|p| p.body(false));
        self.variables = variables;
        self.loops = loops;
        let (body, end) = inside?;
        if end == Ends::Else {
            return self.fail(format!("unexpected {{{{else}}}} in the definition of {name:?}"));
        }
        match self.defined.get(&name) {
            Some(have) if !is_blank(have) => {
                if !is_blank(&body) {
                    return self.fail(format!("multiple definition of template {name:?}"));
                }
            }
            _ => {
                self.defined.insert(name, body);
            }
        }
        Ok(())
    }

    /// A pipeline and the token that ends it.
    fn pipeline(&mut self, place: &str, end: &Token) -> Result<Pipeline, Wrong> {
        let line = self.line();
        let (variables, assigns) = self.declarations(place)?;
        let mut commands: Vec<Command> = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                token if token == end => {
                    self.at += 1;
                    break;
                }
                Token::Word(_)
                | Token::Field(_)
                | Token::Variable(_)
                | Token::Dot
                | Token::Quoted(_)
                | Token::Number(_)
                | Token::Left => {
                    let command = self.command()?;
                    commands.push(command);
                }
                token => {
                    let token = token.clone();
                    return self.unexpected(&token, place);
                }
            }
        }
        if commands.is_empty() {
            return Err((line, format!("missing value for {place}")));
        }
        for (at, command) in commands.iter().enumerate().skip(1) {
            if let Some(Operand::Bool(_) | Operand::Dot | Operand::Nil | Operand::Number(_) | Operand::Text(_)) =
                command.operands.first()
            {
                return Err((
                    command.line,
                    format!("stage {} of a pipeline is no function and takes no value", at + 1),
                ));
            }
        }
        // In Go, a variable can be used in its own declaration, where it has no value; here evaluation refuses this.
        Ok(Pipeline {
            line,
            variables,
            assigns,
            commands,
        })
    }

    /// `$a, $b :=` or `$a =` before a pipeline, if present.
    fn declarations(&mut self, place: &str) -> Result<(Vec<String>, bool), Wrong> {
        let mut names: Vec<String> = Vec::new();
        loop {
            self.skip_blanks();
            let begin = self.at;
            let Token::Variable(name) = self.peek().clone() else {
                if names.is_empty() {
                    return Ok((names, false));
                }
                // `range $i, := …` declares one.
                let token = self.peek().clone();
                return self.unexpected(&token, place);
            };
            self.at += 1;
            match self.next_word() {
                token @ (Token::Declare | Token::Assign) => {
                    self.variables.push(name.clone());
                    names.push(name);
                    return Ok((names, token == Token::Assign));
                }
                Token::Comma => {
                    if place != "range" || !names.is_empty() {
                        return self.fail(format!("too many declarations in {place}"));
                    }
                    self.variables.push(name.clone());
                    names.push(name);
                }
                token => {
                    self.at = begin;
                    if names.is_empty() {
                        return Ok((names, false));
                    }
                    return self.unexpected(&token, place);
                }
            }
        }
    }

    /// Operands up to a pipe, or up to the end of the pipeline (which is not consumed).
    fn command(&mut self) -> Result<Command, Wrong> {
        let line = self.line();
        let mut operands = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            match self.peek() {
                Token::Space => {}
                Token::Close | Token::Right => break,
                Token::Pipe => {
                    self.at += 1;
                    break;
                }
                token => {
                    let token = token.clone();
                    return self.unexpected(&token, "operand");
                }
            }
        }
        if operands.is_empty() {
            return self.fail("empty command");
        }
        Ok(Command { line, operands })
    }

    /// A term with the fields directly after it.
    fn operand(&mut self) -> Result<Option<Operand>, Wrong> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        while let Token::Field(name) = self.peek() {
            fields.push(name.clone());
            self.at += 1;
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        Ok(Some(match term {
            Operand::Field(mut path) => {
                path.append(&mut fields);
                Operand::Field(path)
            }
            Operand::Variable(name, mut path) => {
                path.append(&mut fields);
                Operand::Variable(name, path)
            }
            Operand::Bool(_) | Operand::Text(_) | Operand::Number(_) | Operand::Nil | Operand::Dot => {
                return self.fail("unexpected . after a term that has no fields");
            }
            other => Operand::Chain(Box::new(other), fields),
        }))
    }

    fn term(&mut self) -> Result<Option<Operand>, Wrong> {
        let operand = match self.peek().clone() {
            Token::Word(word) => {
                let operand = self.word(&word)?;
                self.at += 1;
                return Ok(Some(operand));
            }
            Token::Dot => Operand::Dot,
            Token::Field(name) => Operand::Field(vec![name]),
            Token::Variable(name) => {
                if !self.variables.contains(&name) {
                    return self.fail(format!("undefined variable {name:?}"));
                }
                Operand::Variable(name, Vec::new())
            }
            Token::Number(number) => Operand::Number(number),
            Token::Quoted(text) => Operand::Text(text),
            Token::Left => {
                self.at += 1;
                let inner = self.deeper(|p| p.pipeline("parenthesized pipeline", &Token::Right))?;
                return Ok(Some(Operand::Pipeline(Box::new(inner))));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(operand))
    }

    fn word(&self, word: &str) -> Result<Operand, Wrong> {
        match word {
            "true" => return Ok(Operand::Bool(true)),
            "false" => return Ok(Operand::Bool(false)),
            "nil" => return Ok(Operand::Nil),
            "if" | "with" | "range" | "else" | "end" | "define" | "template" | "block" | "break" | "continue" => {
                return self.fail(format!("unexpected {{{{{word}}}}} inside of an action"));
            }
            _ => {}
        }
        if let Some(function) = find(word, self.functions) {
            return Ok(Operand::Function(function));
        }
        match NOT_OFFERED.iter().find(|(names, _)| names.contains(&word)) {
            Some((_, why)) if self.functions == Functions::Sprig => {
                self.fail(format!("function {word:?} is not offered: {why}"))
            }
            _ => self.fail(format!("function {word:?} is not defined")),
        }
    }
}

/// Whether a body has only blanks.
fn is_blank(body: &Body) -> bool {
    body.nodes
        .iter()
        .all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}
