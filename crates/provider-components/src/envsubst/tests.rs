use proptest::prelude::*;

use super::*;

const VALUES: &[(&str, &str)] = &[
    ("A", "apple"),
    ("B", "BANANA split"),
    ("EMPTY", ""),
    ("FILE", "docs/guide.de.md"),
    ("ROLE", "arn:aws:iam::1:role/x"),
    ("NOVA", "élan Ü"),
    ("STAR", "*"),
];

fn lookup(name: &str) -> Option<String> {
    let found = VALUES.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| (*value).to_owned())
}

#[track_caller]
fn check(text: &str, expect: &str) {
    let template = Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(template.render(lookup).unwrap(), expect, "{text}");
}

#[track_caller]
fn refuse(text: &str, expect: Problem) {
    match Template::parse(text) {
        Ok(template) => panic!("{text} was read: {template:?}"),
        Err(error) => assert_eq!(error.problem, expect, "{text}: {error}"),
    }
}

// OP-204
#[test]
fn values_stand_in_place_of_names() {
    check("x ${A} y ${A}${A}", "x apple y appleapple");
    check("${EMPTY}", "");
    check("${ A } ${A } ${\tA\n}", "apple apple apple");
    check("$A $ ${A}$", "$A $ apple$");
    check("a {A} $(A) }", "a {A} $(A) }");
    check("", "");
}

// OP-204
#[test]
fn two_dollars_are_one() {
    check("$${A}", "${A}");
    check("$$${A}", "$apple");
    check("$$$${A}", "$${A}");
    check("$$(A) costs 5$$", "$(A) costs 5$");
    check("$${ A }", "${A}");
    check("$${A:=${A}}", "${A:=apple}");
}

// OP-204
#[test]
fn defaults_stand_in_for_what_is_empty_or_not_set() {
    check("${A:=d}${A:-d}${A=d}${A:?d}${A:+d}", "appleappleappleappleapple");
    check("${X:=d} ${X:-d} ${X=d} ${X:?d} ${X:+d} ${EMPTY:=d}", "d d d d d d");
    check("[${EMPTY:=}]", "[]");
    check("${X:=a b:c=\"\"}", "a b:c=\"\"");
    check("${X:=two\nlines}", "two\nlines");
    check("${X:=${A}}", "apple");
    check("${X:=<${A}-${Y:=${B,,}}>}", "<apple-banana split>");
    check("[${X:=${Y}}]", "[]");
    check("${X:=a$$b}", "a$$b");
    check("${X:=a{b}c", "a{bc");
}

// OP-204
#[test]
fn case_changes() {
    check("${A^} ${A^^} ${B,} ${B,,}", "Apple APPLE bANANA split banana split");
    check("${NOVA^} ${NOVA^^} ${NOVA,,}", "Élan Ü ÉLAN Ü élan ü");
    check("${EMPTY^}${EMPTY,,}", "");
    // clusterctl accepts this and does nothing.
    check("${A,^}", "apple");
}

// OP-204
#[test]
fn lengths_and_parts_count_bytes() {
    check("${#A} ${#EMPTY} ${#NOVA}", "5 0 8");
    check("${A:1} ${A:1:2} ${A:0:99} [${A:9}]", "pple pp apple []");
    check("${A:-2}", "apple");
    check("${A: -2}", "apple");
    check("${A:+3}", "apple");
    check("${A:x} ${A:1:x}", "apple apple");
    check("${X:1:2}|", "|");
    check("${A:1::2}", "pp");
    check("${A:0:-1} ${A:3:-4}|", "appl |");
    check("${A:99999999999999999999}", "apple");
    // Characters are not cut.
    check("${NOVA:1:2}", "él");
}

// OP-204
#[test]
fn beginnings_and_ends_that_fit_are_cut_off() {
    check("${FILE#*/} ${FILE##*.}", "guide.de.md md");
    check("${FILE%.*} ${FILE%%.*}", "docs/guide.de docs/guide");
    check("${A#x} ${A#apple}| ${A#a?p} ${A#[a-c]}", "apple | le pple");
    check("${A#[^b-z]} ${A#[b-z]} ${A##[a-z]*}|", "pple apple |");
    check("${A#[} ${A#[]} ${A#\\}", "apple apple apple");
    check("${FILE#docs\\/}", "guide.de.md");
    check("${A#${STAR}}|${A##${STAR}}|", "pple||");
    check("${NOVA%?} ${NOVA#é}", "élan  lan Ü");
    check("${A%le} ${A%%*p*}|", "app |");
    // The pattern is read backwards there.
    check("${A%[a-z]}", "apple");
}

// OP-204
#[test]
fn replacements() {
    check("${A/p/b} ${A//p/b} ${A//p/}", "abple abble ale");
    check("${A/#ap/b} ${A/#pp/b} ${A/%le/b} ${A/%p/b}", "bple apple appb apple");
    check("${FILE/\\//-} ${FILE//./\\/}", "docs-guide.de.md docs/guide/de/md");
    check("${A/p/$$} ${A/p/\\\\}", "a$ple a\\ple");
    check("${A/${A}/x}|${A//${EMPTY}/-}", "x|-a-p-p-l-e-");
    check("${A/p//x}", "axple");
    check("${A/#ap/}", "apple");
    // The AWS provider uses this for an optional annotation.
    check("${ROLE/#arn/eks/role-arn: arn}", "eks/role-arn: arn:aws:iam::1:role/x");
    check("${EMPTY/#arn/eks/role-arn: arn}", "");
}

#[test]
fn what_is_no_expression_is_refused_with_its_line() {
    refuse("${}", Problem::Name);
    refuse("${", Problem::Name);
    refuse("${-}", Problem::Name);
    refuse("${ A:=x }", Problem::Name);
    refuse("${#}", Problem::Name);
    refuse("${##A}", Problem::Name);
    refuse("${A", Problem::Brace);
    refuse("${A-x}", Problem::Brace);
    refuse("${A+x}", Problem::Brace);
    refuse("${A?x}", Problem::Brace);
    refuse("${A^^^}", Problem::Brace);
    refuse("${A#x${A}}", Problem::Brace);
    refuse("${A:=x", Problem::Argument);
    refuse("${A:=", Problem::Argument);
    refuse("${A:}", Problem::Argument);
    refuse("${A#}", Problem::Argument);
    refuse("${A//}", Problem::Replacement);
    refuse("${A/x}\n/", Problem::Replacement);
    refuse(&"${A:=".repeat(100_000), Problem::Depth);
    let error = Template::parse("a: ${A}\nb: ${B:=${\n").unwrap_err();
    assert_eq!(error.line, 2);
    assert_eq!(
        error.to_string(),
        "line 2: \"${B:=${\" is no variable: a name of letters, digits and underscores is missing; a text \"${\" that is not \
         meant as one is written \"$${\""
    );
}

#[track_caller]
fn variables(text: &str, expect: &[(&str, Option<&str>)]) {
    let found = Template::parse(text).unwrap().variables();
    let found: Vec<_> = found
        .iter()
        .map(|(name, default)| (name.as_str(), default.as_deref()))
        .collect();
    assert_eq!(found, expect, "{text}");
}

// OP-141
#[test]
fn variables_are_listed_with_what_clusterctl_takes_for_their_defaults() {
    variables("${B} ${A:=x} $${C}", &[("A", Some("x")), ("B", None)]);
    variables("${A:=} ${B^^} ${#C}", &[("A", None), ("B", None), ("C", None)]);
    variables(
        "${A:=${B}} ${C:=x${D:=y}z}",
        &[("A", Some("${B}")), ("C", Some("x${D}z"))],
    );
    // The first occurrence decides.
    variables("${A} ${A:=x}", &[("A", None)]);
    variables("${A:=x} ${A}", &[("A", Some("x"))]);
    // With any type of arguments.
    variables("${A:1:2} ${B/x/y}", &[("A", Some("12")), ("B", Some("xy"))]);
}

#[track_caller]
fn missing(text: &str, expect: &[&str]) {
    match Template::parse(text).unwrap().render(lookup) {
        Err(RenderError::Missing { names }) => assert_eq!(names, expect, "{text}"),
        other => panic!("{text}: {other:?}"),
    }
}

// OP-141, OP-224
#[test]
fn every_missing_variable_is_named_and_no_value() {
    missing("${Z} ${A} ${C:=} ${Y:=${W}} ${Z}", &["C", "Z"]);
    missing("${X} ${X:=d}", &["X"]);
    let error = Template::parse("${Z} ${A} ${Y}").unwrap().render(lookup).unwrap_err();
    assert_eq!(error.to_string(), "value for variables [Y, Z] is not set");
}

#[test]
fn an_expression_that_explodes_is_refused() {
    let long = "x".repeat(100_000);
    let lookup = |_: &str| Some(long.clone());
    let check = |text: &str| {
        let error = Template::parse(text).unwrap().render(lookup).unwrap_err();
        assert!(
            matches!(&error, RenderError::TooLong { name } if name == "A"),
            "{text}: {error}"
        );
    };
    check("${A//x/${A}}");
    check("${A//x/${A//x/xx}}");
    check("${A#${A}}");
    let many = Template::parse("${A}").unwrap();
    assert_eq!(many.render(lookup).unwrap().len(), 100_000);
    let text = "${A}".repeat(1000);
    assert_eq!(
        Template::parse(&text).unwrap().render(lookup),
        Err(RenderError::TooMuch)
    );
}

/// Pieces of expressions, and some other pieces.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("${"),
        Just("}"),
        Just("$"),
        Just("$$"),
        Just("A"),
        Just("B_1"),
        Just(":="),
        Just(":-"),
        Just("="),
        Just(":"),
        Just("1"),
        Just("-2"),
        Just("^"),
        Just(",,"),
        Just("#"),
        Just("##"),
        Just("%"),
        Just("/"),
        Just("//"),
        Just("\\"),
        Just("*"),
        Just("?"),
        Just("["),
        Just("]"),
        Just("é"),
        Just(" "),
        Just("\n"),
        Just("${A}"),
        Just("${B:=x"),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn text_without_variables_stays_as_it_is(text in "([^$]|\\$[^${])*") {
        let template = Template::parse(&text).unwrap();
        prop_assert!(template.variables().is_empty());
        prop_assert_eq!(template.render(|_| None).unwrap(), text);
    }

    #[test]
    fn whatever_is_written_is_answered(text in text()) {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.render(|_| None);
            let _ = template.render(|name| Some(format!("<{name}>")));
        }
    }

    #[test]
    fn variables_cover_what_rendering_needs(text in text()) {
        if let Ok(template) = Template::parse(&text) {
            let variables = template.variables();
            let names = template.names();
            prop_assert!(variables.keys().all(|name| names.contains(name.as_str())));
            // Without any values, exactly the variables without a default are missing...
            let required: Vec<String> =
                variables.iter().filter(|(_, default)| default.is_none()).map(|(name, _)| name.clone()).collect();
            match template.render(|_| None) {
                Ok(_) => prop_assert!(required.is_empty()),
                Err(RenderError::Missing { names }) => prop_assert_eq!(&names, &required),
                Err(other) => prop_assert!(false, "{}", other),
            }
            // ... and with values for them, none is.
            let given = |name: &str| required.iter().any(|known| known == name).then(|| "v".to_owned());
            prop_assert!(template.render(given).is_ok());
        }
    }

    #[test]
    fn what_is_escaped_comes_out_as_it_was(text in text()) {
        let escaped = text.replace('$', "$$");
        let template = Template::parse(&escaped).unwrap();
        prop_assert!(template.variables().is_empty());
        // Blanks around a name are removed even there, as in clusterctl.
        if !text.contains(' ') && !text.contains('\n') {
            prop_assert_eq!(template.render(|_| None).unwrap(), text);
        }
    }
}
