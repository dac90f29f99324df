//! Results as JUnit XML, which CI systems read.

use std::fmt::Write as _;

use super::run::{CaseResult, SuiteResult};

/// A document with one suite for each test.
pub fn document(suites: &[SuiteResult]) -> String {
    let sum = |count: fn(&SuiteResult) -> usize| suites.iter().map(count).sum::<usize>();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a text cannot fail.
    let _ = writeln!(
        out,
        "<testsuites tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        sum(|suite| suite.cases.len()),
        sum(SuiteResult::failed),
        sum(SuiteResult::broken)
    );
    for suite in suites {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" file=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
            escaped(&suite.name),
            escaped(&suite.file),
            suite.cases.len(),
            suite.failed(),
            suite.broken()
        );
        for case in &suite.cases {
            write_case(&mut out, suite, case);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn write_case(out: &mut String, suite: &SuiteResult, case: &CaseResult) {
    let (name, class) = (escaped(&case.name), escaped(&suite.name));
    let Some(first) = case.failures.first() else {
        let _ = writeln!(out, "    <testcase name=\"{name}\" classname=\"{class}\"/>");
        return;
    };
    let tag = if case.is_broken { "error" } else { "failure" };
    let summary = escaped(first.lines().next().unwrap_or_default());
    let text = escaped(&case.failures.join("\n"));
    let _ = writeln!(
        out,
        "    <testcase name=\"{name}\" classname=\"{class}\">\n      <{tag} message=\"{summary}\">{text}</{tag}>\n    </testcase>"
    );
}

/// A text for XML 1.0, which has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_messages_are_escaped() {
        let case = |name: &str, failures: &[&str], is_broken: bool| CaseResult {
            name: name.to_owned(),
            failures: failures.iter().map(|text| (*text).to_owned()).collect(),
            is_broken,
            ..CaseResult::default()
        };
        let suite = SuiteResult {
            file: "a&b.yaml".to_owned(),
            name: "<suite>".to_owned(),
            cases: vec![
                case("good", &[], false),
                case("\"bad\"", &["x <no value>\nmore\u{1b}", "second"], false),
                case("broken", &["why"], true),
            ],
        };
        assert_eq!(
            document(&[suite]),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites tests=\"3\" failures=\"1\" errors=\"1\">\n  \
               <testsuite name=\"&lt;suite&gt;\" file=\"a&amp;b.yaml\" tests=\"3\" failures=\"1\" errors=\"1\">\n    \
                 <testcase name=\"good\" classname=\"&lt;suite&gt;\"/>\n    \
                 <testcase name=\"&quot;bad&quot;\" classname=\"&lt;suite&gt;\">\n      \
                   <failure message=\"x &lt;no value&gt;\">x &lt;no value&gt;&#10;more\u{fffd}&#10;second</failure>\n    \
                 </testcase>\n    \
                 <testcase name=\"broken\" classname=\"&lt;suite&gt;\">\n      \
                   <error message=\"why\">why</error>\n    \
                 </testcase>\n  \
               </testsuite>\n\
             </testsuites>\n"
        );
    }
}
