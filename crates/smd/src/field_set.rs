//! Sets of field paths, and their `FieldsV1` form.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde_json::{Map, Value};
use windlass_meta::budget::PATH_BYTES;

use crate::error::ApplyError;

/// One step of a field path, kept in its `FieldsV1` form: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elem(Box<str>);

impl Elem {
    /// A field of a struct or key of a map.
    pub fn field(name: &str) -> Self {
        Self(format!("f:{name}").into_boxed_str())
    }

    /// An item of a list map, by its key fields.
    pub fn key(keys: &Map<String, Value>) -> Self {
        Self::keys(keys.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// [`Self::key`] with names in order.
    pub(crate) fn keys<'v>(keys: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Self {
        let mut text = String::from("k:{");
        for (i, (name, value)) in keys.into_iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            push_text(&mut text, name);
            text.push(':');
            match value {
                Value::String(value) => push_text(&mut text, value),
                value => text.push_str(&canonical(value)),
            }
        }
        text.push('}');
        Self(text.into_boxed_str())
    }

    /// An item of a set.
    pub fn value(value: &Value) -> Self {
        let mut text = String::from("v:");
        match value {
            Value::String(value) => push_text(&mut text, value),
            value => text.push_str(&canonical(value)),
        }
        Self(text.into_boxed_str())
    }

    /// An item of a list by its index.
    pub fn index(index: i64) -> Self {
        Self(format!("i:{index}").into_boxed_str())
    }

    /// The field name, if this is a field.
    pub fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// Whether this is an item of a list map.
    pub fn is_key(&self) -> bool {
        self.0.starts_with("k:")
    }

    /// The `FieldsV1` form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses an element; `None` for an unknown type of element, which another version may have written.
    fn parse(text: &str) -> Result<Option<Self>, ApplyError> {
        let bad = || ApplyError::BadFields(format!("missing colon: {text}"));
        let broken = || ApplyError::BadFields(format!("path element {text:?} cannot be read"));
        let (sort, rest) = text.split_once(':').ok_or_else(bad)?;
        if sort.len() != 1 {
            return Err(bad());
        }
        let elem = match sort {
            "f" => Self(text.into()),
            "k" => match serde_json::from_str::<Value>(rest) {
                Ok(Value::Object(keys)) => Self::key(&keys),
                _ => return Err(broken()),
            },
            "v" => Self::value(&serde_json::from_str::<Value>(rest).map_err(|_| broken())?),
            "i" => Self::index(rest.parse().map_err(|_| broken())?),
            _ => return Ok(None),
        };
        Ok(Some(elem))
    }
}

/// As in conflict messages: `.name`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, rest) = self.0.split_at(2);
        match kind {
            "f:" => write!(f, ".{rest}"),
            "v:" => {
                let value: Value = serde_json::from_str(rest).unwrap_or_default();
                write!(f, "[={value}]")
            }
            "k:" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                f.write_str("[")?;
                for (i, (name, value)) in keys.iter().enumerate() {
                    write!(f, "{}{name}={value}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            _ => write!(f, "[{rest}]"),
        }
    }
}

/// JSON with whole floats written as integers, so that equal numbers are one element.
fn canonical(value: &Value) -> String {
    if let Value::Number(number) = value
        && number.is_f64()
        && let Some(float) = number.as_f64()
        && float.fract() == 0.0
        && float.abs() < 9e15
    {
        return format!("{float:.0}");
    }
    escaped(value.to_string())
}

/// Writes a text as JSON, without allocation if it needs no escapes.
fn push_text(out: &mut String, text: &str) {
    let plain = |b: u8| (b' '..0x7f).contains(&b) && !matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&escaped(Value::from(text).to_string()));
    }
}

/// JSON in Go's form, with characters escaped that have a meaning in HTML. So sets read from and written by a real API server are
/// equal as text.
pub(crate) fn escaped(json: String) -> String {
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a path that is too long to be shown.
fn beginning(path: &str) -> String {
    if path.len() <= PATH_BYTES {
        return path.to_owned();
    }
    let end = (0..=PATH_BYTES).rev().find(|at| path.is_char_boundary(*at));
    format!("{}...", &path[..end.unwrap_or(0)])
}

/// The members of a set below a path element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl Node {
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(crate) nodes: BTreeMap<Elem, Node>,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of paths of field names.
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.iter().map(|name| Elem::field(name)));
        }
        set
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.nodes
            .values()
            .map(|node| usize::from(node.member) + node.below.len())
            .sum()
    }

    /// Adds a path; an empty path is ignored.
    pub fn insert(&mut self, path: impl IntoIterator<Item = Elem>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(elem) = path.next() {
            let node = set.nodes.entry(elem).or_default();
            if path.peek().is_none() {
                node.member = true;
                return;
            }
            set = &mut node.below;
        }
    }

    /// Whether a path is in the set.
    pub fn contains(&self, path: &[Elem]) -> bool {
        let mut set = self;
        for (i, elem) in path.iter().enumerate() {
            let Some(node) = set.nodes.get(elem) else {
                return false;
            };
            if i + 1 == path.len() {
                return node.member;
            }
            set = &node.below;
        }
        false
    }

    /// Whether a path of field names, or anything below it, is in the set.
    pub fn owns(&self, path: &[&str]) -> bool {
        let mut set = self;
        for (i, name) in path.iter().enumerate() {
            let Some(node) = set.nodes.get(&Elem::field(name)) else {
                return false;
            };
            if i + 1 == path.len() {
                return true;
            }
            set = &node.below;
        }
        false
    }

    /// Adds all paths of another set.
    pub fn extend(&mut self, other: &Self) {
        for (elem, theirs) in &other.nodes {
            match self.nodes.get_mut(elem) {
                Some(ours) => {
                    ours.member |= theirs.member;
                    ours.below.extend(&theirs.below);
                }
                None => {
                    self.nodes.insert(elem.clone(), theirs.clone());
                }
            }
        }
    }

    /// Moves all paths of another set into this one.
    pub(crate) fn append(&mut self, other: Self) {
        for (elem, theirs) in other.nodes {
            match self.nodes.entry(elem) {
                Entry::Occupied(mut ours) => {
                    let ours = ours.get_mut();
                    ours.member |= theirs.member;
                    ours.below.append(theirs.below);
                }
                Entry::Vacant(place) => {
                    place.insert(theirs);
                }
            }
        }
    }

    /// Removes exactly the paths of another set; paths below them stay.
    pub fn remove(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain(|elem, ours| {
            if let Some(theirs) = other.nodes.get(elem) {
                ours.member &= !theirs.member;
                ours.below.remove(&theirs.below);
            }
            !ours.is_empty()
        });
    }

    /// Removes the paths of another set and everything below them.
    pub fn remove_trees(&mut self, other: &Self) {
        self.nodes.retain(|elem, ours| match other.nodes.get(elem) {
            Some(theirs) if theirs.member => false,
            Some(theirs) => {
                ours.below.remove_trees(&theirs.below);
                !ours.is_empty()
            }
            None => true,
        });
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (small, large) = if self.nodes.len() <= other.nodes.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut out = Self::new();
        for (elem, a) in &small.nodes {
            if let Some(b) = large.nodes.get(elem) {
                let node = Node {
                    member: a.member && b.member,
                    below: a.below.intersection(&b.below),
                };
                if !node.is_empty() {
                    out.nodes.insert(elem.clone(), node);
                }
            }
        }
        out
    }

    /// Whether every path is also in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.nodes.iter().all(|(elem, ours)| {
            other
                .nodes
                .get(elem)
                .is_some_and(|theirs| (!ours.member || theirs.member) && ours.below.is_subset(&theirs.below))
        })
    }

    /// A set for each path, with deeper paths first.
    pub(crate) fn singles(&self) -> Vec<Self> {
        let mut out = Vec::new();
        for (elem, node) in &self.nodes {
            let under = |below: Self, member: bool| Self {
                nodes: BTreeMap::from([(elem.clone(), Node { member, below })]),
            };
            out.extend(node.below.singles().into_iter().map(|below| under(below, false)));
            if node.member {
                out.push(under(Self::new(), true));
            }
        }
        out
    }

    /// The first paths as text (`.spec.replicas`), members before the paths below them. Of a long path, only the beginning is there.
    pub fn paths(&self, most: usize) -> Vec<String> {
        let mut out = Vec::new();
        self.collect(&mut String::new(), most, &mut out);
        out
    }

    fn collect(&self, prefix: &mut String, most: usize, out: &mut Vec<String>) {
        // Members of a level come before the paths below them, as in Kubernetes' messages.
        let length = prefix.len();
        let with = |prefix: &mut String, elem: &Elem| {
            if prefix.len() <= PATH_BYTES {
                prefix.push_str(&elem.to_string());
            }
        };
        for (elem, node) in self.sorted() {
            if out.len() >= most {
                return;
            }
            if node.member {
                with(prefix, elem);
                out.push(beginning(prefix));
                prefix.truncate(length);
            }
        }
        for (elem, node) in self.sorted() {
            if out.len() < most && !node.below.is_empty() {
                with(prefix, elem);
                node.below.collect(prefix, most, out);
                prefix.truncate(length);
            }
        }
    }

    /// Fields first, then keys, values and indexes.
    fn sorted(&self) -> impl Iterator<Item = (&Elem, &Node)> {
        let rank = |elem: &Elem| match elem.as_str().as_bytes().first() {
            Some(b'f') => 0,
            Some(b'k') => 1,
            Some(b'v') => 2,
            _ => 3,
        };
        let mut list: Vec<_> = self.nodes.iter().collect();
        list.sort_by_key(|(elem, _)| rank(elem));
        list.into_iter()
    }

    /// The `FieldsV1` form.
    pub fn to_value(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        let mut out = Map::new();
        for (elem, node) in &self.nodes {
            let mut below = node.below.to_map();
            if node.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(elem.as_str().to_owned(), Value::Object(below));
        }
        out
    }

    /// Parses the `FieldsV1` form.
    pub fn from_value(value: &Value) -> Result<Self, ApplyError> {
        match value {
            Value::Object(map) => Self::from_map(map),
            Value::Null => Ok(Self::new()),
            _ => Err(ApplyError::BadFields("fieldsV1 must be an object".to_owned())),
        }
    }

    fn from_map(map: &Map<String, Value>) -> Result<Self, ApplyError> {
        let mut set = Self::new();
        for (name, value) in map {
            if name == "." {
                continue;
            }
            let Some(elem) = Elem::parse(name)? else {
                continue;
            };
            let empty = Map::new();
            let below = match value {
                Value::Object(below) => below,
                Value::Null => &empty,
                _ => return Err(ApplyError::BadFields(format!("expected an object at {name:?}"))),
            };
            let member = below.contains_key(".");
            let below = Self::from_map(below)?;
            let node = Node {
                member: member || below.is_empty(),
                below,
            };
            set.nodes.insert(elem, node);
        }
        Ok(set)
    }
}
