//! Health checks: `/healthz`, `/livez` and `/readyz`.

use std::fmt::Write as _;

use http::Response;

use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::request::Query;

/// A check and whether it passed.
type Check = (&'static str, bool);

/// The checks of each of the three paths.
fn checks(which: &str, stopping: bool) -> Option<Vec<Check>> {
    let mut checks = vec![("ping", true), ("log", true)];
    match which {
        "healthz" | "livez" => {}
        "readyz" => checks.push(("shutdown", !stopping)),
        _ => return None,
    }
    Some(checks)
}

/// Answers a health path.
pub(crate) fn answer(path: &str, query: &str, stopping: bool) -> Option<Result<Response<ApiBody>, ApiError>> {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let which = parts.next().unwrap_or("");
    let mut checks = checks(which, stopping)?;
    let query = Query::parse(query);
    if let Some(name) = parts.next() {
        checks.retain(|(known, _)| *known == name);
        if checks.is_empty() {
            return Some(Err(ApiError::no_page()));
        }
        let passed = checks.iter().all(|(_, passed)| *passed);
        return Some(Ok(text(
            passed,
            if passed {
                "ok"
            } else {
                "internal server error: not ready\n"
            },
        )));
    }
    let left_out: Vec<&str> = query.all("exclude").filter(|e| !e.is_empty()).collect();
    let passed = checks.iter().all(|(name, passed)| *passed || left_out.contains(name));
    if passed && query.flag("verbose") != Some(true) {
        return Some(Ok(text(true, "ok")));
    }
    Some(Ok(text(passed, &report(which, &checks, &left_out, passed))))
}

fn text(passed: bool, words: &str) -> Response<ApiBody> {
    let code = if passed { 200 } else { 500 };
    let mut response = body::with_type(code, "text/plain; charset=utf-8", words.to_owned());
    let headers = response.headers_mut();
    headers.insert(
        http::header::X_CONTENT_TYPE_OPTIONS,
        http::HeaderValue::from_static("nosniff"),
    );
    response
}

fn report(which: &str, checks: &[Check], left_out: &[&str], passed: bool) -> String {
    let mut out = String::new();
    for (name, passed) in checks {
        if left_out.contains(name) {
            let _ = writeln!(out, "[+]{name} excluded: ok");
            continue;
        }
        let (sign, word) = if *passed {
            ('+', "ok")
        } else {
            ('-', "failed: reason withheld")
        };
        let _ = writeln!(out, "[{sign}]{name} {word}");
    }
    let unknown: Vec<String> = left_out
        .iter()
        .filter(|e| !checks.iter().any(|(name, _)| name == *e))
        .map(|e| format!("\"{e}\""))
        .collect();
    if !unknown.is_empty() {
        let _ = writeln!(
            out,
            "warn: some health checks cannot be excluded: no matches for {}",
            unknown.join(", ")
        );
    }
    out.push_str(which);
    out.push_str(if passed { " check passed\n" } else { " check failed\n" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readiness_ends_with_a_shutdown() {
        let check = |path: &str, stopping: bool, expect: Option<u16>| {
            let code = answer(path, "", stopping)
                .map(|answer| answer.map_or_else(|error| error.code, |response| response.status().as_u16()));
            assert_eq!(code, expect, "{path}");
        };
        check("/healthz", true, Some(200));
        check("/livez/ping", true, Some(200));
        check("/readyz", false, Some(200));
        check("/readyz", true, Some(500));
        check("/readyz/ping", true, Some(200));
        check("/readyz/nothing", false, Some(404));
        check("/healthz/", false, Some(404));
        check("/version", false, None);
        let checks = [("ping", true), ("shutdown", false)];
        assert_eq!(
            report("readyz", &checks, &["ping", "x"], false),
            "[+]ping excluded: ok\n[-]shutdown failed: reason withheld\nwarn: some health checks cannot be excluded: no matches for \"x\"\nreadyz check failed\n"
        );
    }
}
