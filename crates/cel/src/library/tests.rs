//! Tests of the functions available to rules.

use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr, IdedExpr};
use cel::{Context, Value};

use super::*;
use crate::permissions::{Ask, Permission, Permissions, Permitted};
use crate::program::{Program, call};
use crate::signatures::{Overload, table};
use crate::typing::Ty;

struct Clerk;

impl Permissions for Clerk {
    fn check(&self, _: &Permission) -> Permitted {
        Permitted::default()
    }
}

#[test]
fn the_environment_declares_nothing_twice() {
    let mut env = Env::stdlib().with_optional_support(true);
    for extension in EXTENSIONS {
        assert_eq!(env.add_extension(extension), Ok(()));
    }
}

/// An expression with a value that fits the argument of an overload.
fn sample(overload: &Overload, at: usize) -> String {
    of(&overload.arguments[at], overload, at)
}

fn of(ty: &Ty, overload: &Overload, at: usize) -> String {
    let of = |ty: &Ty| of(ty, overload, at);
    match ty {
        Ty::List(item) => format!("[{}]", of(item)),
        Ty::Map(key, value) => format!("{{{}: {}}}", of(key), of(value)),
        Ty::Optional(inner) => format!("optional.of({})", of(inner)),
        Ty::Param(_) if overload.id == "index_map" => "0".to_owned(),
        Ty::Param(_) => at.to_string(),
        other => match other.to_string().as_str() {
            "bool" => "true",
            "bytes" => "b'a'",
            "double" => "1.0",
            "duration" => "duration('1s')",
            "dyn" | "int" if overload.id == "divide_int64" || overload.id == "modulo_int64" => "1",
            "dyn" | "int" => "0",
            "string" => text_for(overload, at),
            "timestamp" => "timestamp('2026-01-01T00:00:00Z')",
            "uint" => "1u",
            "kubernetes.NamedFormat" => "format.uri()",
            "kubernetes.Quantity" => "quantity('1')",
            "kubernetes.Semver" => "semver('1.0.0')",
            "kubernetes.URL" => "url('https://a/b?c=d')",
            "kubernetes.authorization.Authorizer" => "authorizer",
            "kubernetes.authorization.Decision" => "authorizer.path('/a').check('get')",
            "kubernetes.authorization.GroupCheck" => "authorizer.group('')",
            "kubernetes.authorization.PathCheck" => "authorizer.path('/a')",
            "kubernetes.authorization.ResourceCheck" => "authorizer.group('').resource('pods')",
            "net.CIDR" => "cidr('10.0.0.0/8')",
            "net.IP" => "ip('10.0.0.1')",
            other => panic!("{}: no sample of {other}", overload.id),
        }
        .to_owned(),
    }
}

/// A text that the function accepts.
fn text_for(overload: &Overload, at: usize) -> &'static str {
    match overload.id {
        "string_to_bool" => "'true'",
        "string_to_double" | "string_to_int64" | "string_to_uint64" | "string_to_quantity" => "'1'",
        "string_to_duration" => "'1s'",
        "string_to_timestamp" => "'2026-01-01T00:00:00Z'",
        "string_to_url" => "'https://a'",
        "string_to_ip" | "ip_is_canonical" | "cidr_contains_ip_string" => "'10.0.0.1'",
        "string_to_cidr" | "cidr_contains_cidr_string" => "'10.0.0.0/8'",
        "string_to_semver" | "string_bool_to_semver" => "'1.0.0'",
        id if id.ends_with("_with_tz") => "'UTC'",
        "string_format" if at == 0 => "'%d'",
        "resourcecheck_fieldselector" | "resourcecheck_labelselector" => "'a=b'",
        _ => "'a'",
    }
}

fn parsed(source: &str) -> IdedExpr {
    let program =
        Program::compile(source, &windlass_schema::Patterns::default()).unwrap_or_else(|why| panic!("{source}: {why}"));
    program.expression().clone()
}

#[test]
fn every_function_that_passes_the_checker_can_be_evaluated() {
    let mut missing = Vec::new();
    for (name, overload) in table() {
        let mut args: Vec<_> = (0..overload.arguments.len())
            .map(|at| parsed(&sample(overload, at)))
            .collect();
        let mut made = call(name, Vec::new());
        if let Expr::Call(CallExpr {
            target, args: given, ..
        }) = &mut made.expr
        {
            if overload.member {
                *target = Some(Box::new(args.remove(0)));
            }
            *given = args;
        }
        let mut context = Context::with_env(env());
        let authorizer = Ask::Authorizer(Arc::new(Clerk), Permission::default());
        context.add_variable_as_val("authorizer", Box::new(authorizer));
        // The engine has no values of these types outside of expressions.
        let found = Value::resolve(&call("type", vec![made]), &context);
        if let Err(error) = found {
            missing.push(format!("{name} {}: {error}", overload.id));
        }
    }
    missing.sort();
    assert_eq!(missing, [""; 0]);
}

fn holds(source: &str) {
    let program = env().compile(source).unwrap_or_else(|why| panic!("{source}: {why}"));
    let context = Context::with_env(env());
    assert_eq!(program.execute(&context), Ok(Value::Bool(true)), "{source}");
}

#[test]
fn formats_have_names() {
    holds("!format.named('none').hasValue()");
    holds("format.named('byte').value() == format.byte()");
    holds("format.named('dns1123Label').value().validate('a-b') == optional.none()");
    holds("format.dns1123Label().validate('a-').hasValue()");
    for format in ["dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"] {
        holds(&format!("!format.{format}().validate('a-').hasValue()"));
        holds(&format!("format.named('{format}').value().validate('A').hasValue()"));
        holds(&format!("format.{format}().validate('-').hasValue()"));
    }
    holds("format.dns1035LabelPrefix().validate('1a-').hasValue()");
    holds("!format.date().validate('2026-01-01').hasValue() && format.date().validate('x').hasValue()");
    for (name, _) in crate::values::NamedFormat::ALL {
        holds(&format!("format.named('{name}').value() == format.{name}()"));
    }
}

#[test]
fn versions_may_be_parsed_tolerantly() {
    holds("!isSemver('v1.2') && !isSemver('v1.2', false) && isSemver('v1.2', true)");
    holds("semver('v01.2', true) == semver('1.2.0')");
    holds("semver('1', true).major() == 1 && semver('1.2.00-a', true).patch() == 0");
    holds("!isSemver('1.2-a', true) && !isSemver('', true) && !isSemver(' 1.2', true) && !isSemver('a', true)");
}

#[test]
fn addresses_and_queries_are_shown_as_they_are_written() {
    holds("string(ip('2001:DB8::1')) == '2001:db8::1' && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'");
    holds("ip.isCanonical('10.0.0.1') && !ip.isCanonical('2001:DB8::1') && ip.isCanonical('2001:db8::1')");
    holds("url('https://a/b?c=d%20e&c=f+g&h').getQuery() == {'c': ['d e', 'f g'], 'h': ['']}");
    holds("url('https://a/b').getQuery() == {}");
}

#[test]
fn lists_have_ends_and_optionals_are_unwrapped() {
    holds("[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !['a'].filter(x, x == 'b').first().hasValue()");
    holds("optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]");
    holds("[optional.of(ip('10.0.0.1'))].unwrapOpt()[0].family() == 4");
    holds("duration(1000000000) == duration('1s') && int(duration('2s')) == 2000000000");
}
