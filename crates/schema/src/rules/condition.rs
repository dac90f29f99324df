//! Expressions that say yes or no about things that have no schema: conditions of admission webhooks.

use std::sync::Arc;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::{Context, Value as Cel};
use serde_json::Value;

use super::permissions::{Ask, Permission, Permissions};
use super::program::{Outcome, Program};
use super::{convert, library};

/// A compiled expression.
pub struct Condition {
    source: String,
    program: Program,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

/// What the variables of conditions stand for.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    values: Vec<(&'static str, Cel)>,
    permissions: Vec<(&'static str, Ask)>,
}

impl Facts {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable; `None` is null.
    pub fn set(&mut self, name: &'static str, value: Option<&Value>) {
        self.values.push((name, value.map_or(Cel::Null, convert::plain)));
    }

    /// Sets `authorizer`, and what its `requestResource` is.
    pub fn set_authorizer(&mut self, who: Arc<dyn Permissions>, request: Permission) {
        self.permissions = vec![
            ("authorizer", Ask::Authorizer(Arc::clone(&who), Permission::default())),
            ("authorizer.requestResource", Ask::Resource(who, request)),
        ];
    }
}

impl Condition {
    /// Compiles an expression that may use these variables. What is certain to be no truth value is refused, too; there is no
    /// type checker, so the rest shows when it is evaluated.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, String> {
        let source = source.trim();
        let failed = |why: String| format!("compilation failed: {why}");
        let program = Program::compile(source).map_err(failed)?;
        let mut known: Vec<&str> = variables.to_vec();
        if let Some(unknown) = undeclared(program.expression(), &mut known) {
            return Err(failed(format!("undeclared reference to '{unknown}' (in container '')")));
        }
        if !may_be_bool(&program.expression().expr) {
            return Err("must evaluate to bool".to_owned());
        }
        Ok(Self {
            source: source.to_owned(),
            program,
        })
    }

    /// Whether the expression uses a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.program.uses(variable)
    }

    /// Whether it holds; an error is in words.
    pub fn holds(&self, facts: &Facts) -> Result<bool, String> {
        let mut context = Context::with_env(library::env());
        for (name, value) in &facts.values {
            if self.uses(name) {
                context.add_variable_from_value(*name, value.clone());
            }
        }
        for (name, ask) in &facts.permissions {
            context.add_variable_as_val(*name, Box::new(ask.clone()));
        }
        let failed = |why: String| format!("expression '{}' resulted in error: {why}", self.source);
        match self.program.run(&context).0 {
            Outcome::Done(Ok(Cel::Bool(holds))) => Ok(holds),
            Outcome::Done(Ok(_)) => Err(failed("it is neither true nor false".to_owned())),
            Outcome::Done(Err(error)) => Err(failed(super::reason(&error))),
            Outcome::TooExpensive => Err(failed("operation cancelled: actual cost limit exceeded".to_owned())),
        }
    }
}

/// Names that stand for types.
const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "uint",
];

/// The first variable that nothing declares.
fn undeclared<'e>(at: &'e IdedExpr, known: &mut Vec<&'e str>) -> Option<&'e str> {
    match &at.expr {
        Expr::Ident(name) => {
            let fine = name.starts_with('@') || known.contains(&name.as_str()) || TYPES.contains(&name.as_str());
            (!fine).then_some(name)
        }
        Expr::Call(call) => {
            let target = call.target.as_deref().filter(|target| !is_library(target));
            target.into_iter().chain(&call.args).find_map(|e| undeclared(e, known))
        }
        Expr::Comprehension(loop_) => undeclared_in_loop(loop_, known),
        Expr::List(list) => list.elements.iter().find_map(|e| undeclared(e, known)),
        Expr::Map(map) => map.entries.iter().find_map(|e| entry(&e.expr, known)),
        Expr::Struct(made) => made.entries.iter().find_map(|e| entry(&e.expr, known)),
        Expr::Select(select) => undeclared(&select.operand, known),
        Expr::Literal(_) | Expr::Unspecified => None,
    }
}

/// `sets.contains(..)`, `math.least(..)`: the name before the dot is no variable.
fn is_library(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if matches!(name.as_str(), "sets" | "math" | "base64" | "format" | "optional" | "ip" | "cel" | "lists" | "strings" | "jsonpatch"))
}

fn entry<'e>(entry: &'e EntryExpr, known: &mut Vec<&'e str>) -> Option<&'e str> {
    match entry {
        EntryExpr::StructField(field) => undeclared(&field.value, known),
        EntryExpr::MapEntry(entry) => undeclared(&entry.key, known).or_else(|| undeclared(&entry.value, known)),
    }
}

fn undeclared_in_loop<'e>(loop_: &'e ComprehensionExpr, known: &mut Vec<&'e str>) -> Option<&'e str> {
    let outside = undeclared(&loop_.iter_range, known).or_else(|| undeclared(&loop_.accu_init, known));
    if outside.is_some() {
        return outside;
    }
    let before = known.len();
    known.push(&loop_.accu_var);
    known.push(&loop_.iter_var);
    known.extend(loop_.iter_var2.as_deref());
    let inside = [&loop_.loop_cond, &loop_.loop_step, &loop_.result]
        .into_iter()
        .find_map(|e| undeclared(e, known));
    known.truncate(before);
    inside
}

/// Whether an expression is not certain to be something else than a truth value.
fn may_be_bool(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(literal) => matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => false,
        Expr::Comprehension(loop_) => !matches!(&loop_.accu_init.expr, Expr::List(_) | Expr::Map(_)),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::CONDITIONAL => call.args.iter().skip(1).all(|e| may_be_bool(&e.expr)),
            operators::SUBSTRACT
            | operators::ADD
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE
            | "size"
            | "string"
            | "int"
            | "uint"
            | "double"
            | "bytes"
            | "duration"
            | "timestamp"
            | "type" => false,
            _ => true,
        },
        Expr::Ident(_) | Expr::Select(_) | Expr::Unspecified => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

    fn check(source: &str, want: Result<bool, &str>) {
        let mut facts = Facts::new();
        let object =
            json!({"metadata": {"name": "a", "namespace": "n", "labels": {"a/b": "c"}}, "spec": {"list": [1, 2]}});
        facts.set("object", Some(&object));
        facts.set("oldObject", None);
        facts.set(
            "request",
            Some(&json!({"operation": "CREATE", "userInfo": {"groups": ["x"]}})),
        );
        let got = Condition::compile(source, &VARIABLES).and_then(|c| c.holds(&facts));
        assert_eq!(got, want.map_err(str::to_owned), "{source}");
    }

    #[test]
    fn conditions_see_their_variables() {
        check("object.metadata.name == 'a' && request.operation == 'CREATE'", Ok(true));
        check("object.metadata.namespace == 'n'", Ok(true));
        check("object.metadata.labels['a/b'] != 'c'", Ok(false));
        check("oldObject == null", Ok(true));
        check("has(object.spec.list) && object.spec.list.exists(i, i > 1)", Ok(true));
        check("'x' in request.userInfo.groups", Ok(true));
        check("sets.contains([1, 2, 3], object.spec.list)", Ok(true));
        check("type(object) == map", Ok(true));
        check(
            " object.metadata.none == 'a' ",
            Err("expression 'object.metadata.none == 'a'' resulted in error: no such key: none"),
        );
        check(
            "lists.range(10000).all(i, lists.range(10000).all(j, j >= 0))",
            Err(
                "expression 'lists.range(10000).all(i, lists.range(10000).all(j, j >= 0))' resulted in error: \
                 operation cancelled: actual cost limit exceeded",
            ),
        );
        check(
            "object.metadata.name",
            Err("expression 'object.metadata.name' resulted in error: it is neither true nor false"),
        );
    }

    /// Lets everybody get everything, and tells what it was asked.
    struct Clerk;

    impl Permissions for Clerk {
        fn check(&self, asked: &Permission) -> crate::Permitted {
            let shown = format!(
                "{} {:?} {}/{}/{} {}/{} {:?}",
                asked.verb,
                asked.path,
                asked.group,
                asked.resource,
                asked.subresource,
                asked.namespace,
                asked.name,
                asked.account
            );
            crate::Permitted {
                allowed: asked.verb == "get",
                reason: shown,
            }
        }
    }

    #[test]
    fn conditions_ask_who_may_do_what() {
        let check = |source: &str| {
            let mut facts = Facts::new();
            let request = Permission {
                group: "apps".to_owned(),
                resource: "deployments".to_owned(),
                ..Permission::default()
            };
            facts.set_authorizer(Arc::new(Clerk), request);
            let condition = Condition::compile(source, &["authorizer"]).unwrap();
            assert_eq!(condition.holds(&facts), Ok(true), "{source}");
        };
        check("authorizer.group('').resource('pods').check('get').allowed()");
        check("!authorizer.group('').resource('pods').check('list').allowed()");
        check(
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('a').check('x').reason() \
             == 'x None apps/deployments/scale n/a None'",
        );
        check("authorizer.path('/metrics').check('get').reason() == 'get Some(\"/metrics\") // / None'");
        check(
            "authorizer.serviceAccount('n', 'robot').group('').resource('pods').check('get').reason() \
             == 'get None /pods/ / Some((\"n\", \"robot\"))'",
        );
        check("authorizer.requestResource.check('get').reason() == 'get None apps/deployments/ / None'");
        check(
            "!authorizer.requestResource.check('get').errored() && authorizer.requestResource.check('x').error() == ''",
        );
    }

    #[test]
    fn what_cannot_be_a_condition_does_not_compile() {
        check(
            "objekt.a == 1",
            Err("compilation failed: undeclared reference to 'objekt' (in container '')"),
        );
        check(
            "object.spec.list.all(i, j > 1)",
            Err("compilation failed: undeclared reference to 'j' (in container '')"),
        );
        for other in [
            "1",
            "'a'",
            "[true]",
            "object.a + 1",
            "size(object)",
            "true ? 1 : 2",
            "object.l.map(i, i)",
        ] {
            check(other, Err("must evaluate to bool"));
        }
        assert!(Condition::compile("object.", &VARIABLES).is_err());
    }
}
