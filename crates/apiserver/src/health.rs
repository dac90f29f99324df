//! Whether the server is well, for those who ask `/healthz`, `/livez` and `/readyz`.

use std::fmt::Write as _;

use http::Response;

use crate::body::{self, ApiBody};

/// A check and whether it passed.
type Check = (&'static str, bool);

/// Answers a path of health, if it is one.
pub(crate) fn answer(path: &str, verbose: bool, stopping: bool) -> Option<Response<ApiBody>> {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let which = parts.next().filter(|p| matches!(*p, "healthz" | "livez" | "readyz"))?;
    let mut checks = vec![("ping", true)];
    if which == "readyz" {
        checks.push(("shutdown", !stopping));
    }
    if let Some(name) = parts.next() {
        checks.retain(|(known, _)| *known == name);
        if checks.is_empty() {
            return None;
        }
    }
    let passed = checks.iter().all(|(_, passed)| *passed);
    let text = if passed && !verbose {
        "ok".to_owned()
    } else {
        report(which, &checks, passed)
    };
    let code = if passed { 200 } else { 500 };
    Some(body::with_type(code, "text/plain; charset=utf-8", text))
}

fn report(which: &str, checks: &[Check], passed: bool) -> String {
    let mut out = String::new();
    for (name, passed) in checks {
        let (sign, word) = if *passed { ('+', "ok") } else { ('-', "failed") };
        let _ = writeln!(out, "[{sign}]{name} {word}");
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
            let code = answer(path, false, stopping).map(|response| response.status().as_u16());
            assert_eq!(code, expect, "{path}");
        };
        check("/healthz", true, Some(200));
        check("/livez/ping", true, Some(200));
        check("/readyz", false, Some(200));
        check("/readyz", true, Some(500));
        check("/readyz/ping", true, Some(200));
        check("/readyz/nothing", false, None);
        check("/version", false, None);
        let checks = [("ping", true), ("shutdown", false)];
        assert_eq!(
            report("readyz", &checks, false),
            "[+]ping ok\n[-]shutdown failed\nreadyz check failed\n"
        );
    }
}
