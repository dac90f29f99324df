//! Field paths on the stack: nothing is allocated until an error is reported.

use std::fmt;

use windlass_meta::budget::PATH_BYTES;

/// A path as a linked list of borrowed parts.
#[derive(Debug, Clone, Copy)]
pub enum Path<'a> {
    /// The whole value, under a name (empty for an API object).
    Root(&'a str),
    /// A property.
    Field(&'a Self, &'a str),
    /// A key of a map.
    Key(&'a Self, &'a str),
    /// An item of a list.
    Index(&'a Self, usize),
}

impl Path<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Root(""))
    }

    /// The root of the path. Kubernetes reports what has no field of its own at `<nil>`.
    pub fn or_nil(&self) -> &str {
        match self {
            Self::Root("") => "<nil>",
            Self::Root(name) => name,
            Self::Field(parent, _) | Self::Key(parent, _) | Self::Index(parent, _) => parent.or_nil(),
        }
    }
}

impl Path<'_> {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Root(name) => out.write_str(name),
            Self::Field(parent, name) if parent.is_empty() => out.write_str(name),
            Self::Field(parent, name) => {
                parent.write(out)?;
                write!(out, ".{name}")
            }
            Self::Key(parent, name) => {
                parent.write(out)?;
                write!(out, "[{name}]")
            }
            Self::Index(parent, index) => {
                parent.write(out)?;
                write!(out, "[{index}]")
            }
        }
    }
}

/// Shows the beginning: the sender of an object chooses the names in a path, and how many errors have the same.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut beginning = Beginning {
            of: f,
            left: PATH_BYTES,
        };
        match self.write(&mut beginning) {
            Err(_) if beginning.left == 0 => f.write_str("..."),
            done => done,
        }
    }
}

/// Passes on the beginning of a text; the rest is an error.
struct Beginning<'a, 'f> {
    of: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl fmt::Write for Beginning<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() <= self.left {
            self.left -= text.len();
            return self.of.write_str(text);
        }
        let end = (0..=self.left).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.left = 0;
        self.of.write_str(&text[..end])?;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_where_it_is_too_long() {
        let root = Path::Root("spec");
        let shown = |length: usize| {
            let name = "k".repeat(length - "spec.".len());
            Path::Field(&root, &name).to_string()
        };
        assert_eq!(shown(PATH_BYTES).len(), PATH_BYTES);
        let cut = shown(PATH_BYTES + 1);
        assert!(cut.len() == PATH_BYTES + 3 && cut.ends_with("k..."), "{cut}");
    }
}
