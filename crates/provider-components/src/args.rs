//! Arguments of controllers: flags are found, set and removed in any form (`--a=b`, `--a b`, `-a`, repeated), and written back as
//! `--a=b`.
//!
//! The meaning of a flag is unknown here; its form decides whether the next argument is its value.

#[cfg(test)]
mod tests;

use serde_json::Value;

/// Arguments after this one are not flags.
const END: &str = "--";

/// The arguments of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    list: Vec<String>,
}

/// The position of a flag.
struct Place {
    at: usize,
    /// The number of its arguments: two for `--a b`.
    takes: usize,
    /// `-` or `--`.
    dashes: &'static str,
    value: Option<String>,
}

/// The result of [`Arguments::set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// The flag was absent.
    Absent,
    /// It had another value or form, or occurred more than once.
    Different,
    /// It had exactly this value and form.
    Same,
}

/// The name of a flag that a user wrote with or without dashes: `--sync-period` is `sync-period`.
///
/// `None` if it is not a valid name: empty, or with a value or a space.
pub fn flag_name(key: &str) -> Option<&str> {
    let name = key.trim().trim_start_matches('-');
    let bad = |c: char| c == '=' || c.is_whitespace() || c.is_control();
    (!name.is_empty() && !name.contains(bad)).then_some(name)
}

impl Arguments {
    /// The `args` of a container. The error is the index of an argument that is not text.
    pub fn of(container: &Value) -> Result<Self, usize> {
        let items = container.get("args").and_then(Value::as_array);
        let list = items
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(at, item)| item.as_str().map(str::to_owned).ok_or(at))
            .collect::<Result<_, _>>()?;
        Ok(Self { list })
    }

    /// Writes them back into the container; an empty list is omitted.
    pub fn write(self, container: &mut Value) {
        let Some(container) = container.as_object_mut() else {
            return;
        };
        if self.list.is_empty() {
            container.remove("args");
        } else {
            container.insert("args".to_owned(), self.list.into());
        }
    }

    /// The arguments as written.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// The value of a flag: the last one wins, and a flag without a value is `true`.
    pub fn get(&self, name: &str) -> Option<String> {
        let last = self.places(name, false).pop()?;
        Some(last.value.unwrap_or_else(|| "true".to_owned()))
    }

    /// All values of a flag, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let places = self.places(name, false).into_iter();
        places
            .map(|place| place.value.unwrap_or_else(|| "true".to_owned()))
            .collect()
    }

    /// Whether the flag is present.
    pub fn has(&self, name: &str) -> bool {
        !self.places(name, false).is_empty()
    }

    /// Sets a flag to this single value: at its first position, or at the end.
    pub fn set(&mut self, name: &str, value: &str) -> Was {
        let mut places = self.places(name, matches!(value, "true" | "false"));
        if places.is_empty() {
            let end = self.list.iter().position(|arg| arg == END).unwrap_or(self.list.len());
            self.list.insert(end, format!("--{name}={value}"));
            return Was::Absent;
        }
        let first = places.remove(0);
        let text = format!("{}{name}={value}", first.dashes);
        let was = if places.is_empty() && first.takes == 1 && self.list[first.at] == text {
            Was::Same
        } else {
            Was::Different
        };
        self.cut(&places);
        self.list.splice(first.at..first.at + first.takes, [text]);
        was
    }

    /// Removes all occurrences of a flag. Returns whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        let places = self.places(name, false);
        self.cut(&places);
        !places.is_empty()
    }

    fn cut(&mut self, places: &[Place]) {
        for place in places.iter().rev() {
            self.list.drain(place.at..place.at + place.takes);
        }
    }

    /// The positions of a flag. A switch takes the next argument only if that is `true` or `false`.
    fn places(&self, name: &str, switch: bool) -> Vec<Place> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(arg) = self.list.get(at).filter(|arg| *arg != END) {
            let found = read(arg, name).map(|(dashes, value)| {
                let next = self.list.get(at + 1).filter(|next| is_value(next, switch));
                match (value, next) {
                    (None, Some(next)) => (dashes, 2, Some(next.clone())),
                    (value, _) => (dashes, 1, value.map(str::to_owned)),
                }
            });
            match found {
                Some((dashes, takes, value)) => {
                    out.push(Place {
                        at,
                        takes,
                        dashes,
                        value,
                    });
                    at += takes;
                }
                None => at += 1,
            }
        }
        out
    }
}

/// The dashes and the value of an argument, if it is this flag.
fn read<'a>(arg: &'a str, name: &str) -> Option<(&'static str, Option<&'a str>)> {
    let (dashes, body) = match arg.strip_prefix("--") {
        Some(body) => ("--", body),
        None => ("-", arg.strip_prefix('-')?),
    };
    let rest = body.strip_prefix(name)?;
    if rest.is_empty() {
        return Some((dashes, None));
    }
    if let Some(value) = rest.strip_prefix('=') {
        return Some((dashes, Some(value)));
    }
    // A letter followed by a number: -v5.
    let short = dashes == "-" && name.chars().count() == 1 && rest.bytes().all(|b| b.is_ascii_digit());
    short.then_some((dashes, Some(rest)))
}

/// Whether the argument after a flag looks like its value.
fn is_value(next: &str, switch: bool) -> bool {
    if switch {
        return matches!(next, "true" | "false");
    }
    match next.strip_prefix('-') {
        None => true,
        // A negative number, or a single dash, which means standard input.
        Some(rest) => rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()),
    }
}
