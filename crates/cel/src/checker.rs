//! Checks the types of all parts of an expression.

use std::collections::{BTreeSet, HashMap};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr, StructExpr,
    operators,
};

use super::patterns::Patterns;
use super::signatures::{Overload, overloads, shifted};
use super::typing::{Mapping, Ty, most_general};

/// The result of checking an expression.
#[derive(Debug, Default)]
pub(super) struct Checked {
    types: HashMap<u64, Ty>,
    /// The ids of the overloads that a call may resolve to.
    overloads: HashMap<u64, Vec<&'static str>>,
    /// The full names of functions whose target is a namespace, not a value.
    qualified: HashMap<u64, String>,
    /// The free variables that it uses.
    pub(super) variables: BTreeSet<String>,
}

impl Checked {
    /// The type of a part.
    pub(super) fn ty(&self, id: u64) -> &Ty {
        self.types.get(&id).unwrap_or(&Ty::Dyn)
    }

    pub(super) fn overloads(&self, id: u64) -> &[&'static str] {
        self.overloads.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The function name of a call, and its target.
    pub(super) fn function<'a>(&'a self, id: u64, call: &'a CallExpr) -> (&'a str, Option<&'a IdedExpr>) {
        match self.qualified.get(&id) {
            Some(name) => (name, None),
            None => (&call.func_name, call.target.as_deref()),
        }
    }
}

/// A type error, and the part of the expression that it concerns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) id: u64,
    pub(super) words: String,
}

/// Checks an expression with these variables.
pub(super) fn check(expression: &IdedExpr, variables: &[(&str, Ty)]) -> (Checked, Vec<Problem>) {
    let mut checker = Checker {
        checked: Checked::default(),
        problems: Vec::new(),
        mapping: Mapping::default(),
        params: 0,
        outside: variables,
        scopes: Vec::new(),
    };
    checker.expression(expression);
    let Checker {
        mut checked,
        problems,
        mapping,
        ..
    } = checker;
    for ty in checked.types.values_mut() {
        *ty = mapping.substitute(ty, true);
    }
    (checked, problems)
}

struct Checker<'a> {
    checked: Checked,
    problems: Vec<Problem>,
    mapping: Mapping,
    params: usize,
    outside: &'a [(&'a str, Ty)],
    scopes: Vec<(String, Ty)>,
}

impl Checker<'_> {
    fn problem(&mut self, id: u64, words: String) {
        self.problems.push(Problem { id, words });
    }

    fn mismatch(&mut self, id: u64, wanted: &Ty, found: &Ty) {
        self.problem(id, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Ty {
        self.problem(id, format!("undeclared reference to '{name}' (in container '')"));
        Ty::Error
    }

    fn fresh(&mut self) -> Ty {
        // Parameters of overloads are numbered from zero; these numbers are never reused.
        self.params += 1;
        Ty::Param(self.params - 1)
    }

    fn set(&mut self, id: u64, ty: Ty) -> Ty {
        self.checked.types.insert(id, ty.clone());
        ty
    }

    fn expression(&mut self, at: &IdedExpr) -> Ty {
        let ty = match &at.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Ty::Bool,
                LiteralValue::Bytes(_) => Ty::Bytes,
                LiteralValue::Double(_) => Ty::Double,
                LiteralValue::Int(_) => Ty::Int,
                LiteralValue::Null => Ty::Null,
                LiteralValue::String(_) => Ty::String,
                LiteralValue::UInt(_) => Ty::Uint,
            },
            Expr::Ident(name) => self.variable(name).unwrap_or_else(|| self.undeclared(at.id, name)),
            Expr::Select(select) => self.select(at, select),
            Expr::Call(call) => self.call(at.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(made) => self.structure(at.id, made),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Unspecified => Ty::Error,
        };
        self.set(at.id, ty)
    }

    fn variable(&mut self, name: &str) -> Option<Ty> {
        if let Some((_, ty)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            return Some(ty.clone());
        }
        self.outer(name).or_else(|| Ty::of_name(name))
    }

    /// The type of a free variable, whose name may contain dots.
    fn outer(&mut self, name: &str) -> Option<Ty> {
        let (_, ty) = self.outside.iter().find(|(known, _)| *known == name)?;
        self.checked.variables.insert(name.to_owned());
        Some(ty.clone())
    }

    fn select(&mut self, at: &IdedExpr, select: &SelectExpr) -> Ty {
        if !select.test
            && let Some(ty) = qualified_name(at).and_then(|name| self.outer(&name).or_else(|| Ty::of_name(&name)))
        {
            return ty;
        }
        let field = self.field(at.id, &select.operand, &select.field, false);
        if select.test {
            return Ty::Bool;
        }
        self.mapping.substitute(&field, false)
    }

    fn field(&mut self, id: u64, operand: &IdedExpr, name: &str, optional: bool) -> Ty {
        let operand = self.expression(operand);
        let operand = self.mapping.substitute(&operand, false);
        let (target, is_optional) = operand.unwrap_optional();
        let found = match &target {
            Ty::Map(_, value) => value.as_ref().clone(),
            Ty::Object(declared) => {
                if let Some(field) = declared.fields.get(name) {
                    field.ty()
                } else {
                    self.problem(id, format!("undefined field '{name}'"));
                    Ty::Error
                }
            }
            Ty::Extra(_) => {
                self.problem(id, format!("undefined field '{name}'"));
                Ty::Error
            }
            Ty::Param(_) => {
                self.mapping.assign(&Ty::Dyn, &target);
                Ty::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.problem(id, format!("type '{other}' does not support field selection"));
                }
                Ty::Dyn
            }
        };
        if is_optional || optional {
            Ty::optional(found)
        } else {
            found
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Ty {
        if call.func_name == operators::OPT_SELECT
            && let [operand, field] = call.args.as_slice()
        {
            let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
                self.problem(id, "unsupported optional field selection".to_owned());
                return Ty::Error;
            };
            let found = self.field(id, operand, name.inner(), true);
            self.checked.overloads.insert(id, vec!["select_optional_field"]);
            return self.mapping.substitute(&found, false);
        }
        let arguments: Vec<Ty> = call.args.iter().map(|arg| self.expression(arg)).collect();
        let Some(target) = call.target.as_deref() else {
            let Some(found) = overloads(&call.func_name) else {
                return self.undeclared(id, &call.func_name);
            };
            return self.resolve(id, &call.func_name, found, false, &arguments, &call.args);
        };
        if let Some(prefix) = qualified_name(target) {
            let name = format!("{prefix}.{}", call.func_name);
            if let Some(found) = overloads(&name) {
                let ty = self.resolve(id, &name, found, false, &arguments, &call.args);
                self.checked.qualified.insert(id, name);
                return ty;
            }
        }
        let mut all = vec![self.expression(target)];
        all.extend(arguments);
        match overloads(&call.func_name) {
            Some(found) => self.resolve(id, &call.func_name, found, true, &all, &call.args),
            None => self.undeclared(id, &call.func_name),
        }
    }

    fn resolve(
        &mut self,
        id: u64,
        name: &str,
        overloads: &'static [Overload],
        member: bool,
        arguments: &[Ty],
        expressions: &[IdedExpr],
    ) -> Ty {
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            return self.logical(id, overloads, arguments, expressions);
        }
        let mut result: Option<Ty> = None;
        for overload in overloads.iter().filter(|o| o.member == member) {
            let base = self.params;
            self.params += overload.params;
            let wanted: Vec<Ty> = overload.arguments.iter().map(|ty| shifted(ty, base)).collect();
            if !self.mapping.assign_all(arguments, &wanted) {
                continue;
            }
            self.checked.overloads.entry(id).or_default().push(overload.id);
            let gives = self.mapping.substitute(&shifted(&overload.result, base), false);
            result = Some(match result {
                None => gives,
                Some(before) if before.is_dyn() || gives.is_exactly(&before) => before,
                Some(_) => Ty::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> = arguments
                .iter()
                .map(|ty| self.mapping.substitute(ty, true).to_string())
                .collect();
            let applied = match shown.split_first() {
                Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.problem(
                id,
                format!("found no matching overload for '{name}' applied to '{applied}'"),
            );
            Ty::Error
        })
    }

    fn logical(&mut self, id: u64, overloads: &'static [Overload], found: &[Ty], expressions: &[IdedExpr]) -> Ty {
        let mut fine = true;
        for (ty, expression) in found.iter().zip(expressions) {
            if !self.mapping.assign(ty, &Ty::Bool) {
                let ty = self.mapping.substitute(ty, true);
                self.mismatch(expression.id, &Ty::Bool, &ty);
                fine = false;
            }
        }
        self.checked
            .overloads
            .insert(id, overloads.iter().map(|o| o.id).collect());
        if fine { Ty::Bool } else { Ty::Error }
    }

    /// The common type of two elements of a list or map.
    fn join(&mut self, id: u64, before: Option<Ty>, next: Ty) -> Ty {
        match before {
            None => next,
            Some(before) if self.mapping.assign(&before, &next) => most_general(&before, &next),
            Some(before) => {
                self.mismatch(id, &before, &next);
                Ty::Error
            }
        }
    }

    /// The type of an optional element.
    fn optional_element(&mut self, id: u64, ty: &Ty) -> Ty {
        let (inner, is_optional) = ty.unwrap_optional();
        if !is_optional && !inner.is_dyn() {
            self.mismatch(id, &Ty::optional(inner.clone()), &inner);
        }
        inner
    }

    fn list(&mut self, list: &ListExpr) -> Ty {
        let mut all = None;
        for (index, element) in list.elements.iter().enumerate() {
            let mut ty = self.expression(element);
            if list.optional_indices.contains(&index) {
                ty = self.optional_element(element.id, &ty);
            }
            all = Some(self.join(element.id, all, ty));
        }
        Ty::list(all.unwrap_or_else(|| self.fresh()))
    }

    fn map(&mut self, map: &MapExpr) -> Ty {
        let (mut keys, mut values) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.expression(&entry.key);
            keys = Some(self.join(entry.key.id, keys, key));
            let mut value = self.expression(&entry.value);
            if entry.optional {
                value = self.optional_element(entry.value.id, &value);
            }
            values = Some(self.join(entry.value.id, values, value));
        }
        let key = keys.unwrap_or_else(|| self.fresh());
        let value = values.unwrap_or_else(|| self.fresh());
        Ty::map(key, value)
    }

    fn structure(&mut self, id: u64, made: &StructExpr) -> Ty {
        for entry in &made.entries {
            if let EntryExpr::StructField(field) = &entry.expr {
                self.expression(&field.value);
            }
        }
        self.undeclared(id, &made.type_name)
    }

    fn comprehension(&mut self, loop_: &ComprehensionExpr) -> Ty {
        let range = self.expression(&loop_.iter_range);
        let accu = self.expression(&loop_.accu_init);
        let range = self.mapping.substitute(&range, false);
        let depth = self.scopes.len();
        self.scopes.push((loop_.accu_var.clone(), accu.clone()));
        let (first, second) = match &range {
            Ty::List(of) if loop_.iter_var2.is_some() => (Ty::Int, of.as_ref().clone()),
            Ty::List(of) => (of.as_ref().clone(), Ty::Dyn),
            Ty::Map(key, value) => (key.as_ref().clone(), value.as_ref().clone()),
            Ty::Dyn | Ty::Error | Ty::Param(_) => {
                self.mapping.assign(&Ty::Dyn, &range);
                (Ty::Dyn, Ty::Dyn)
            }
            other => {
                let words = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.problem(loop_.iter_range.id, words);
                (Ty::Error, Ty::Error)
            }
        };
        self.scopes.push((loop_.iter_var.clone(), first));
        if let Some(name) = &loop_.iter_var2 {
            self.scopes.push((name.clone(), second));
        }
        self.assert(&loop_.loop_cond, &Ty::Bool);
        self.assert(&loop_.loop_step, &accu);
        self.scopes.truncate(depth + 1);
        let result = self.expression(&loop_.result);
        self.scopes.truncate(depth);
        self.mapping.substitute(&result, false)
    }

    fn assert(&mut self, at: &IdedExpr, wanted: &Ty) {
        let found = self.expression(at);
        if !self.mapping.assign(wanted, &found) {
            let (wanted, found) = (
                self.mapping.substitute(wanted, false),
                self.mapping.substitute(&found, false),
            );
            self.mismatch(at.id, &wanted, &found);
        }
    }
}

/// `a.b.c`, if an expression consists of names only.
pub(super) fn qualified_name(at: &IdedExpr) -> Option<String> {
    match &at.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified_name(&select.operand)?, select.field)),
        _ => None,
    }
}

/// Reports invalid literal arguments: patterns, durations, times.
pub(super) fn literals(at: &IdedExpr, patterns: &Patterns, problems: &mut Vec<Problem>) {
    if let Expr::Call(call) = &at.expr
        && let Some(argument) = call.args.last()
        && let Expr::Literal(LiteralValue::String(text)) = &argument.expr
    {
        let fits = match call.func_name.as_str() {
            "matches" => !patterns.is_invalid(text.inner()),
            "duration" => super::convert::duration(text.inner()).is_some(),
            "timestamp" => chrono::DateTime::parse_from_rfc3339(text.inner()).is_ok(),
            _ => true,
        };
        if !fits {
            problems.push(Problem {
                id: argument.id,
                words: format!("invalid {} argument", call.func_name),
            });
        }
    }
    each_part(at, &mut |part| literals(part, patterns, problems));
}

/// Calls `then` for each direct part of an expression.
pub(super) fn each_part<'e>(at: &'e IdedExpr, then: &mut dyn FnMut(&'e IdedExpr)) {
    match &at.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).for_each(then),
        Expr::Comprehension(loop_) => {
            for part in [
                &loop_.iter_range,
                &loop_.accu_init,
                &loop_.loop_cond,
                &loop_.loop_step,
                &loop_.result,
            ] {
                then(part);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(then),
        Expr::Map(map) => each_entry(map.entries.iter().map(|e| &e.expr), then),
        Expr::Struct(made) => each_entry(made.entries.iter().map(|e| &e.expr), then),
        Expr::Select(select) => then(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn each_entry<'e>(entries: impl Iterator<Item = &'e EntryExpr>, then: &mut dyn FnMut(&'e IdedExpr)) {
    for entry in entries {
        match entry {
            EntryExpr::StructField(field) => then(&field.value),
            EntryExpr::MapEntry(entry) => {
                then(&entry.key);
                then(&entry.value);
            }
        }
    }
}
