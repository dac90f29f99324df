//! Go text templates with the deterministic part of the Sprig functions.
//!
//! One engine for `enabledIf`, `valueFrom.template` and naming templates. Nothing here reads a clock, the
//! environment or a source of randomness: the same template and data always give the same text.

mod sprig;

use gtmpl_ng::{Context, Limits, Number, Template, Value as GoValue};
use serde_json::Value;

/// Largest text a template may produce; a template value is limited to far less by the API.
const MAX_OUTPUT: usize = 1 << 20;

/// What the engine prints where a template names something that is not there.
const NO_VALUE: &str = "<no value>";

/// A template that does not parse or does not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is no valid template.
    #[error("template cannot be parsed: {0}")]
    Parse(String),
    /// The template failed while it ran.
    #[error("template cannot be rendered: {0}")]
    Render(String),
    /// The template names a field that its data does not have.
    #[error("template uses a field that does not exist")]
    MissingField,
}

/// Checks that `text` parses and uses only functions that exist.
pub fn check(text: &str) -> Result<(), TemplateError> {
    parsed(text, true).map(drop)
}

/// Renders `text` with the Sprig functions; a missing field prints `<no value>`, as it does in Go.
pub fn render(text: &str, data: &Value) -> Result<String, TemplateError> {
    run(&parsed(text, true)?, data)
}

/// Renders a naming template: no Sprig functions, and a missing field is an error.
pub fn render_strict(text: &str, data: &Value) -> Result<String, TemplateError> {
    let out = run(&parsed(text, false)?, data)?;
    // No name may contain `<`, so this text can only come from a missing field.
    if out.contains(NO_VALUE) {
        return Err(TemplateError::MissingField);
    }
    Ok(out)
}

fn parsed(text: &str, with_functions: bool) -> Result<Template, TemplateError> {
    let mut template = Template::with_limits(Limits::DEFAULT.with_output_bytes(MAX_OUTPUT));
    if with_functions {
        // The engine copies the name of each function for each template: those that the text cannot mean are left out.
        let mut functions = sprig::functions();
        functions.retain(|(name, _)| text.contains(name));
        template.add_funcs(&functions);
    }
    template.parse(text).map_err(|e| TemplateError::Parse(e.to_string()))?;
    Ok(template)
}

fn run(template: &Template, data: &Value) -> Result<String, TemplateError> {
    template
        .render(&Context::from(to_go(data)))
        .map_err(|e| TemplateError::Render(e.to_string()))
}

/// JSON as the template engine's value.
fn to_go(value: &Value) -> GoValue {
    match value {
        Value::Null => GoValue::Nil,
        Value::Bool(b) => GoValue::Bool(*b),
        Value::String(s) => GoValue::String(s.clone()),
        Value::Number(n) => GoValue::Number(go_number(n)),
        Value::Array(items) => GoValue::Array(items.iter().map(to_go).collect()),
        Value::Object(map) => GoValue::Map(map.iter().map(|(k, v)| (k.clone(), to_go(v))).collect()),
    }
}

fn go_number(n: &serde_json::Number) -> Number {
    if let Some(i) = n.as_i64() {
        Number::from(i)
    } else if let Some(u) = n.as_u64() {
        Number::from(u)
    } else {
        Number::from(n.as_f64().unwrap_or_default())
    }
}

/// The template engine's value as JSON; functions become null.
fn from_go(value: &GoValue) -> Value {
    match value {
        GoValue::NoValue | GoValue::Nil | GoValue::Function(_) => Value::Null,
        GoValue::Bool(b) => Value::Bool(*b),
        GoValue::String(s) => Value::String(s.clone()),
        GoValue::Number(n) => match n.kind() {
            gtmpl_ng::NumberKind::Signed(i) => i.into(),
            gtmpl_ng::NumberKind::Unsigned(u) => u.into(),
            gtmpl_ng::NumberKind::Float(f) => serde_json::Number::from_f64(f).map_or(Value::Null, Value::Number),
        },
        GoValue::Array(items) => Value::Array(items.iter().map(from_go).collect()),
        GoValue::Object(map) | GoValue::Map(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), from_go(v))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gives(template: &str, expect: &str) {
        let data = json!({
            "name": "Foo", "n": 5, "list": ["c", "a", "b"], "empty": "", "nil": null, "on": true,
            "version": "v1.31.2", "map": {"a": 1, "b": {"c": "deep"}}, "f": 2.5, "spaced": " a b ",
        });
        match render(template, &data) {
            Ok(out) => assert_eq!(out, expect, "{template}"),
            Err(e) => panic!("{template}: {e}"),
        }
    }

    // TO-144
    #[test]
    fn renders_sprig_functions() {
        gives("{{ .name | upper }}", "FOO");
        gives("{{ upper .name | lower | quote }}", "\"foo\"");
        gives("{{ max 1 .n 3 }}", "5");
        gives("{{ .list | sortAlpha | join \",\" }}", "a,b,c");
        gives("{{ .nope | default \"x\" }}", "x");
        gives("{{ .empty | default \"x\" }}", "x");
        gives("{{ coalesce .empty .nil .name }}", "Foo");
        gives("{{ ternary \"a\" \"b\" .on }}", "a");
        gives("{{ if semverCompare \">= 1.30.0\" .version }}new{{ end }}", "new");
        gives("{{ if semverCompare \"< 1.30.0\" .version }}old{{ end }}", "");
        gives("{{ (semver .version).Minor }}", "31");
        gives("{{ trimPrefix \"v\" .version }}", "1.31.2");
        gives("{{ .map | toJson }}", "{\"a\":1,\"b\":{\"c\":\"deep\"}}");
        gives("{{ dig \"b\" \"c\" \"none\" .map }}", "deep");
        gives("{{ hasKey .map \"a\" }}", "true");
        gives("{{ list 1 2 3 | last }}", "3");
        gives("{{ replace \"o\" \"0\" .name }}", "F00");
        gives("{{ b64enc .name }}", "Rm9v");
        gives("{{ \"Rm9v\" | b64dec }}", "Foo");
        gives("{{ regexReplaceAll \"[aeiou]\" .name \"-\" }}", "F--");
        gives("{{ printf \"%s-%d\" .name 3 }}", "Foo-3");
        gives("{{ \"a\\nb\" | indent 2 }}", "  a\n  b");
        gives("{{ add 1 2 .n }}", "8");
        gives("{{ div 7 2 }} {{ mod 7 2 }} {{ mul 2 3 }} {{ sub 5 3 }}", "3 1 6 2");
        gives("{{ until 3 | join \"\" }}", "012");
        gives("{{ contains \"oo\" .name }}", "true");
        gives("{{ has \"a\" .list }}", "true");
        gives("{{ sha256sum \"a\" | trunc 8 }}", "ca978112");
        gives("{{ splitList \"-\" \"a-b\" | last }}", "b");
        gives("{{ $p := split \"-\" \"a-b\" }}{{ $p._1 }}", "b");
    }

    // TO-145
    #[test]
    fn prints_no_value_for_a_missing_key() {
        gives("{{ .nope }}", "<no value>");
        gives("{{ if .nope }}x{{ end }}", "");
    }

    // TO-123, TO-144
    #[test]
    fn refuses_bad_syntax_and_functions_that_depend_on_the_moment() {
        for bad in [
            "{{ if }}",
            "{{ now }}",
            "{{ randAlpha 5 }}",
            "{{ env \"HOME\" }}",
            "{{ .a",
        ] {
            assert!(matches!(check(bad), Err(TemplateError::Parse(_))), "{bad}");
        }
    }

    // TO-184, TO-276
    #[test]
    fn naming_templates_refuse_unknown_fields() {
        let data = json!({"cluster": {"name": "foo"}, "random": "abcde"});
        assert_eq!(
            render_strict("{{ .cluster.name }}-{{ .random }}", &data),
            Ok("foo-abcde".to_owned())
        );
        assert!(render_strict("{{ .nope }}-{{ .random }}", &data).is_err());
        assert!(render_strict("{{ .cluster.nope }}", &data).is_err());
        assert!(render_strict("{{ .cluster.name | upper }}", &data).is_err());
    }
}
