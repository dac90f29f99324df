//! Splits a text into lexemes by the rules of Go's text/template: delimiters, trim markers, comments, strings, numbers.

use crate::number;
use crate::syntax::Number;

/// A lexeme with the line on which it begins.
#[derive(Clone, Debug)]
pub(crate) struct Lexeme {
    pub(crate) line: usize,
    pub(crate) token: Token,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// Text outside of actions, trimmed by adjacent markers.
    Text(String),
    /// `}}`. The opening delimiter has no token, because an action's first lexeme follows it.
    Close,
    /// Blanks within an action, which separate operands.
    Space,
    /// A name: a keyword, `true`, `false`, or a function.
    Word(String),
    /// `.name`
    Field(String),
    /// `$name` or `$`
    Variable(String),
    Dot,
    Quoted(String),
    Number(Number),
    Declare,
    Assign,
    Pipe,
    Comma,
    Left,
    Right,
    /// Any other printable character, which is invalid in actions.
    Other(char),
    End,
}

impl Token {
    /// The token in the form of error messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(_) => "text".to_owned(),
            Self::Close => "the end of the action".to_owned(),
            Self::Space => "a blank".to_owned(),
            Self::Word(word) => format!("{word:?}"),
            Self::Field(name) => format!("\".{name}\""),
            Self::Variable(name) => format!("{name:?}"),
            Self::Dot => "\".\"".to_owned(),
            Self::Quoted(text) => format!("the text {text:?}"),
            Self::Number(number) => format!("the number {}", number.text),
            Self::Declare => "\":=\"".to_owned(),
            Self::Assign => "\"=\"".to_owned(),
            Self::Pipe => "\"|\"".to_owned(),
            Self::Comma => "\",\"".to_owned(),
            Self::Left => "\"(\"".to_owned(),
            Self::Right => "\")\"".to_owned(),
            Self::Other(c) => format!("{c:?}"),
            Self::End => "the end of the template".to_owned(),
        }
    }
}

/// The position and text of an error.
pub(crate) type Wrong = (usize, String);

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    out: Vec<Lexeme>,
}

/// All lexemes of a template; the last one is [`Token::End`].
pub(crate) fn lexemes(text: &str) -> Result<Vec<Lexeme>, Wrong> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        out: Vec::new(),
    };
    let mut trim = false;
    while let Some(next) = lexer.rest().find(OPEN) {
        let after = &lexer.rest()[next + OPEN.len()..];
        let trims_before = is_left_trim(after);
        lexer.outside(next, trim, trims_before);
        lexer.skip(OPEN.len() + if trims_before { 2 } else { 0 });
        trim = if lexer.rest().starts_with("/*") {
            lexer.comment()?
        } else {
            lexer.action()?
        };
    }
    lexer.outside(lexer.rest().len(), trim, false);
    lexer.push(Token::End);
    Ok(lexer.out)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// `- `: trims the blanks before an action.
fn is_left_trim(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_blank))
}

/// The end of an action: its length, and whether it trims the following blanks.
fn close(text: &str) -> Option<(usize, bool)> {
    if text.starts_with(CLOSE) {
        return Some((CLOSE.len(), false));
    }
    let trims = text.strip_prefix(is_blank)?.strip_prefix('-')?.starts_with(CLOSE);
    trims.then_some((CLOSE.len() + 2, true))
}

fn is_part_of_a_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        self.line += passed.matches('\n').count();
        self.at += bytes;
    }

    fn push(&mut self, token: Token) {
        self.out.push(Lexeme { line: self.line, token });
    }

    fn fail<T>(&self, why: impl Into<String>) -> Result<T, Wrong> {
        Err((self.line, why.into()))
    }

    fn outside(&mut self, bytes: usize, trim_start: bool, trim_end: bool) {
        let mut text = &self.rest()[..bytes];
        if trim_start {
            text = text.trim_start_matches(is_blank);
        }
        if trim_end {
            text = text.trim_end_matches(is_blank);
        }
        if !text.is_empty() {
            self.push(Token::Text(text.to_owned()));
        }
        self.skip(bytes);
    }

    fn comment(&mut self) -> Result<bool, Wrong> {
        let Some(end) = self.rest().find("*/") else {
            return self.fail("a comment is not closed");
        };
        let Some((length, trims)) = close(&self.rest()[end + 2..]) else {
            return self.fail("a comment must fill its action: nothing may stand between `*/` and `}}`");
        };
        self.skip(end + 2 + length);
        Ok(trims)
    }

    /// The inside of an action up to its end. Returns whether that trims the following text.
    fn action(&mut self) -> Result<bool, Wrong> {
        let begins = self.line;
        let mut open = 0usize;
        loop {
            if let Some((length, trims)) = close(self.rest()) {
                if open > 0 {
                    return self.fail("unclosed left parenthesis");
                }
                self.push(Token::Close);
                self.skip(length);
                return Ok(trims);
            }
            let Some(c) = self.rest().chars().next() else {
                return Err((begins, "unclosed action".to_owned()));
            };
            match c {
                '(' => open += 1,
                ')' if open == 0 => return self.fail("unexpected right parenthesis"),
                ')' => open -= 1,
                _ => {}
            }
            self.one(c)?;
        }
    }

    fn one(&mut self, c: char) -> Result<(), Wrong> {
        let simple = match c {
            '=' => Some(Token::Assign),
            '|' => Some(Token::Pipe),
            ',' => Some(Token::Comma),
            '(' => Some(Token::Left),
            ')' => Some(Token::Right),
            _ => None,
        };
        if let Some(token) = simple {
            self.push(token);
            self.skip(1);
            return Ok(());
        }
        let next = self.rest()[c.len_utf8()..].chars().next();
        match c {
            _ if is_blank(c) => {
                self.blanks();
                Ok(())
            }
            ':' if next == Some('=') => {
                self.push(Token::Declare);
                self.skip(2);
                Ok(())
            }
            ':' => self.fail("expected :="),
            '"' => self.quoted(),
            '`' => self.raw(),
            '\'' => self.character(),
            '$' => self.name(1, Token::Variable),
            '.' if !next.is_some_and(|n| n.is_ascii_digit()) => self.name(1, Token::Field),
            '.' | '+' | '-' | '0'..='9' => self.number(),
            _ if is_part_of_a_name(c) => self.name(0, Token::Word),
            _ if c.is_ascii_graphic() => {
                self.push(Token::Other(c));
                self.skip(1);
                Ok(())
            }
            _ => self.fail(format!("unrecognized character in action: {c:?}")),
        }
    }

    /// Blanks, except for the one in a trim marker at the end of the action.
    fn blanks(&mut self) {
        let rest = self.rest();
        let mut length = 0;
        while rest[length..].starts_with(is_blank) && close(&rest[length..]).is_none() {
            length += 1;
        }
        if length > 0 {
            self.push(Token::Space);
            self.skip(length);
        }
    }

    /// A name after `sigil` bytes; without a name, it is the dot or the variable `$`.
    fn name(&mut self, sigil: usize, token: fn(String) -> Token) -> Result<(), Wrong> {
        let rest = self.rest();
        let length = rest[sigil..]
            .find(|c| !is_part_of_a_name(c))
            .unwrap_or(rest.len() - sigil);
        let end = sigil + length;
        let ends_well = rest[end..].starts_with(CLOSE)
            || rest[end..]
                .chars()
                .next()
                .is_none_or(|c| is_blank(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('));
        if !ends_well {
            let bad = rest[end..].chars().next().unwrap_or_default();
            return self.fail(format!("bad character {bad:?} after {:?}", &rest[..end]));
        }
        let is_field = rest.starts_with('.');
        self.push(match () {
            () if is_field && length == 0 => Token::Dot,
            () if is_field => Token::Field(rest[1..end].to_owned()),
            () => token(rest[..end].to_owned()),
        });
        self.skip(end);
        Ok(())
    }

    fn number(&mut self) -> Result<(), Wrong> {
        let rest = self.rest();
        let mut length = usize::from(rest.starts_with(['+', '-']));
        let digits = &rest[length..];
        let hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
        let mut before = ' ';
        for c in digits.chars() {
            // A sign is part of a number only at the start of its exponent.
            let signs_exponent = matches!(c, '+' | '-')
                && if hexadecimal {
                    matches!(before, 'p' | 'P')
                } else {
                    matches!(before, 'e' | 'E')
                };
            if !(is_part_of_a_name(c) || c == '.' || signs_exponent) {
                break;
            }
            before = c;
            length += c.len_utf8();
        }
        let number = number::read(&rest[..length]).map_err(|why| (self.line, why))?;
        self.push(Token::Number(number));
        self.skip(length);
        Ok(())
    }

    /// The text up to the closing quote; a backslash escapes it.
    fn up_to(&self, quote: char, what: &str) -> Result<&'a str, Wrong> {
        let inside = &self.rest()[1..];
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == quote => return Ok(&inside[..at]),
                _ => {}
            }
        }
        self.fail(format!("unterminated {what}"))
    }

    fn quoted(&mut self) -> Result<(), Wrong> {
        let inside = self.up_to('"', "quoted string")?;
        let text = unescaped(inside, '"').map_err(|why| (self.line, why))?;
        self.push(Token::Quoted(text));
        self.skip(inside.len() + 2);
        Ok(())
    }

    fn raw(&mut self) -> Result<(), Wrong> {
        let inside = &self.rest()[1..];
        let Some(end) = inside.find('`') else {
            return self.fail("unterminated raw quoted string");
        };
        self.push(Token::Quoted(inside[..end].replace('\r', "")));
        self.skip(end + 2);
        Ok(())
    }

    /// `'x'`, the number of a character.
    fn character(&mut self) -> Result<(), Wrong> {
        let inside = self.up_to('\'', "character constant")?;
        let text = unescaped(inside, '\'').map_err(|why| (self.line, why))?;
        let mut characters = text.chars();
        let (Some(c), None) = (characters.next(), characters.next()) else {
            return self.fail(format!("malformed character constant: '{inside}'"));
        };
        self.push(Token::Number(Number {
            text: format!("'{inside}'"),
            whole: Some(i64::from(u32::from(c))),
            float: f64::from(u32::from(c)),
            has_point: false,
        }));
        self.skip(inside.len() + 2);
        Ok(())
    }
}

/// Replaces Go's escapes. A result that is not UTF-8 is an error, because texts here are UTF-8.
fn unescaped(inside: &str, quote: char) -> Result<String, String> {
    let bad = |what: &str| format!("invalid escape {what:?} in a quoted string");
    let mut out: Vec<u8> = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            return Err(bad("\\"));
        };
        let simple = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            _ if c == quote => u8::try_from(c).unwrap_or_default(),
            _ => 0,
        };
        if simple != 0 {
            out.push(simple);
            rest = &rest[1..];
            continue;
        }
        let (start, length, base) = match c {
            'x' => (1, 2, 16),
            'u' => (1, 4, 16),
            'U' => (1, 8, 16),
            '0'..='7' => (0, 3, 8),
            _ => return Err(bad(&format!("\\{c}"))),
        };
        let digits = rest.get(start..start + length).ok_or_else(|| bad(&format!("\\{c}")))?;
        let number = digits
            .chars()
            .all(|d| d.is_digit(base))
            .then(|| u32::from_str_radix(digits, base).ok())
            .flatten()
            .ok_or_else(|| bad(&format!("\\{}", &rest[..start + length])))?;
        if matches!(c, 'u' | 'U') {
            let c = char::from_u32(number).ok_or_else(|| bad(&format!("\\{}", &rest[..start + length])))?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            out.push(u8::try_from(number).map_err(|_| bad(&format!("\\{digits}")))?);
        }
        rest = &rest[start + length..];
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).map_err(|_| "a quoted string is not UTF-8".to_owned())
}
