//! Values during rendering, and the heap of lists and maps.
//!
//! Functions such as `set` change a map that other values refer to, so a map may contain itself. Lists and maps therefore are in
//! a heap that is freed as a whole. Code that walks them limits its depth and charges a cost for each step.

use std::collections::BTreeMap;
use std::rc::Rc;

use semver::Version;
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::knowledge::{Form, Knowledge};
use crate::sprig::cast;
use crate::uses::Uses;

/// The error of a function or a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error text.
    Failed(String),
    /// A missing value was to be written: its path, if known.
    Missing(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

pub(crate) type Out<T = Value> = Result<T, Fault>;

/// The size limit of a text.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// The depth limit of walks through nested values.
pub(crate) const DEEPEST: usize = 100;

/// A value of a template. It has a Go type, because functions check types.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A missing value: the key does not exist.
    Missing(Option<Rc<Gap>>),
    /// JSON's null, where any type is possible.
    Nil,
    Bool(bool),
    /// Go's `int`: number literals, lengths.
    Int(i64),
    /// Go's `int64`: integers of Kubernetes objects, and results of arithmetic.
    Int64(i64),
    Float(f64),
    Text(Rc<str>),
    List(List),
    Map(Map),
    Version(Rc<VersionText>),
}

/// A version, the result of `semver`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VersionText {
    pub(crate) version: Version,
    /// The original text.
    pub(crate) original: String,
}

/// The path of missing data.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) path: String,
    /// The form of the data, if known.
    pub(crate) form: Option<Form>,
}

/// A list in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(usize);

/// A map in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Map(usize);

pub(crate) type Entries = BTreeMap<Rc<str>, Value>;

/// The entries of a map in the heap.
#[derive(Debug, Default)]
pub(crate) struct MapData {
    pub(crate) entries: Entries,
    /// Its path in the data, and its form.
    pub(crate) origin: Option<Rc<Gap>>,
    /// Whether it is a Go map of texts, which dictionary functions refuse.
    pub(crate) only_texts: bool,
}

/// All lists and maps of a rendering, and its remaining budget.
#[derive(Debug)]
pub(crate) struct Heap {
    lists: Vec<Rc<[Value]>>,
    maps: Vec<MapData>,
    budget: Budget,
    /// Whether numbers of different types can be equal.
    lenient: bool,
}

impl Value {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Rc::from(text.as_ref()))
    }

    /// Go's name of the value's type.
    pub(crate) fn type_name(&self, heap: &Heap) -> &'static str {
        match self {
            Self::Missing(_) | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(map) if heap.map(*map).only_texts => "map[string]string",
            Self::Map(_) => "map[string]interface {}",
            Self::Version(_) => "*semver.Version",
        }
    }

    /// Go's name of the value's kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Version(_) => "ptr",
        }
    }

    /// The cost of a shallow traversal.
    pub(crate) fn size(&self, heap: &Heap) -> usize {
        match self {
            Self::Text(text) => text.len() / 4,
            Self::List(list) => heap.list(*list).len() * 4,
            Self::Map(map) => heap.map(*map).entries.len() * 16,
            _ => 0,
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Nil)
    }

    /// Whether a value is true in `if`: neither nil nor zero nor empty. Sprig's `empty` is the opposite.
    pub(crate) fn is_true(&self, heap: &Heap) -> bool {
        match self {
            Self::Missing(_) | Self::Nil => false,
            Self::Bool(b) => *b,
            Self::Int(n) | Self::Int64(n) => *n != 0,
            Self::Float(f) => *f != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !heap.list(*list).is_empty(),
            Self::Map(map) => !heap.map(*map).entries.is_empty(),
            Self::Version(_) => true,
        }
    }
}

impl Heap {
    pub(crate) fn new(lenient: bool, budget: Budget) -> Self {
        Self {
            lists: Vec::new(),
            maps: Vec::new(),
            budget,
            lenient,
        }
    }

    /// Charges a cost.
    pub(crate) fn spend(&mut self, work: usize) -> Out<()> {
        if self.budget.spend(work) {
            return Ok(());
        }
        Err("the template does more than a template may: too many rounds, or too much text".into())
    }

    /// What is left of the budget.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    pub(crate) fn list(&self, list: List) -> Rc<[Value]> {
        self.lists.get(list.0).cloned().unwrap_or_else(|| Rc::from([]))
    }

    pub(crate) fn map(&self, map: Map) -> &MapData {
        &self.maps[map.0]
    }

    pub(crate) fn map_mut(&mut self, map: Map) -> &mut MapData {
        &mut self.maps[map.0]
    }

    /// A new list.
    pub(crate) fn new_list(&mut self, mut items: Vec<Value>) -> Out {
        self.spend(64 + items.len() * 48)?;
        for item in &mut items {
            if matches!(item, Value::Missing(_)) {
                *item = Value::Nil;
            }
        }
        self.lists.push(Rc::from(items));
        Ok(Value::List(List(self.lists.len() - 1)))
    }

    /// A new list of texts.
    pub(crate) fn new_texts<S: AsRef<str>>(&mut self, items: impl IntoIterator<Item = S>) -> Out {
        let mut texts = Vec::new();
        for item in items {
            let item = self.new_text(item.as_ref())?;
            texts.push(item);
        }
        self.new_list(texts)
    }

    /// A new text, within the size limit.
    pub(crate) fn new_text(&mut self, text: impl AsRef<str>) -> Out {
        let text = text.as_ref();
        if text.len() > MAX_TEXT {
            return Err(too_long());
        }
        self.spend(32 + text.len())?;
        Ok(Value::text(text))
    }

    /// A new map.
    pub(crate) fn new_map(&mut self, entries: Entries) -> Out {
        self.keep(MapData {
            entries,
            ..MapData::default()
        })
        .map(Value::Map)
    }

    /// A new map of Go's type `map[string]string`.
    pub(crate) fn new_text_map(&mut self, entries: Entries) -> Out {
        self.keep(MapData {
            entries,
            only_texts: true,
            ..MapData::default()
        })
        .map(Value::Map)
    }

    /// The data as a whole, with its form.
    pub(crate) fn new_root(&mut self, entries: Entries, form: Form) -> Out {
        let origin = Some(Rc::new(Gap {
            path: String::new(),
            form: Some(form),
        }));
        self.keep(MapData {
            entries,
            origin,
            only_texts: false,
        })
        .map(Value::Map)
    }

    fn keep(&mut self, data: MapData) -> Out<Map> {
        self.spend(128 + data.entries.len() * 96)?;
        self.maps.push(data);
        Ok(Map(self.maps.len() - 1))
    }

    /// Converts JSON: integers are `int64`, as in Go's unstructured objects.
    pub(crate) fn load(&mut self, json: &Json, numbers: Numbers) -> Out {
        self.load_known(json, numbers, None, DEEPEST)
    }

    /// Converts the fields of an object that a template can read. The others cost nothing.
    pub(crate) fn load_used(&mut self, fields: &serde_json::Map<String, Json>, uses: &Uses) -> Out {
        let mut entries = Entries::new();
        for (key, value) in fields.iter().filter(|(key, _)| uses.has(key)) {
            let value = self.load_known(value, Numbers::Unstructured, None, DEEPEST - 1)?;
            entries.insert(Rc::from(key.as_str()), value);
        }
        let map = MapData {
            entries,
            origin: None,
            only_texts: false,
        };
        self.keep(map).map(Value::Map)
    }

    /// Converts JSON with a known form; `path` is its path.
    pub(crate) fn load_form(&mut self, json: &Json, path: &str, form: Form, knowledge: &dyn Knowledge) -> Out {
        self.load_known(json, Numbers::Unstructured, Some((path, form, knowledge)), DEEPEST)
    }

    fn load_known(
        &mut self,
        json: &Json,
        numbers: Numbers,
        known: Option<(&str, Form, &dyn Knowledge)>,
        deepest: usize,
    ) -> Out {
        let Some(deeper) = deepest.checked_sub(1) else {
            return Err(too_deep());
        };
        match json {
            Json::Null => Ok(Value::Nil),
            Json::Bool(b) => Ok(Value::Bool(*b)),
            Json::Number(n) => Ok(match n.as_i64() {
                Some(whole) if numbers == Numbers::Unstructured => Value::Int64(whole),
                _ => Value::Float(n.as_f64().unwrap_or_default()),
            }),
            Json::String(text) => self.new_text(text),
            Json::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    let path = known.map(|(path, ..)| format!("{path}[{at}]"));
                    let below = known.map(|(_, form, k)| (path.as_deref().unwrap_or_default(), k.element(form), k));
                    out.push(self.load_known(item, numbers, below, deeper)?);
                }
                self.new_list(out)
            }
            Json::Object(fields) => {
                let mut entries = Entries::new();
                for (key, value) in fields {
                    let path = known.map(|(path, ..)| format!("{path}.{key}"));
                    let below = known.map(|(_, form, k)| (path.as_deref().unwrap_or_default(), k.child(form, key), k));
                    entries.insert(Rc::from(key.as_str()), self.load_known(value, numbers, below, deeper)?);
                }
                let origin = known.map(|(path, form, _)| {
                    Rc::new(Gap {
                        path: path.to_owned(),
                        form: Some(form),
                    })
                });
                self.keep(MapData {
                    entries,
                    origin,
                    only_texts: false,
                })
                .map(Value::Map)
            }
        }
    }

    /// Converts a value to JSON; a value without a counterpart is null.
    pub(crate) fn json(&mut self, value: &Value) -> Out<Json> {
        self.json_deep(value, DEEPEST)
    }

    fn json_deep(&mut self, value: &Value, deepest: usize) -> Out<Json> {
        self.spend(32)?;
        let deeper = deepest.checked_sub(1).ok_or_else(too_deep)?;
        Ok(match value {
            Value::Missing(_) | Value::Nil => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(n) | Value::Int64(n) => Json::from(*n),
            Value::Float(f) => serde_json::Number::from_f64(*f)
                .map(Json::Number)
                .ok_or_else(|| format!("{} has no counterpart in JSON", crate::number::print(*f)))?,
            Value::Text(text) => {
                self.spend(text.len())?;
                Json::String(text.to_string())
            }
            Value::Version(v) => Json::String(v.version.to_string()),
            Value::List(list) => {
                let mut out = Vec::new();
                for item in self.list(*list).iter() {
                    out.push(self.json_deep(item, deeper)?);
                }
                Json::Array(out)
            }
            Value::Map(map) => {
                let mut out = serde_json::Map::new();
                for (key, item) in self.map(*map).entries.clone() {
                    self.spend(key.len())?;
                    out.insert(key.to_string(), self.json_deep(&item, deeper)?);
                }
                Json::Object(out)
            }
        })
    }

    /// Go's deep equality: types count.
    pub(crate) fn same(&mut self, a: &Value, b: &Value) -> Out<bool> {
        self.same_deep(a, b, DEEPEST)
    }

    fn same_deep(&mut self, a: &Value, b: &Value, deepest: usize) -> Out<bool> {
        self.spend(16)?;
        let deeper = deepest.checked_sub(1).ok_or_else(too_deep)?;
        Ok(match (a, b) {
            (a, b) if a.is_nothing() && b.is_nothing() => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (a, b) if self.lenient && cast::number(a).is_some() => cast::number(a) == cast::number(b),
            (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
            #[expect(clippy::float_cmp, reason = "equality is what is asked")]
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Version(a), Value::Version(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                let (a, b) = (self.list(*a), self.list(*b));
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.same_deep(a, b, deeper)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(a), Value::Map(b)) => {
                let (a, b) = (self.map(*a), self.map(*b));
                if a.only_texts != b.only_texts || !a.entries.keys().eq(b.entries.keys()) {
                    return Ok(false);
                }
                let pairs: Vec<(Value, Value)> = a.entries.values().cloned().zip(b.entries.values().cloned()).collect();
                for (a, b) in pairs {
                    if !self.same_deep(&a, &b, deeper)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    /// A deep copy.
    pub(crate) fn copy(&mut self, value: &Value, deepest: usize) -> Out {
        let deeper = deepest.checked_sub(1).ok_or_else(too_deep)?;
        match value {
            Value::List(list) => {
                let mut out = Vec::new();
                for item in self.list(*list).iter() {
                    out.push(self.copy(item, deeper)?);
                }
                self.new_list(out)
            }
            Value::Map(map) => {
                let (entries, only_texts) = {
                    let data = self.map(*map);
                    (data.entries.clone(), data.only_texts)
                };
                let mut out = Entries::new();
                for (key, item) in entries {
                    let item = self.copy(&item, deeper)?;
                    out.insert(key, item);
                }
                self.keep(MapData {
                    entries: out,
                    origin: None,
                    only_texts,
                })
                .map(Value::Map)
            }
            other => Ok(other.clone()),
        }
    }
}

/// The types of JSON numbers in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// `int64` for integers, as in unstructured objects.
    Unstructured,
    /// `float64`, as in Go's JSON without a type.
    Floats,
}

pub(crate) fn too_deep() -> Fault {
    Fault::Failed(format!("a value is nested more than {DEEPEST} deep, or holds itself"))
}

pub(crate) fn too_long() -> Fault {
    Fault::Failed(format!("a text is longer than {MAX_TEXT} bytes"))
}
