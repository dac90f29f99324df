//! Validation of webhook configurations. Pure.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::Condition;
use windlass_schema::{FieldError, Kind};

use windlass_objects::metadata::{strings, text};
use windlass_objects::names::{NameRule, qualified_name_problems, subdomain_problems};

/// The largest number of match conditions of a webhook.
const MAX_CONDITIONS: usize = 64;
/// The expected form of a URL.
const FORM: &str = "; desired format: https://host[/path]";

type Errors = windlass_schema::FieldErrors;

/// Errors of a configuration. An update does not check unchanged parts again, as they may be older than the rules.
pub(crate) fn errors(mutating: bool, object: &Value, old: Option<&Value>) -> Errors {
    let mut out = Errors::new();
    let hooks = object.get("webhooks");
    if old.is_some_and(|old| old.get("webhooks") == hooks) {
        return out;
    }
    let mut names = BTreeSet::new();
    for (i, hook) in items(hooks).iter().enumerate() {
        let at = format!("webhooks[{i}]");
        webhook(hook, &at, &mut out);
        if mutating {
            one_of(hook, "reinvocationPolicy", &at, &["IfNeeded", "Never"], &mut out);
        }
        let name = text(hook, "name");
        if !name.is_empty() && !names.insert(name) {
            out.push(FieldError::duplicate(format!("{at}.name"), name.into()));
        }
    }
    out
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn webhook(hook: &Value, at: &str, out: &mut Errors) {
    name(text(hook, "name"), &format!("{at}.name"), out);
    for (i, one) in items(hook.get("rules")).iter().enumerate() {
        rule(one, &format!("{at}.rules[{i}]"), out);
    }
    one_of(hook, "failurePolicy", at, &["Fail", "Ignore"], out);
    one_of(hook, "matchPolicy", at, &["Equivalent", "Exact"], out);
    if text(hook, "sideEffects").is_empty() {
        out.push(FieldError::required(
            format!("{at}.sideEffects"),
            "must specify one of None, NoneOnDryRun",
        ));
    }
    one_of(hook, "sideEffects", at, &["None", "NoneOnDryRun"], out);
    if let Some(seconds) = hook.get("timeoutSeconds").and_then(Value::as_i64)
        && !(1..=30).contains(&seconds)
    {
        out.push(FieldError::invalid(
            format!("{at}.timeoutSeconds"),
            seconds.into(),
            "the timeout value must be between 1 and 30 seconds",
        ));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(found) = hook.get(key) {
            windlass_objects::selector::errors(found, &format!("{at}.{key}"), out);
        }
    }
    client(
        hook.get("clientConfig").unwrap_or(&Value::Null),
        false,
        &format!("{at}.clientConfig"),
        out,
    );
    conditions(
        items(hook.get("matchConditions")),
        &format!("{at}.matchConditions"),
        out,
    );
    versions(
        hook.get("admissionReviewVersions"),
        &format!("{at}.admissionReviewVersions"),
        out,
    );
}

fn name(name: &str, at: &str, out: &mut Errors) {
    if name.is_empty() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let problems = subdomain_problems(name);
    if !problems.is_empty() {
        out.push(FieldError::invalid(at, name.into(), problems.join(",")));
    } else if name.split('.').count() < 3 {
        out.push(FieldError::invalid(
            at,
            name.into(),
            "should be a domain with at least three segments separated by dots",
        ));
    }
}

/// Checks that a field is absent or has one of these values.
fn one_of(object: &Value, key: &str, at: &str, allowed: &[&str], out: &mut Errors) {
    let value = text(object, key);
    if !value.is_empty() && !allowed.contains(&value) {
        let allowed: Vec<String> = allowed.iter().map(|a| (*a).to_owned()).collect();
        out.push(FieldError::not_supported(format!("{at}.{key}"), value.into(), &allowed));
    }
}

fn rule(rule: &Value, at: &str, out: &mut Errors) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let operations = strings(rule.get("operations"));
    alone(rule, "operations", at, "operations", out);
    for (i, operation) in operations.iter().enumerate() {
        if !OPERATIONS.contains(operation) {
            out.push(FieldError::not_supported(
                format!("{at}.operations[{i}]"),
                (*operation).into(),
                &OPERATIONS.map(str::to_owned),
            ));
        }
    }
    alone(rule, "apiGroups", at, "API groups", out);
    alone(rule, "apiVersions", at, "API versions", out);
    for (i, version) in strings(rule.get("apiVersions")).iter().enumerate() {
        if version.is_empty() {
            out.push(FieldError::required(format!("{at}.apiVersions[{i}]"), ""));
        }
    }
    resources(&strings(rule.get("resources")), &format!("{at}.resources"), out);
    one_of(rule, "scope", at, &["*", "Cluster", "Namespaced"], out);
}

/// Checks that a list is not empty, and that a `*` is its only element.
fn alone(rule: &Value, key: &str, at: &str, what: &str, out: &mut Errors) {
    let list = strings(rule.get(key));
    if list.is_empty() {
        out.push(FieldError::required(format!("{at}.{key}"), ""));
    } else if list.len() > 1 && list.contains(&"*") {
        out.push(FieldError::invalid(
            format!("{at}.{key}"),
            list.into(),
            format!("if '*' is present, must not specify other {what}"),
        ));
    }
}

fn resources(list: &[&str], at: &str, out: &mut Errors) {
    if list.is_empty() {
        out.push(FieldError::required(at, ""));
    }
    let mut all_parts_of = BTreeSet::new();
    let mut part_of_all = BTreeSet::new();
    for (i, named) in list.iter().enumerate() {
        if named.is_empty() {
            out.push(FieldError::required(format!("{at}[{i}]"), ""));
            continue;
        }
        let Some((resource, part)) = named.split_once('/') else {
            continue;
        };
        for (there, pattern) in [
            (all_parts_of.contains(resource), format!("{resource}/*")),
            (part_of_all.contains(part), format!("*/{part}")),
        ] {
            if there {
                out.push(FieldError::invalid(
                    format!("{at}[{i}]"),
                    (*named).into(),
                    format!("if '{pattern}' is present, must not specify {named}"),
                ));
            }
        }
        if part == "*" {
            all_parts_of.insert(resource);
        }
        if resource == "*" {
            part_of_all.insert(part);
        }
    }
    let shown = || Value::from(list.to_vec());
    if list.len() > 1 && list.contains(&"*/*") {
        out.push(FieldError::invalid(
            at,
            shown(),
            "if '*/*' is present, must not specify other resources",
        ));
    }
    // Only the last element without a subresource counts.
    let plain = list
        .iter()
        .rev()
        .find(|named| !named.is_empty() && !named.contains('/'));
    if list.contains(&"*") && plain.is_some_and(|named| *named != "*") {
        out.push(FieldError::invalid(
            at,
            shown(),
            "if '*' is present, must not specify other resources without subresources",
        ));
    }
}

/// Errors of a `clientConfig`.
pub(crate) fn client(client: &Value, of_definition: bool, at: &str, out: &mut Errors) {
    let there = |key: &str| client.get(key).filter(|v| !v.is_null());
    match (there("url").and_then(Value::as_str), there("service")) {
        (Some(address), None) => url(address, &format!("{at}.url"), out),
        (None, Some(found)) => service(found, of_definition, &format!("{at}.service"), out),
        _ => out.push(FieldError::required(at, "exactly one of url or service is required")),
    }
}

fn url(url: &str, at: &str, out: &mut Errors) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if !scheme.eq_ignore_ascii_case("https") {
        out.push(FieldError::invalid(
            at,
            scheme.into(),
            format!("'https' is the only allowed URL scheme{FORM}"),
        ));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = rest.split('/').next().unwrap_or("");
    let (user, host) = place
        .rsplit_once('@')
        .map_or((None, place), |(user, host)| (Some(user), host));
    if host.is_empty() || scheme.is_empty() {
        out.push(FieldError::invalid(
            at,
            "".into(),
            format!("host must be specified{FORM}"),
        ));
    } else if format!("https://{host}/").parse::<http::Uri>().is_err() {
        out.push(FieldError::required(
            at,
            format!("url must be a valid URL: {}{FORM}", unreadable(url, host)),
        ));
    }
    for (found, words) in [
        (user, "user information is not permitted in the URL"),
        (
            Some(fragment).filter(|f| !f.is_empty()),
            "fragments are not permitted in the URL",
        ),
        (
            Some(query).filter(|q| !q.is_empty()),
            "query parameters are not permitted in the URL",
        ),
    ] {
        if let Some(found) = found {
            out.push(FieldError::invalid(at, found.into(), words));
        }
    }
}

/// Why a URL with a host cannot be parsed.
fn unreadable(url: &str, host: &str) -> String {
    let odd = |c: &char| c.is_ascii_control() || " \"<>\\^`{|}".contains(*c);
    let odd = host.chars().find(odd).unwrap_or(' ');
    format!("parse {url:?}: invalid character {:?} in host name", odd.to_string())
}

fn service(service: &Value, of_definition: bool, at: &str, out: &mut Errors) {
    for key in ["name", "namespace"] {
        if text(service, key).is_empty() {
            // For definitions, kube-apiserver accepts either field in place of the other.
            let named = match (key, of_definition) {
                ("name", true) => "namespace",
                ("namespace", true) => "name",
                _ => key,
            };
            out.push(FieldError::required(format!("{at}.{named}"), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        out.push(FieldError::invalid(
            format!("{at}.port"),
            port.into(),
            "port is not valid: must be between 1 and 65535, inclusive",
        ));
    }
    let path = text(service, "path");
    if matches!(path, "" | "/") {
        return;
    }
    let mut wrong = |words: String| out.push(FieldError::invalid(format!("{at}.path"), path.into(), words));
    if path == "//" {
        wrong("segment[0] may not be empty".to_owned());
        return;
    }
    if !path.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let steps = path.get(1..).unwrap_or("");
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            wrong(format!("segment[{i}] may not be empty"));
            continue;
        }
        for problem in subdomain_problems(step) {
            wrong(format!("segment[{i}]: {problem}"));
        }
    }
}

fn conditions(conditions: &[Value], at: &str, out: &mut Errors) {
    if conditions.len() > MAX_CONDITIONS {
        out.push(FieldError::new(
            at,
            Kind::TooMany,
            Some(conditions.len().into()),
            format!("must have at most {MAX_CONDITIONS} items"),
        ));
    }
    let mut names = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let at = format!("{at}[{i}]");
        let expression = text(condition, "expression").trim();
        if expression.is_empty() {
            out.push(FieldError::required(format!("{at}.expression"), ""));
        } else if let Err(why) = Condition::compile(expression) {
            out.push(FieldError::invalid(format!("{at}.expression"), expression.into(), why));
        }
        let name = text(condition, "name");
        if name.is_empty() {
            out.push(FieldError::required(format!("{at}.name"), ""));
            continue;
        }
        for problem in qualified_name_problems(name) {
            out.push(FieldError::invalid(format!("{at}.name"), name.into(), problem));
        }
        if !names.insert(name) {
            out.push(FieldError::duplicate(format!("{at}.name"), name.into()));
        }
    }
}

fn versions(versions: Option<&Value>, at: &str, out: &mut Errors) {
    const KNOWN: [&str; 2] = ["v1", "v1beta1"];
    let list = strings(versions);
    if list.is_empty() {
        out.push(FieldError::required(at, "must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, version) in list.iter().enumerate() {
        if !seen.insert(*version) {
            out.push(FieldError::invalid(
                format!("{at}[{i}]"),
                (*version).into(),
                "duplicate version",
            ));
            continue;
        }
        for problem in NameRule::Label1035.problems(version, false) {
            out.push(FieldError::invalid(format!("{at}[{i}]"), (*version).into(), problem));
        }
    }
    if !list.iter().any(|v| KNOWN.contains(v)) {
        out.push(FieldError::invalid(
            at,
            list.into(),
            "must include at least one of v1, v1beta1",
        ));
    }
}

#[cfg(test)]
mod tests;
