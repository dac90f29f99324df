//! Estimates the largest cost of an expression from the sizes that the schema allows.

mod calls;
mod lists;

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr};

use self::calls::Arg;
use super::checker::Checked;
use super::declared::Declared;
use super::typing::Ty;

/// The least and the largest value of a size or cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    const NOTHING: Self = Self { min: 0, max: 0 };
    /// The identity of [`Self::union`].
    const NONE: Self = Self { min: u64::MAX, max: 0 };

    pub(super) const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Multiplied and rounded up.
    fn scaled(self, factor: f64) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate; beyond the range it saturates"
        )]
        let scale = |n: u64| (n as f64 * factor).ceil() as u64;
        Self {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// Sizes of keys and values of a list or map.
#[derive(Debug, Clone, Copy)]
struct Entry {
    is_list: bool,
    key: Range,
    value: Range,
}

#[derive(Debug, Clone)]
struct Local {
    path: Vec<String>,
    size: Option<Range>,
    entry: Option<Entry>,
}

const ACCESS: Range = Range::exactly(1);
const MAKE_LIST: Range = Range::exactly(10);
const MAKE_MAP: Range = Range::exactly(30);
const MAKE_OBJECT: Range = Range::exactly(40);
/// The cost of reading a character.
const CHARACTER: f64 = 0.1;
/// The cost of a character of a pattern.
const PATTERN: f64 = 0.25;

/// The cost of an expression; `root` gives the sizes of its variables.
pub(super) fn estimate(expression: &IdedExpr, checked: &Checked, root: &Declared) -> Range {
    let mut coster = Coster {
        checked,
        root,
        paths: HashMap::new(),
        locals: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    coster.cost(expression)
}

struct Coster<'a> {
    checked: &'a Checked,
    root: &'a Declared,
    /// The schema path of each part.
    paths: HashMap<u64, Vec<String>>,
    locals: HashMap<String, Vec<Local>>,
    sizes: HashMap<u64, Range>,
    entries: HashMap<u64, Entry>,
}

impl Coster<'_> {
    fn cost(&mut self, at: &IdedExpr) -> Range {
        match &at.expr {
            Expr::Literal(_) | Expr::Unspecified => Range::NOTHING,
            Expr::Ident(name) => {
                let path = self
                    .local(name)
                    .map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(at.id, path);
                ACCESS
            }
            Expr::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test {
                    return operand;
                }
                let counts = matches!(
                    self.checked.ty(select.operand.id),
                    Ty::Map(..) | Ty::Object(_) | Ty::Extra(_)
                );
                let mut path = self.path(&select.operand);
                path.push(select.field.clone());
                self.paths.insert(at.id, path);
                if counts { operand.plus(ACCESS) } else { operand }
            }
            Expr::Call(call) => self.call(at, call),
            Expr::List(list) => self.list(at.id, list),
            Expr::Map(map) => self.map(at.id, map),
            Expr::Struct(_) => MAKE_OBJECT,
            Expr::Comprehension(loop_) if is_binding(loop_) => self.binding(at.id, loop_),
            Expr::Comprehension(loop_) => self.comprehension(at, loop_),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name).and_then(|stack| stack.last())
    }

    fn push(&mut self, name: &str, local: Local) {
        self.locals.entry(name.to_owned()).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn path(&self, at: &IdedExpr) -> Vec<String> {
        if let Expr::Ident(name) = &at.expr
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&at.id).cloned().unwrap_or_default()
    }

    fn argument<'e>(&mut self, at: &'e IdedExpr) -> Arg<'e> {
        let mut path = self.path(at);
        if path.first().is_some_and(|first| first == "@result") {
            path.clear();
        }
        Arg {
            ty: self.checked.ty(at.id).clone(),
            size: self.size(at),
            path,
            expression: at,
        }
    }

    fn call(&mut self, at: &IdedExpr, call: &CallExpr) -> Range {
        let checked = self.checked;
        let (name, target) = checked.function(at.id, call);
        if name == "dyn"
            && let [only] = call.args.as_slice()
        {
            let cost = self.cost(only).plus(ACCESS);
            self.copy_sizes(at.id, only);
            return cost;
        }
        let costs: Vec<Range> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let args: Vec<Arg<'_>> = call.args.iter().map(|arg| self.argument(arg)).collect();
        let overloads = checked.overloads(at.id);
        if overloads.is_empty() {
            return Range::NOTHING;
        }
        let mut sum = Range::NOTHING;
        let target = target.map(|target| {
            sum = self.cost(target);
            self.argument(target)
        });
        let mut cost = Range::NONE;
        let mut result: Option<Range> = None;
        for overload in overloads {
            let (each, size) = self.function(at, name, overload, target.as_ref(), &args, &costs);
            cost = cost.union(each);
            if let Some(size) = size {
                result = Some(result.map_or(size, |before| before.union(size)));
            }
            let below = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(below), Some(first)) = (below, call.args.first()) {
                result = self.entry(first).map(|entry| entry.value);
                let mut path = self.path(first);
                path.push(below.to_owned());
                self.paths.insert(at.id, path);
            }
            if result.is_none() {
                result = self.size(at);
            }
        }
        if let Some(size) = result {
            self.sizes.insert(at.id, size);
        }
        sum.plus(cost)
    }

    fn list(&mut self, id: u64, list: &ListExpr) -> Range {
        let mut sum = MAKE_LIST;
        let mut items = if list.elements.is_empty() {
            Range::NOTHING
        } else {
            Range::NONE
        };
        for element in &list.elements {
            sum = sum.plus(self.cost(element));
            items = items.union(self.size_or_unknown(element));
        }
        let entry = Entry {
            is_list: true,
            key: ACCESS,
            value: items,
        };
        self.entries.insert(id, entry);
        sum
    }

    fn map(&mut self, id: u64, map: &MapExpr) -> Range {
        let mut sum = MAKE_MAP;
        let start = if map.entries.is_empty() {
            Range::NOTHING
        } else {
            Range::NONE
        };
        let (mut keys, mut values) = (start, start);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            keys = keys.union(self.size_or_unknown(&entry.key));
            values = values.union(self.size_or_unknown(&entry.value));
        }
        let entry = Entry {
            is_list: false,
            key: keys,
            value: values,
        };
        self.entries.insert(id, entry);
        sum
    }

    fn comprehension(&mut self, at: &IdedExpr, loop_: &ComprehensionExpr) -> Range {
        let mut sum = self.cost(&loop_.iter_range).plus(self.cost(&loop_.accu_init));
        self.push_bound(&loop_.accu_var, &loop_.accu_init);
        let entry = self.entry(&loop_.iter_range);
        let is_list = entry.map_or_else(
            || matches!(self.checked.ty(loop_.iter_range.id), Ty::List(_)),
            |entry| entry.is_list,
        );
        let path = self.path(&loop_.iter_range);
        let below = |word: &str, size: Option<Range>| {
            let mut path = path.clone();
            path.push(word.to_owned());
            Local {
                path,
                size,
                entry: None,
            }
        };
        let (key, value) = (entry.map(|e| e.key), entry.map(|e| e.value));
        let (keys, values) = if is_list {
            (below("@indices", key), below("@items", value))
        } else {
            (below("@keys", key), below("@values", value))
        };
        match &loop_.iter_var2 {
            Some(second) => {
                self.push(&loop_.iter_var, keys);
                self.push(second, values);
            }
            None => self.push(&loop_.iter_var, if is_list { values } else { keys }),
        }
        let each = self.cost(&loop_.loop_cond).plus(self.cost(&loop_.loop_step));
        self.pop(&loop_.iter_var);
        if let Some(second) = &loop_.iter_var2 {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&loop_.result));
        self.pop(&loop_.accu_var);
        let count = self.size_or_unknown(&loop_.iter_range);
        sum = sum.plus(count.times(each));
        match &loop_.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&loop_.accu_init) {
                    self.sizes.insert(at.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(at.id, count);
                if let Some(entry) = self.entry(&loop_.loop_step) {
                    self.entries.insert(at.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn binding(&mut self, id: u64, loop_: &ComprehensionExpr) -> Range {
        let sum = self.cost(&loop_.iter_range).plus(self.cost(&loop_.accu_init));
        self.push_bound(&loop_.accu_var, &loop_.accu_init);
        let sum = sum.plus(self.cost(&loop_.result));
        self.pop(&loop_.accu_var);
        self.copy_sizes(id, &loop_.result);
        sum
    }

    fn push_bound(&mut self, name: &str, to: &IdedExpr) {
        let local = Local {
            path: self.path(to),
            size: self.size(to),
            entry: self.entry(to),
        };
        self.push(name, local);
    }

    fn copy_sizes(&mut self, id: u64, from: &IdedExpr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(id, size);
        }
        if let Some(entry) = self.entry(from) {
            self.entries.insert(id, entry);
        }
    }

    fn size_or_unknown(&mut self, at: &IdedExpr) -> Range {
        self.size(at).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, at: &IdedExpr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&at.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(at) {
            return Some(Range::exactly(size));
        }
        if let Some(size) = self.declared(&self.path(at)) {
            self.sizes.insert(at.id, size);
            return Some(size);
        }
        if self.checked.ty(at.id).is_scalar() {
            return Some(Range::exactly(1));
        }
        match &at.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn entry(&self, at: &IdedExpr) -> Option<Entry> {
        if let Some(entry) = self.entries.get(&at.id) {
            return Some(*entry);
        }
        match &at.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    /// The size that the schema allows at a path, which starts with a variable.
    fn declared(&self, path: &[String]) -> Option<Range> {
        let (_, rest) = path.split_first()?;
        let mut at = self.root;
        for part in rest {
            at = match part.as_str() {
                "@items" | "@values" => at.element.as_deref()?,
                "@keys" => at.key.as_deref()?,
                field => at.fields.get(field)?,
            };
        }
        Some(Range { min: 0, max: at.max })
    }
}

/// Whether a loop only binds a value to a name.
fn is_binding(loop_: &ComprehensionExpr) -> bool {
    let empty = matches!(&loop_.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&loop_.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(b)) if !*b.inner());
    empty && never && loop_.accu_var != "@result"
}

/// The size of a literal.
fn written_size(at: &IdedExpr) -> Option<u64> {
    match &at.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().chars().count() as u64),
        Expr::Literal(LiteralValue::Bytes(bytes)) => Some(bytes.inner().len() as u64),
        Expr::Literal(_) => Some(1),
        Expr::List(list) => Some(list.elements.len() as u64),
        Expr::Map(map) => Some(map.entries.len() as u64),
        _ => None,
    }
}
