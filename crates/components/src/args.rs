//! Arguments of controllers: flags are found, set and removed in whatever form they are written (`--a=b`, `--a b`, `-a`,
//! repeated), and written back as `--a=b`.
//!
//! What a flag means is not known here; whether the next argument is a flag's value is decided by its form.

#[cfg(test)]
mod tests;

use serde_json::Value;

/// Everything behind this argument is not a flag.
const END: &str = "--";

/// The arguments of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    list: Vec<String>,
}

/// Where a flag was found.
struct Place {
    at: usize,
    /// How many arguments it takes: two for `--a b`.
    takes: usize,
    /// `-` or `--`.
    dashes: &'static str,
    value: Option<String>,
}

/// The result of [`Arguments::set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// The flag was not there.
    Absent,
    /// It was there with another value, in another form, or more than once.
    Different,
    /// It was there just so.
    Same,
}

/// The name of a flag that a person wrote with or without dashes: `--sync-period` is `sync-period`.
///
/// `None` if it cannot be one: it is empty, or has a value or a space in it.
pub fn flag_name(key: &str) -> Option<&str> {
    let name = key.trim().trim_start_matches('-');
    let bad = |c: char| c == '=' || c.is_whitespace() || c.is_control();
    (!name.is_empty() && !name.contains(bad)).then_some(name)
}

impl Arguments {
    /// The `args` of a container. An argument that is not text is an error: its place in the list.
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

    /// Puts them back into the container; a list that is empty is left away.
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

    /// One by one, as they are written.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// The value of a flag: the last one counts, and a flag without a value is `true`.
    pub fn get(&self, name: &str) -> Option<String> {
        let last = self.places(name, false).pop()?;
        Some(last.value.unwrap_or_else(|| "true".to_owned()))
    }

    /// All values of a flag, in their order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let places = self.places(name, false).into_iter();
        places
            .map(|place| place.value.unwrap_or_else(|| "true".to_owned()))
            .collect()
    }

    /// Whether the flag is there.
    pub fn has(&self, name: &str) -> bool {
        !self.places(name, false).is_empty()
    }

    /// Gives a flag this value and no other: at the place where it first was, or at the end.
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

    /// Takes a flag away, wherever it is. Whether it was there.
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

    /// Where a flag is. A switch takes the next argument only if that is `true` or `false`.
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

/// Whether an argument is this flag, with how many dashes, and with which value.
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
    // A letter with a number behind it: -v5.
    let short = dashes == "-" && name.chars().count() == 1 && rest.bytes().all(|b| b.is_ascii_digit());
    short.then_some((dashes, Some(rest)))
}

/// Whether an argument behind a flag looks like its value.
fn is_value(next: &str, switch: bool) -> bool {
    if switch {
        return matches!(next, "true" | "false");
    }
    match next.strip_prefix('-') {
        None => true,
        // A negative number, or a lone dash, which stands for standard input.
        Some(rest) => rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()),
    }
}
