//! What Go accepts, what it means there, and what it refuses in which words. Tried with Go's package regexp.

use regex::Regex;

use super::*;

fn compiled(pattern: &str) -> Regex {
    let text = translate(pattern, Groups::Plain).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    Regex::new(&text).unwrap_or_else(|error| panic!("{pattern} as {text}: {error}"))
}

fn check(pattern: &str, fits: &[&str], not: &[&str]) {
    let regex = compiled(pattern);
    for text in fits {
        assert!(regex.is_match(text), "{pattern} {text}");
    }
    for text in not {
        assert!(!regex.is_match(text), "{pattern} {text}");
    }
}

#[test]
fn classes_are_about_ascii() {
    check(r"^\d+$", &["1"], &["١", "x"]);
    check(r"^[\w.-]+$", &["a_B.9-"], &["é", " "]);
    check(r"^\W$", &["é", " "], &["a"]);
    check(r"^[^\s]+$", &["a"], &["a b"]);
    check(r"^a\bé$", &["aé"], &[]);
    check(r"^é\Bé$", &["éé"], &[]);
}

#[test]
fn brackets_do_not_nest() {
    check(r"^[a[b]+$", &["a[b"], &["]"]);
    check(r"^[]a]+$", &["]a"], &["b"]);
    check(r"^[^]a]+$", &["b"], &["]", "a"]);
    check(r"^[a&&b]+$", &["a&b"], &["c"]);
    check(r"^[a~~b]+$", &["a~b"], &["c"]);
    check(r"^[[:alpha:]]+$", &["a"], &["1"]);
    check(r"^[[:^digit:]x]+$", &["a"], &["1"]);
    check(r"^[[:alpha]+$", &["[:ah"], &["]"]);
}

#[test]
fn a_dash_beside_a_class_is_a_dash() {
    check(r"^[\w-.]+$", &["a-b.c"], &["a,b"]);
    check(r"^[\w-\.]+$", &["a-."], &["/"]);
    check(r"^[\w-/:]+$", &["a-/:"], &["."]);
    check(r"^[.\w-@]+$", &["a@b-c"], &["?"]);
    check(r"^[\pL-z]$", &["é", "-", "z"], &["1"]);
    check(r"^[a-z\s-_]+$", &["a _-"], &["A%1"]);
    check(r"^[\s-a]+$", &[" a-"], &["A1%"]);
    check(r"^[\w-~]+$", &["a~-"], &["{|}"]);
    check(r"^[\w-z]+$", &["a-"], &["`"]);
    check(r"^[!--]$", &["!", "\"", ",", "-"], &["."]);
    check(r"^[+--/]$", &["+", ",", "-", "/"], &["."]);
    check(r"^[a-]$", &["a", "-"], &["b"]);
    check(r"^[-a]$", &["a", "-"], &["b"]);
}

#[test]
fn a_brace_that_repeats_nothing_is_a_brace() {
    check(r"^{.*}$", &["{}", "{a}"], &["a"]);
    check(r"^\${[A-Z]+}$", &["${A}"], &["A"]);
    check(r"^[a-z]{,3}$", &["a{,3}"], &["abc"]);
    check(r"^x{a}$", &["x{a}"], &["xa"]);
    check(r"^a{$", &["a{"], &["a"]);
    check(r"^a{01}$", &["a{01}"], &["a"]);
    check(r"^a{2}$", &["aa"], &["a"]);
    check(r"^a{2,}$", &["aa", "aaa"], &["a"]);
    check(r"^(a{1,2}?b){2}$", &["aabab"], &["ab"]);
    check(r"^a{0}$", &[""], &["a"]);
    check(r"^^*a$$", &["a"], &["b"]);
}

#[test]
fn escapes_are_those_of_go() {
    check(r"^\012\123[\0]$", &["\nS\0"], &["\n"]);
    check(r"^\x41\x{1F600}\a\v$", &["A\u{1F600}\u{7}\u{b}"], &["A"]);
    check(r"^\p{Greek}\p{^Greek}\P{Greek}\P{^Greek}\pN$", &["αaaα1"], &["aaaa1"]);
    check(r"^\Qa.b\E+$", &["a.b", "a.bb"], &["axb"]);
    check(r"^\Q{[$", &[], &["{["]);
    check(r"^\_\-\ \#$", &["_- #"], &[]);
    check(r"^\x{D800}$", &[], &["a"]);
    check(r"^[\x{D800}]$", &[], &["a"]);
    check(r"^[^\x{D800}-\x{DFFF}]$", &["a"], &[]);
    check(r"\Aa\z", &["a"], &["a\n"]);
}

#[test]
fn groups_have_names_and_flags() {
    check(
        r"^(?P<n>a)(?<m>b)(?:c)(?i:D)(?i)E(?-i)f(?)$",
        &["abcdef", "abcDEf"],
        &["abcdeF"],
    );
    check(r"^(a|)$", &["a", ""], &["b"]);
    check(r"(?ms)^a.b$", &["x\na\nb\ny"], &["x"]);
    let kept = Regex::new(&translate(r"(?P<n>a)(b)", Groups::Kept).unwrap()).unwrap();
    let found = kept.captures("ab").unwrap();
    assert_eq!((&found["n"], &found[2]), ("a", "b"));
    assert_eq!(compiled(r"(?P<n>a)(b)").captures_len(), 1);
}

#[test]
fn what_go_does_not_know_is_refused_in_its_words() {
    let check = |pattern: &str, why: &str| {
        let error = translate(pattern, Groups::Plain).expect_err(pattern);
        assert_eq!(error.to_string(), format!("error parsing regexp: {why}"), "{pattern}");
    };
    check("(a", "missing closing ): `(a`");
    check("(?i", "invalid or unsupported Perl syntax: `(?i`");
    check("a)", "unexpected ): `a)`");
    check("a[b", "missing closing ]: `[b`");
    check("a[", "missing closing ]: `[`");
    check("*", "missing argument to repetition operator: `*`");
    check("(*?)", "missing argument to repetition operator: `*?`");
    check("a|{2}", "missing argument to repetition operator: `{2}`");
    check("x**", "invalid nested repetition operator: `**`");
    check("a++", "invalid nested repetition operator: `++`");
    check("a{2}{3}", "invalid nested repetition operator: `{2}{3}`");
    check("a*?*", "invalid nested repetition operator: `*?*`");
    check("a{1001}", "invalid repeat count: `{1001}`");
    check("a{3,2}", "invalid repeat count: `{3,2}`");
    check("((a{100}){10}){2}", "invalid repeat count: `{2}`");
    check("(?!a)", "invalid or unsupported Perl syntax: `(?!`");
    check("(?x)a", "invalid or unsupported Perl syntax: `(?x`");
    check("(?u)a", "invalid or unsupported Perl syntax: `(?u`");
    check("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`");
    check("(?<=a)", "invalid named capture: `(?<=a)`");
    check("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`");
    check(r"\C", r"invalid escape sequence: `\C`");
    check(r"\u0041", r"invalid escape sequence: `\u`");
    check(r"\1", r"invalid escape sequence: `\1`");
    check(r"[\b]", r"invalid escape sequence: `\b`");
    check(r"[a-\d]", r"invalid escape sequence: `\d`");
    check(r"\<a\>é\é", r"invalid escape sequence: `\é`");
    check(r"\x{110000}", r"invalid escape sequence: `\x{110000`");
    check(r"\x{4g}", r"invalid escape sequence: `\x{4g`");
    check(r"\x{", r"invalid escape sequence: `\x{`");
    check(r"\x{}", r"invalid escape sequence: `\x{}`");
    check("a\\", "trailing backslash at end of expression: ``");
    check("[[:foo:]]", "invalid character class range: `[:foo:]`");
    check("[z-a]", "invalid character class range: `z-a`");
    check("[a--b]", "invalid character class range: `a--`");
    check(r"\p{sc=Greek}", r"invalid character class range: `\p{sc=Greek}`");
    check(r"[\p{}]", r"invalid character class range: `\p{}`");
}

#[test]
fn nothing_makes_it_panic_or_slow() {
    for unit in [
        "(?P<", "[[:", "{1,", "\\Q", "\\x{", "[^]", "(?i", "a{2}|", "é", "\\", "[a-", "\\p{^",
    ] {
        let text = unit.repeat(20_000);
        let _ = translate(&text, Groups::Kept);
        for end in (0..unit.len()).filter(|end| unit.is_char_boundary(*end)) {
            let _ = translate(&unit[..end], Groups::Plain);
        }
    }
}
