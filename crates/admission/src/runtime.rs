//! ExtensionConfigs.

use serde_json::{Value, json};
use windlass_gocompat::quote::quoted;
use windlass_objects::names::{NameRule, label_problems};
use windlass_schema::FieldErrors;

use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Completes an ExtensionConfig: it is for all namespaces, and a Service has the port of HTTPS.
pub fn complete_config(_: &Change<'_>, config: &mut Value) -> Result<Verdict, Unread> {
    if Field::of(config).child("spec.namespaceSelector").value().is_null() {
        defaults::set(config, "spec", "namespaceSelector", json!({}));
    }
    if Field::of(config).child("spec.clientConfig.service").is_set() {
        defaults::default(config, "spec.clientConfig.service", "port", 443);
    }
    Ok(Verdict::default())
}

/// Checks an ExtensionConfig: its name, and that its address is exactly one, and one of HTTPS.
pub fn check_config(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let name = Field::of(change.new).child("metadata.name");
    let problems = label_problems(name.text());
    if !problems.is_empty() {
        let words = format!("ExtensionConfig name should be a valid DNS1123 label name: {problems:?}");
        errors.add(|| name.invalid(words));
    }
    let spec = Field::of(change.new).child("spec");
    let client = spec.child("clientConfig");
    let (url, service) = (client.child("url"), client.child("service"));
    match (url.is_set(), service.is_set()) {
        (false, false) => errors.add(|| client.required("either url or service must be defined")),
        (true, true) => errors.add(|| client.forbidden("only one of url or service can be defined")),
        _ => {}
    }
    if url.is_set() {
        check_url(&url, &mut errors);
    }
    if service.is_set() {
        check_service(&service, &mut errors);
    }
    let selector = spec.child("namespaceSelector");
    if selector.value().is_null() {
        errors.add(|| selector.required("must be defined"));
    } else {
        common::selector(&selector, &mut errors);
    }
    Ok(errors.into())
}

fn check_url(url: &Field<'_>, errors: &mut FieldErrors) {
    let text = url.text();
    match scheme(text) {
        None => errors.add(|| {
            let why = format!("parse {}: invalid URI for request", quoted(text));
            url.invalid(format!("must be a valid URL, e.g. https://example.com: {why}"))
        }),
        // The API does not allow them. User information would be shown where the address is.
        Some("https") if text.contains(['@', '?', '#']) => {
            errors.add(|| url.forbidden("a user, a query and a fragment are not allowed"));
        }
        Some("https") => {}
        Some(_) => errors.add(|| url.invalid("'https' is the only allowed URL scheme, e.g. https://example.com")),
    }
}

/// The scheme of an address, empty for a path; none if it is no address.
fn scheme(text: &str) -> Option<&str> {
    if text.starts_with('/') {
        return Some("");
    }
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let has_host = !rest.is_empty() && !rest.starts_with('/');
    let is_clean = rest.chars().all(|c| !c.is_whitespace() && !c.is_control());
    (is_scheme && has_host && is_clean).then_some(scheme)
}

fn check_service(service: &Field<'_>, errors: &mut FieldErrors) {
    for (part, rule) in [("name", NameRule::Label1035), ("namespace", NameRule::Label)] {
        let part = service.child(part);
        if part.text().is_empty() {
            errors.add(|| part.required("must not be empty"));
        }
        for problem in rule.problems(part.text(), false) {
            errors.add(|| part.invalid(problem));
        }
    }
    let path = service.child("path");
    if path.is_set() && !path.text().is_empty() && !path.text().starts_with('/') {
        errors.add(|| path.invalid("must start with \"/\" to be a valid URL path"));
    }
    if path.text().contains(['?', '#']) {
        errors.add(|| path.invalid("must be a valid URL path e.g. /path/to/hook: it has no query and no fragment"));
    }
    let port = service.child("port");
    if port.number().is_some_and(|number| !(1..=65535).contains(&number)) {
        errors.add(|| port.invalid("must be between 1 and 65535, inclusive"));
    }
}
