//! Boolean expressions about values without a schema: match conditions of admission webhooks.

use std::sync::{Arc, LazyLock};

use cel::{Context, Value as Cel};
use serde_json::Value;
use windlass_schema::Patterns;

use super::declared::Declared;
use super::permissions::{Ask, Permission, Permissions};
use super::program::{Outcome, Program};
use super::typing::Ty;
use super::{convert, library};

/// The variables of conditions. The types of the objects are dynamic.
static VARIABLES: LazyLock<Vec<(&str, Ty)>> = LazyLock::new(|| {
    vec![
        ("object", Ty::Dyn),
        ("oldObject", Ty::Dyn),
        ("request", Declared::request().ty()),
        // kube-apiserver never sets this for webhooks.
        ("namespaceObject", Declared::namespace().ty()),
        ("authorizer", Ty::Extra("kubernetes.authorization.Authorizer")),
        (
            "authorizer.requestResource",
            Ty::Extra("kubernetes.authorization.ResourceCheck"),
        ),
    ]
});

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

/// What is left of the cost limit of all conditions of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct Budget(Option<u64>);

impl Budget {
    /// Whether it was not enough.
    pub fn is_spent(self) -> bool {
        self.0.is_none()
    }
}

impl Default for Budget {
    /// A quarter of the limit of all rules for one object, as in Kubernetes.
    fn default() -> Self {
        Self(Some(2_500_000))
    }
}

/// The values of the variables.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    values: Vec<(&'static str, Cel)>,
    permissions: Vec<(&'static str, Ask)>,
}

impl Facts {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable; `None` is null.
    pub fn set(&mut self, name: &'static str, value: Option<&Value>) {
        self.values.push((name, value.map_or(Cel::Null, convert::plain)));
    }

    /// Sets `authorizer` and `authorizer.requestResource`.
    pub fn set_authorizer(&mut self, who: Arc<dyn Permissions>, request: Permission) {
        self.permissions = vec![
            ("authorizer", Ask::Authorizer(Arc::clone(&who), Permission::default())),
            ("authorizer.requestResource", Ask::Resource(who, request)),
        ];
    }
}

impl Condition {
    /// Compiles an expression over `object`, `oldObject`, `request` and `authorizer`. It must be boolean.
    pub fn compile(source: &str) -> Result<Self, String> {
        let source = source.trim();
        let failed = |why: String| format!("compilation failed: {why}");
        let program = Program::compile(source, &Patterns::default()).map_err(failed)?;
        let checked = program.check(&VARIABLES).map_err(failed)?;
        let ty = checked.ty(program.expression().id);
        if !ty.is_exactly(&Ty::Bool) {
            return Err(format!("must evaluate to bool but got {ty}"));
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

    /// Evaluates it within a budget; the error is a text.
    pub fn holds(&self, facts: &Facts, budget: &mut Budget) -> Result<bool, String> {
        let mut context = Context::with_env(library::env());
        for (name, value) in &facts.values {
            if self.uses(name) {
                context.add_variable_from_value(*name, value.clone());
            }
        }
        context.add_variable_from_value("namespaceObject", Cel::Null);
        for (name, ask) in &facts.permissions {
            context.add_variable_as_val(*name, Box::new(ask.clone()));
        }
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        let (outcome, cost) = self.program.run(&context);
        budget.0 = budget.0.and_then(|left| left.checked_sub(cost));
        if budget.is_spent() {
            let words = "validation failed due to running out of cost budget, no further validation rules will be run";
            return Err(words.to_owned());
        }
        match outcome {
            Outcome::Done(Ok(Cel::Bool(holds))) => Ok(holds),
            Outcome::Done(Ok(_)) => Err(failed("it is neither true nor false")),
            Outcome::Done(Err(error)) => Err(failed(&crate::evaluate::reason(&error))),
            Outcome::TooExpensive => Err(failed("operation cancelled: actual cost limit exceeded")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let got = Condition::compile(source).and_then(|c| c.holds(&facts, &mut Budget::default()));
        assert_eq!(got, want.map_err(str::to_owned), "{source}");
    }

    #[test]
    fn conditions_see_their_variables() {
        check("object.metadata.name == 'a' && request.operation == 'CREATE'", Ok(true));
        check("object.metadata.namespace == 'n'", Ok(true));
        check("object.metadata.labels['a/b'] != 'c'", Ok(false));
        check("oldObject == null && namespaceObject == null", Ok(true));
        check("has(object.spec.list) && object.spec.list.exists(i, i > 1)", Ok(true));
        check("'x' in request.userInfo.groups", Ok(true));
        check("sets.contains([1, 2, 3], object.spec.list)", Ok(true));
        check("type(object) == map", Ok(true));
        check(
            " object.metadata.none == 'a' ",
            Err("expression 'object.metadata.none == 'a'' resulted in error: no such key: none"),
        );
        check(
            "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(a, lists.range(1000).all(b, lists.range(1000).all(c, c < a + b + 9999)))",
            Err(
                "expression '[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(a, lists.range(1000).all(b, lists.range(1000).all(c, c < a + b + 9999)))' \
                 resulted in error: operation cancelled: actual cost limit exceeded",
            ),
        );
    }

    #[test]
    fn what_a_condition_makes_costs_by_its_size() {
        let mut facts = Facts::new();
        let text = "a".repeat(1 << 20);
        facts.set("object", Some(&json!({"text": text, "list": vec!["b"; 100]})));
        let dear = |source: &str| {
            let condition = Condition::compile(source).unwrap();
            let error = condition.holds(&facts, &mut Budget::default()).expect_err(source);
            assert!(
                error.ends_with("operation cancelled: actual cost limit exceeded"),
                "{error}"
            );
        };
        let fine = |source: &str| {
            let condition = Condition::compile(source).unwrap();
            assert_eq!(condition.holds(&facts, &mut Budget::default()), Ok(true), "{source}");
        };
        dear("object.list.join(object.text).size() > 0");
        dear("object.list.all(i, (object.text + i).size() > 0)");
        dear("object.list.map(i, object.text).size() > 0");
        dear("object.list.map(i, {i: object}).size() > 0");
        dear("object.list.all(i, '%s'.format([object.text]).size() > 0)");
        dear("object.text.matches('(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s)*')");
        dear("object.text.find('(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s)*') == 'x'");
        dear("object.text.replace('a', 'abcdefghij') == 'x'");
        dear(&format!("[object.text]{}.size() > 0", ".map(x, x + x)".repeat(8)));
        dear(&format!("[[object.text]]{}.size() > 0", ".map(x, x + x)".repeat(8)));
        fine("(object.text + 'a').size() == 1048577 && object.text.matches('^a')");
        fine("object.list.map(i, i + 'c').join(',').size() == 299 && '%s'.format(['a']) == 'a'");
        let digits: Vec<_> = (0..50).map(|n| format!("'{}'", n % 10)).collect();
        fine(&format!("{} == '{}'", digits.join(" + "), "0123456789".repeat(5)));
        fine("(object.list + object.list).size() == 200");
    }

    #[test]
    fn all_conditions_of_a_webhook_have_one_budget() {
        let facts = Facts::new();
        let condition = Condition::compile("lists.range(1000).all(i, lists.range(100).all(j, i + j >= 0))").unwrap();
        let mut budget = Budget::default();
        let results: Vec<_> = (0..20).map(|_| condition.holds(&facts, &mut budget)).collect();
        assert_eq!(results[0], Ok(true));
        let words = "validation failed due to running out of cost budget, no further validation rules will be run";
        assert_eq!(results[19], Err(words.to_owned()));
    }

    /// Allows every `get`, and records the checks.
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
            let condition = Condition::compile(source).unwrap();
            assert_eq!(condition.holds(&facts, &mut Budget::default()), Ok(true), "{source}");
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
        let refused = |source: &str, want: &str| {
            let why = Condition::compile(source).unwrap_err();
            assert_eq!(why.lines().next(), Some(want), "{source}");
        };
        refused(
            "objekt.a == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt' (in container '')",
        );
        refused(
            "object.spec.list.all(i, j > 1)",
            "compilation failed: ERROR: <input>:1:25: undeclared reference to 'j' (in container '')",
        );
        refused(
            "request.user == 'me'",
            "compilation failed: ERROR: <input>:1:8: undefined field 'user'",
        );
        refused(
            "request.name == 1",
            "compilation failed: ERROR: <input>:1:14: found no matching overload for '_==_' applied to '(string, int)'",
        );
        refused(
            "authorizer.check('get').allowed()",
            "compilation failed: ERROR: <input>:1:17: found no matching overload for 'check' applied to 'kubernetes.authorization.Authorizer.(string)'",
        );
        for (other, ty) in [
            ("1", "int"),
            ("'a'", "string"),
            ("[true]", "list(bool)"),
            ("object.a", "dyn"),
            ("size(object)", "int"),
            ("true ? 1 : 2", "int"),
            ("object.l.map(i, i)", "list(dyn)"),
            ("request.name", "string"),
            ("request", "kubernetes.AdmissionRequest"),
        ] {
            refused(other, &format!("must evaluate to bool but got {ty}"));
        }
        assert!(Condition::compile("object.").is_err());
    }
}
