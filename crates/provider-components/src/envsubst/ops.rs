//! The operation on the value of a variable.

use std::borrow::Cow;

use super::MAX_VALUE;

/// The limit of steps to match a pattern: about as many as the longest value with a pattern of a few characters.
const MAX_STEPS: usize = 8 * MAX_VALUE;

/// The operation on the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// The value, or the arguments if it is empty.
    Default,
    Length,
    LowerFirst,
    Lower,
    UpperFirst,
    Upper,
    Substring,
    TrimStart {
        longest: bool,
    },
    TrimEnd {
        longest: bool,
    },
    ReplaceFirst,
    ReplaceAll,
    ReplaceStart,
    ReplaceEnd,
}

/// The result, or `None` if it would be longer than `limit` or take too long to compute.
pub(super) fn apply<'v>(op: Op, value: &'v str, args: &[Cow<'v, str>], limit: usize) -> Option<Cow<'v, str>> {
    let arg = |index: usize| args.get(index).map(|arg| &**arg);
    let result = match op {
        Op::Default if !value.is_empty() => Cow::Borrowed(value),
        Op::Default => joined(args, limit)?,
        Op::Length => Cow::Owned(value.len().to_string()),
        Op::Lower => value.chars().map(lower).collect(),
        Op::Upper => value.chars().map(upper).collect(),
        Op::LowerFirst => first(value, lower),
        Op::UpperFirst => first(value, upper),
        Op::Substring => Cow::Borrowed(substring(value, arg(0)?, arg(1))),
        Op::TrimStart { longest } => {
            let characters: Vec<char> = value.chars().collect();
            let length = fitting(&characters, arg(0)?.chars(), longest)?;
            let bytes: usize = characters[..length].iter().map(|c| c.len_utf8()).sum();
            Cow::Borrowed(&value[bytes..])
        }
        Op::TrimEnd { longest } => {
            let characters: Vec<char> = value.chars().rev().collect();
            let length = fitting(&characters, arg(0)?.chars().rev(), longest)?;
            let bytes: usize = characters[..length].iter().map(|c| c.len_utf8()).sum();
            Cow::Borrowed(&value[..value.len() - bytes])
        }
        Op::ReplaceFirst => replace(value, arg(0)?, arg(1).unwrap_or_default(), 1, limit)?,
        Op::ReplaceAll => replace(value, arg(0)?, arg(1).unwrap_or_default(), usize::MAX, limit)?,
        Op::ReplaceStart => match (arg(1), value.strip_prefix(arg(0)?)) {
            (Some(other), Some(rest)) => Cow::Owned([other, rest].concat()),
            _ => Cow::Borrowed(value),
        },
        Op::ReplaceEnd => match (arg(1), value.strip_suffix(arg(0)?)) {
            (Some(other), Some(rest)) => Cow::Owned([rest, other].concat()),
            _ => Cow::Borrowed(value),
        },
    };
    Some(result)
}

fn joined<'v>(args: &[Cow<'v, str>], limit: usize) -> Option<Cow<'v, str>> {
    match args {
        [] => Some(Cow::Borrowed("")),
        [only] => Some(only.clone()),
        _ if args.iter().map(|arg| arg.len()).sum::<usize>() > limit => None,
        _ => Some(Cow::Owned(args.concat())),
    }
}

/// The lower case of a character, if it is a single character.
fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(c)
}

/// The upper case of a character, if it is a single character.
fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(c)
}

fn first(value: &str, change: fn(char) -> char) -> Cow<'_, str> {
    let mut chars = value.chars();
    match chars.next() {
        None => Cow::Borrowed(value),
        Some(c) => std::iter::once(change(c)).chain(chars).collect(),
    }
}

/// A part of the value by bytes; the whole value if a number cannot be parsed.
fn substring<'v>(value: &'v str, from: &str, length: Option<&str>) -> &'v str {
    let Ok(from) = from.parse::<i64>() else {
        return value;
    };
    let all = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let start = if from < 0 {
        all.saturating_add(from).max(0)
    } else {
        from.min(all)
    };
    let end = match length.map(str::parse::<i64>) {
        None => all,
        Some(Err(_)) => return value,
        Some(Ok(length)) if length < 0 => all.saturating_add(length),
        Some(Ok(length)) => start.saturating_add(length).min(all),
    };
    let boundary = |at: i64| value.floor_char_boundary(usize::try_from(at).unwrap_or(0));
    value.get(boundary(start)..boundary(end)).unwrap_or_default()
}

/// Up to `most` occurrences of a text replaced. An empty text occurs before every character and at the end.
fn replace<'v>(value: &'v str, from: &str, to: &str, most: usize, limit: usize) -> Option<Cow<'v, str>> {
    let count = value.matches(from).take(most).count();
    if count == 0 {
        return Some(Cow::Borrowed(value));
    }
    let length = (value.len() - count * from.len()).checked_add(count.checked_mul(to.len())?)?;
    (length <= limit).then(|| Cow::Owned(value.replacen(from, to, most)))
}

/// A piece of a pattern.
enum Piece {
    /// `*`
    Star,
    /// `?`
    Any,
    /// The character itself.
    One(char),
    /// `[a-z]`, or with a caret the complement.
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Piece {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::One(one) => *one == c,
            Self::Set { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

/// Parses a pattern; `None` if it is malformed, because it then matches nothing.
fn pattern(mut chars: impl Iterator<Item = char>) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '*' if matches!(pieces.last(), Some(Piece::Star)) => continue,
            '*' => Piece::Star,
            '?' => Piece::Any,
            '\\' => Piece::One(chars.next()?),
            '[' => set(&mut chars)?,
            c => Piece::One(c),
        });
    }
    Some(pieces)
}

/// The rest of a set, after its bracket.
fn set(chars: &mut impl Iterator<Item = char>) -> Option<Piece> {
    let one = |c: Option<char>, chars: &mut dyn Iterator<Item = char>| match c? {
        '-' | ']' => None,
        '\\' => chars.next(),
        c => Some(c),
    };
    let mut ranges = Vec::new();
    let mut next = chars.next();
    let negated = next == Some('^');
    if negated {
        next = chars.next();
    }
    loop {
        if next == Some(']') && !ranges.is_empty() {
            return Some(Piece::Set { negated, ranges });
        }
        let low = one(next, chars)?;
        next = chars.next();
        let high = if next == Some('-') {
            let first = chars.next();
            let high = one(first, chars)?;
            next = chars.next();
            high
        } else {
            low
        };
        ranges.push((low, high));
    }
}

/// The length of the shortest or longest prefix that matches a pattern, at least one character; 0 without a match.
/// `None` if the search takes too long.
fn fitting(value: &[char], chars: impl Iterator<Item = char>, longest: bool) -> Option<usize> {
    let Some(pieces) = pattern(chars) else {
        return Some(0);
    };
    if value.len().checked_mul(pieces.len() + 1)? > MAX_STEPS {
        return None;
    }
    // All positions in the pattern that are reachable, one character after the other.
    let mut places = vec![false; pieces.len() + 1];
    places[0] = true;
    pass_stars(&pieces, &mut places);
    let mut found = 0;
    for (index, c) in value.iter().enumerate() {
        // The former end is reset; only new matches count.
        places[pieces.len()] = false;
        for place in (0..pieces.len()).rev() {
            let here = std::mem::take(&mut places[place]) && pieces[place].fits(*c);
            match pieces[place] {
                Piece::Star => places[place] = here,
                _ => places[place + 1] |= here,
            }
        }
        pass_stars(&pieces, &mut places);
        if places[pieces.len()] {
            found = index + 1;
            if !longest {
                break;
            }
        }
        if !places.iter().any(|place| *place) {
            break;
        }
    }
    Some(found)
}

/// Adds positions after stars, which also match the empty text.
fn pass_stars(pieces: &[Piece], places: &mut [bool]) {
    for (place, piece) in pieces.iter().enumerate() {
        if matches!(piece, Piece::Star) && places[place] {
            places[place + 1] = true;
        }
    }
}
