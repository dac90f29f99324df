//! Formats values as Go's fmt does: `%v` for the output of templates, and `printf`.

use std::fmt::Write as _;

use windlass_gocompat::quote;

use crate::Missing;
use crate::machine::Machine;
use crate::number;
use crate::value::{DEEPEST, MAX_TEXT, Out, Value, too_deep, too_long};

/// The flags between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// The limit of widths and precisions, as in Go.
const MAX_WIDTH: i64 = 1_000_000;

impl Machine<'_> {
    /// A value in the `%v` format.
    pub(crate) fn shown(&mut self, value: &Value) -> Out<String> {
        if let Value::Text(text) = value {
            return Ok(text.to_string());
        }
        let mut out = String::new();
        self.print(&mut out, value, 'v', Spec::default(), DEEPEST)?;
        Ok(out)
    }

    /// Go's `Sprint`: blanks between operands if neither is a text.
    pub(crate) fn sprint(&mut self, values: &[Value]) -> Out<String> {
        let mut out = String::new();
        let mut after_text = true;
        for (at, value) in values.iter().enumerate() {
            let is_text = matches!(value, Value::Text(_));
            if at > 0 && !is_text && !after_text {
                out.push(' ');
            }
            self.print(&mut out, value, 'v', Spec::default(), DEEPEST)?;
            after_text = is_text;
        }
        Ok(out)
    }

    /// Go's `Sprintln`: blanks between all operands.
    pub(crate) fn sprintln(&mut self, values: &[Value]) -> Out<String> {
        let mut out = String::new();
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            self.print(&mut out, value, 'v', Spec::default(), DEEPEST)?;
        }
        out.push('\n');
        Ok(out)
    }

    /// Go's `Sprintf`.
    pub(crate) fn sprintf(&mut self, format: &str, values: &[Value]) -> Out<String> {
        let mut out = String::new();
        let mut rest = format;
        let mut arguments = Arguments {
            values,
            at: 0,
            reordered: false,
            good: true,
        };
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            rest = self.directive(&mut out, rest, &mut arguments)?;
            if out.len() > MAX_TEXT {
                return Err(too_long());
            }
        }
        out.push_str(rest);
        if !arguments.reordered && arguments.at < values.len() {
            out.push_str("%!(EXTRA ");
            for (at, value) in values[arguments.at..].iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                if value.is_nothing() {
                    out.push_str("<nil>");
                } else {
                    out.push_str(value.type_name(&self.heap));
                    out.push('=');
                    self.print(&mut out, value, 'v', Spec::default(), DEEPEST)?;
                }
            }
            out.push(')');
        }
        Ok(out)
    }

    /// A directive after its `%`. Returns the rest of the format.
    fn directive<'f>(&mut self, out: &mut String, format: &'f str, arguments: &mut Arguments<'_>) -> Out<&'f str> {
        let mut spec = Spec::default();
        let mut rest = format;
        while let Some(c) = rest.chars().next() {
            match c {
                '+' => spec.plus = true,
                '-' => spec.minus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                '0' => spec.zero = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        arguments.good = true;
        rest = arguments.index(rest);
        if let Some(after) = rest.strip_prefix('*') {
            rest = after;
            match arguments.number() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => out.push_str("%!(BADWIDTH)"),
            }
        } else {
            (spec.width, rest) = digits(rest);
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = arguments.index(after);
            if let Some(after) = rest.strip_prefix('*') {
                rest = after;
                spec.precision = match arguments.number() {
                    Some(n) if n >= 0 => usize::try_from(n).ok(),
                    Some(_) => None,
                    None => {
                        out.push_str("%!(BADPREC)");
                        None
                    }
                };
            } else {
                let (precision, after) = digits(rest);
                spec.precision = Some(precision.unwrap_or(0));
                rest = after;
            }
        }
        rest = arguments.index(rest);
        let Some(verb) = rest.chars().next() else {
            out.push_str("%!(NOVERB)");
            return Ok(rest);
        };
        rest = &rest[verb.len_utf8()..];
        if verb == '%' {
            out.push('%');
        } else if !arguments.good {
            let _ = write!(out, "%!{verb}(BADINDEX)");
        } else if let Some(value) = arguments.values.get(arguments.at) {
            arguments.at += 1;
            // `%+v` adds the field names of structures in Go, but there are no structures here.
            spec.plus &= verb != 'v';
            self.print(out, value, verb, spec, DEEPEST)?;
        } else {
            let _ = write!(out, "%!{verb}(MISSING)");
        }
        Ok(rest)
    }

    fn print(&mut self, out: &mut String, value: &Value, verb: char, spec: Spec, deepest: usize) -> Out<()> {
        let deeper = deepest.checked_sub(1).ok_or_else(too_deep)?;
        let before = out.len();
        if matches!(value, Value::Missing(_)) && self.rules.missing != Missing::Print {
            return Err(Self::missing(value));
        }
        let inside = deepest < DEEPEST;
        match (verb, value) {
            ('T', _) => string(out, value.type_name(&self.heap), 's', spec),
            (_, Value::Nil | Value::Missing(_)) if inside && spec.sharp && verb == 'v' => {
                out.push_str("interface {}(nil)");
            }
            (_, Value::Nil | Value::Missing(_)) if inside => out.push_str("<nil>"),
            ('v', Value::Nil | Value::Missing(_)) => pad(out, "<nil>", spec),
            ('v' | 't', Value::Bool(b)) => pad(out, if *b { "true" } else { "false" }, spec),
            ('v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' | 'c' | 'q' | 'U', Value::Int(n) | Value::Int64(n)) => {
                integer(out, *n, verb, spec);
            }
            ('v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G', Value::Float(f)) => float(out, *f, verb, spec),
            ('v' | 's' | 'q' | 'x' | 'X', Value::Text(text)) => string(out, text, verb, spec),
            ('v' | 's' | 'q', Value::Version(v)) => string(out, &v.version.to_string(), verb, spec),
            (_, Value::List(list)) => {
                let go_syntax = verb == 'v' && spec.sharp;
                out.push_str(if go_syntax { "[]interface {}{" } else { "[" });
                for (at, item) in self.heap.list(*list).iter().enumerate() {
                    if at > 0 {
                        out.push_str(if go_syntax { ", " } else { " " });
                    }
                    self.print(out, item, verb, spec, deeper)?;
                }
                out.push(if go_syntax { '}' } else { ']' });
            }
            (_, Value::Map(map)) => {
                let go_syntax = verb == 'v' && spec.sharp;
                let type_name = value.type_name(&self.heap);
                let _ = write!(out, "{}", if go_syntax { type_name } else { "map" });
                out.push(if go_syntax { '{' } else { '[' });
                for (at, (key, item)) in self.heap.map(*map).entries.clone().into_iter().enumerate() {
                    if at > 0 {
                        out.push_str(if go_syntax { ", " } else { " " });
                    }
                    self.print(out, &Value::Text(key), verb, spec, deeper)?;
                    out.push(':');
                    self.print(out, &item, verb, spec, deeper)?;
                }
                out.push(if go_syntax { '}' } else { ']' });
            }
            (_, Value::Nil | Value::Missing(_)) => {
                let _ = write!(out, "%!{verb}(<nil>)");
            }
            _ => {
                let _ = write!(out, "%!{verb}({}=", value.type_name(&self.heap));
                self.print(out, value, 'v', Spec { sharp: false, ..spec }, deeper)?;
                out.push(')');
            }
        }
        if out.len() > MAX_TEXT {
            return Err(too_long());
        }
        self.heap.spend(16 + out.len().saturating_sub(before))
    }
}

/// The arguments of `printf`, in order or by number.
struct Arguments<'a> {
    values: &'a [Value],
    at: usize,
    reordered: bool,
    good: bool,
}

impl Arguments<'_> {
    /// `[n]`: selects the nth argument.
    fn index<'f>(&mut self, format: &'f str) -> &'f str {
        let Some(inside) = format.strip_prefix('[') else {
            return format;
        };
        self.reordered = true;
        let Some(end) = inside.find(']') else {
            self.good = false;
            return inside;
        };
        match inside[..end].parse::<usize>() {
            Ok(n) if (1..=self.values.len()).contains(&n) => self.at = n - 1,
            _ => self.good = false,
        }
        &inside[end + 1..]
    }

    /// The next argument, as a width or precision.
    fn number(&mut self) -> Option<i64> {
        let value = self.values.get(self.at);
        self.at += usize::from(value.is_some());
        match value {
            Some(Value::Int(n) | Value::Int64(n)) => Some(*n).filter(|n| (-MAX_WIDTH..=MAX_WIDTH).contains(n)),
            _ => None,
        }
    }
}

/// Leading digits as a number, and the rest.
fn digits(text: &str) -> (Option<usize>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end]
        .parse()
        .ok()
        .filter(|n| i64::try_from(*n).is_ok_and(|n| n <= MAX_WIDTH));
    (number, &text[end..])
}

/// Pads a text to its width.
fn pad(out: &mut String, text: &str, spec: Spec) {
    let missing = spec.width.unwrap_or_default().saturating_sub(text.chars().count());
    if spec.minus {
        out.push_str(text);
    }
    let filler = if spec.zero && !spec.minus { '0' } else { ' ' };
    out.extend(std::iter::repeat_n(filler, missing));
    if !spec.minus {
        out.push_str(text);
    }
}

fn integer(out: &mut String, n: i64, verb: char, spec: Spec) {
    let character = || u32::try_from(n).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}');
    match verb {
        'c' => return pad(out, &character().to_string(), spec),
        'q' => return pad(out, &quote::quoted_char(character(), spec.plus), spec),
        'U' => {
            let mut text = format!("U+{n:04X}");
            if spec.sharp && quote::is_printable(character()) {
                let _ = write!(text, " '{}'", character());
            }
            return pad(out, &text, Spec { zero: false, ..spec });
        }
        _ => {}
    }
    let size = n.unsigned_abs();
    let (mut text, prefix) = match verb {
        'b' => (format!("{size:b}"), "0b"),
        'o' => (format!("{size:o}"), "0"),
        'O' => (format!("{size:o}"), "0o"),
        'x' => (format!("{size:x}"), "0x"),
        'X' => (format!("{size:X}"), "0X"),
        _ => (size.to_string(), ""),
    };
    let sign = match n {
        ..0 => "-",
        _ if spec.plus => "+",
        _ if spec.space => " ",
        _ => "",
    };
    let mut spec = spec;
    let wanted = match (spec.precision, spec.width) {
        (Some(0), _) if n == 0 => {
            return pad(out, "", Spec { zero: false, ..spec });
        }
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(sign.len()),
        _ => 0,
    };
    spec.zero = false;
    let zeros = wanted.saturating_sub(text.len());
    text.insert_str(0, &"0".repeat(zeros));
    let prefix = match verb {
        'O' => prefix,
        'o' if spec.sharp && text.starts_with('0') => "",
        _ if spec.sharp => prefix,
        _ => "",
    };
    pad(out, &format!("{sign}{prefix}{text}"), spec);
}

fn float(out: &mut String, f: f64, verb: char, spec: Spec) {
    let (verb, precision) = match verb {
        'v' => ('g', spec.precision),
        'e' | 'E' | 'f' | 'F' => (verb, Some(spec.precision.unwrap_or(6))),
        _ => (verb, spec.precision),
    };
    let text = number::format(f, verb, precision);
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => ("-", rest),
        Some(rest) if spec.plus || !spec.space => ("+", rest),
        Some(rest) => (" ", rest),
        None if spec.plus => ("+", text.as_str()),
        None if spec.space => (" ", text.as_str()),
        None => ("", text.as_str()),
    };
    if spec.zero && !spec.minus && f.is_finite() {
        let width = spec.width.unwrap_or_default().saturating_sub(sign.len());
        out.push_str(sign);
        return pad(
            out,
            digits,
            Spec {
                width: Some(width),
                ..spec
            },
        );
    }
    pad(out, &format!("{sign}{digits}"), Spec { zero: false, ..spec });
}

fn string(out: &mut String, text: &str, verb: char, spec: Spec) {
    let cut = |text: &str| match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    };
    match verb {
        'x' | 'X' => {
            let bytes = text.as_bytes();
            let bytes = &bytes[..spec.precision.unwrap_or(bytes.len()).min(bytes.len())];
            let prefix = if verb == 'x' { "0x" } else { "0X" };
            let mut hex = String::new();
            for (at, byte) in bytes.iter().enumerate() {
                if spec.space && at > 0 {
                    hex.push(' ');
                }
                if spec.sharp && (at == 0 || spec.space) {
                    hex.push_str(prefix);
                }
                let _ = if verb == 'x' {
                    write!(hex, "{byte:02x}")
                } else {
                    write!(hex, "{byte:02X}")
                };
            }
            pad(out, &hex, spec);
        }
        'q' if spec.sharp && !text.contains('`') && text.chars().all(|c| c == '\t' || !c.is_control()) => {
            pad(out, &format!("`{}`", cut(text)), spec);
        }
        'q' if spec.plus => pad(out, &quote::quoted_ascii(&cut(text)), spec),
        'q' => pad(out, &quote::quoted(&cut(text)), spec),
        'v' if spec.sharp => pad(out, &quote::quoted(&cut(text)), Spec { zero: false, ..spec }),
        _ => pad(out, &cut(text), spec),
    }
}
