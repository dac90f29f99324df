//! Guarantees of the engine beyond Go: deterministic functions, bounded stack and memory, errors with positions.

mod corpus;

use std::thread;

use proptest::prelude::*;
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

// TO-144
#[test]
fn patches_of_classes_convert_numbers_and_texts() {
    gives("{{ if eq .n 5.0 }}y{{ end }}{{ if lt .f 3 }}z{{ end }}", "yz");
    gives(
        "{{ kindOf .n }} {{ kindIs \"float64\" .f }} {{ has 5.0 (list .n) }} {{ has 1 (list \"1\") }}",
        "float64 true true false",
    );
    gives(
        "{{ concat .nope (list 1) }}{{ first .nil }}{{ dig \"name\" \"x\" \"none\" . }}",
        "[1]<no value>none",
    );
    gives("{{ keys (split \"-\" \"a-b\") }}", "[_0 _1]");
    gives("{{ if eq .name 5 }}y{{ else }}n{{ end }}", "n");
    gives("{{ range until .n }}{{ . }}{{ end }}", "01234");
    gives(
        "{{ repeat .n \"a\" }} {{ upper .n }} {{ trunc 1 .version }}",
        "aaaaa 5 v",
    );
    gives(
        "{{ required \"must be\" .name }}{{ trimLeft \"F\" .name }}{{ trimRight \"o\" .name }}",
        "FooooF",
    );
}

// TO-145
#[test]
fn prints_no_value_for_a_missing_key() {
    gives("{{ .nope }}", "<no value>");
    gives("{{ if .nope }}x{{ end }}", "");
}

// TO-144
#[test]
fn refuses_bad_syntax_and_functions_that_depend_on_the_moment() {
    for bad in [
        "{{ if }}",
        "{{ now }}",
        "{{ randAlpha 5 }}",
        "{{ env \"HOME\" }}",
        "{{ .a",
    ] {
        assert!(matches!(check(bad), Err(TemplateError::Parse { .. })), "{bad}");
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
    for text in [
        "{{ .cluster.nope }}",
        "{{ .random }}{{ if .nope }}a{{ end }}",
        "{{ .random }}{{ with .cluster.nope }}a{{ end }}",
        "{{ or .nope .random }}",
        "{{ if not .nope }}{{ .random }}{{ end }}",
        "{{ if eq 1 1.0 }}{{ .random }}{{ end }}",
    ] {
        assert!(render_strict(text, &data).is_err(), "{text}");
    }
    assert!(render_strict("{{ .cluster.name | upper }}", &data).is_err());
}

#[test]
fn a_missing_field_can_be_refused_where_it_is_looked_up() {
    let rules = Rules {
        missing: Missing::Fail,
        lenient: false,
    };
    let render = |text: &str| {
        Template::parse(text, Functions::Builtin)
            .unwrap()
            .render(&json!({"a": {"b": 1}}), rules)
    };
    assert_eq!(render("{{ .a.b }}").as_deref(), Ok("1"));
    for text in ["{{ if .nope }}{{ end }}", "\n{{ .a.c }}", "{{ range .a.c.d }}{{ end }}"] {
        assert!(matches!(render(text), Err(TemplateError::Missing { .. })), "{text}");
    }
}

/// Every function of Sprig v3.3.
const SPRIG: &str = "abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base bcrypt \
    biggest buildCustomCert camelcase cat ceil chunk clean coalesce compact concat contains date dateInZone dateModify date_in_zone \
    date_modify decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf duration durationRound empty encryptAES env \
    expandenv ext fail first float64 floor fromJson genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey \
    genSignedCert genSignedCertWithKey get getHostByName has hasKey hasPrefix hasSuffix hello htmlDate htmlDateInZone htpasswd indent \
    initial initials int int64 isAbs join kebabcase keys kindIs kindOf last list lower max maxf merge mergeOverwrite min minf mod mul \
    mulf mustAppend mustChunk mustCompact mustDateModify mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge \
    mustMergeOverwrite mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll \
    mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice mustToDate mustToJson mustToPrettyJson mustToRawJson \
    mustUniq mustWithout must_date_modify nindent nospace now omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend push \
    quote randAlpha randAlphaNum randAscii randBytes randInt randNumeric regexFind regexFindAll regexMatch regexQuoteMeta \
    regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver semverCompare seq set sha1sum sha256sum \
    sha512sum shuffle slice snakecase sortAlpha split splitList splitn squote sub subf substr swapcase ternary title toDate toDecimal \
    toJson toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs typeIsLike typeOf \
    uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse uuidv4 values without wrap wrapWith";

// AD-119
#[test]
fn each_function_of_sprig_is_there_or_refused_with_a_reason() {
    let refused = |name: &str| functions::NOT_OFFERED.iter().any(|(names, _)| names.contains(&name));
    let all: Vec<&str> = SPRIG.split_whitespace().collect();
    for name in &all {
        assert!(sprig::find(name).is_some() != refused(name), "{name}");
    }
    let beyond: Vec<&str> = sprig::names().into_iter().filter(|name| !all.contains(name)).collect();
    assert_eq!(beyond, ["trimLeft", "trimRight", "required"]);
    for name in ["env", "expandenv", "getHostByName", "now", "uuidv4", "genCA"] {
        let error = check(&format!("a\n{{{{ {name} }}}}")).unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains(&format!("function {name:?} is not offered: ")),
            "{error}"
        );
    }
}

// AD-089
#[test]
fn maps_are_walked_in_the_order_of_their_keys() {
    let data = json!({"m": {"b": 1, "a": {"z": 1, "y": 2}, "c": [1]}});
    let text = "{{ .m }} {{ range $k, $v := .m }}{{ $k }}{{ end }} {{ keys .m }} {{ values .m }} {{ toJson .m }}";
    let first = render(text, &data).unwrap();
    assert_eq!(
        first,
        "map[a:map[y:2 z:1] b:1 c:[1]] abc [a b c] [map[y:2 z:1] 1 [1]] {\"a\":{\"y\":2,\"z\":1},\"b\":1,\"c\":[1]}"
    );
    assert_eq!(Ok(first), render(text, &data));
}

/// Runs on the stack of an ordinary thread: a stack overflow would end the whole process.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn nesting_is_bounded() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("{{ if true }}", "{{ end }}"),
            ("{{ range list 1 }}", "{{ end }}"),
            ("{{ with 1 }}", "{{ end }}"),
            ("{{ if false }}{{ else if true }}", "{{ end }}"),
        ] {
            for (depth, good) in [(20, true), (5000, false)] {
                let text = format!("{}x{}", open.repeat(depth), close.repeat(depth));
                assert_eq!(render(&text, &json!({})).is_ok(), good, "{open} {depth}");
            }
        }
        for (depth, good) in [(40, true), (100_000, false)] {
            let text = format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
            assert_eq!(render(&text, &json!({})).is_ok(), good, "{depth}");
        }
        // The worst case: each call is as deep as allowed, in blocks and in parentheses.
        let (open, close) = ("{{ range list 1 }}".repeat(45), "{{ end }}".repeat(45));
        let inner = format!("{{{{ {}1{} }}}}", "(not ".repeat(45), ")".repeat(45));
        let text = format!(
            "{{{{ define \"r\" }}}}{open}{inner}{{{{ template \"r\" . }}}}{close}{{{{ end }}}}{{{{ template \"r\" . }}}}"
        );
        let error = render(&text, &json!({})).unwrap_err().to_string();
        assert!(error.contains("deep"), "{error}");
        let mut data = json!(1);
        for _ in 0..500 {
            data = json!([data]);
        }
        assert!(render("{{ . }}", &data).is_err());
    });
}

#[test]
fn values_that_hold_themselves_do_no_harm() {
    on_a_small_stack(|| {
        let looped = "{{ $d := dict }}{{ $_ := set $d \"self\" (list $d) }}";
        assert_eq!(
            render(&format!("{looped}{{{{ len $d }}}}"), &json!({})).as_deref(),
            Ok("1")
        );
        for walk in [
            "{{ $d }}",
            "{{ toJson $d }}",
            "{{ deepCopy $d }}",
            "{{ deepEqual $d (dict \"self\" (list $d)) }}",
            "{{ printf \"%v\" $d }}",
            "{{ $e := dict }}{{ $_ := set $e \"self\" (list $e) }}{{ deepEqual $d $e }}",
            "{{ $e := dict }}{{ $_ := set $e \"x\" $e }}{{ $f := dict }}{{ $_ := set $f \"x\" $f }}{{ merge $e $f }}",
        ] {
            let error = render(&format!("{looped}{walk}"), &json!({})).unwrap_err().to_string();
            assert!(error.contains("holds itself"), "{walk}: {error}");
        }
        let nested = "{{ $x := list }}{{ range until 50000 }}{{ $x = list $x }}{{ end }}{{ len $x }}";
        assert_eq!(render(nested, &json!({})).as_deref(), Ok("1"));
    });
}

#[test]
fn rounds_texts_and_memory_are_bounded() {
    for text in [
        "{{ range 1000000000 }}{{ end }}",
        "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
        "{{ range 10000 }}{{ repeat 1000000 \"x\" }}{{ end }}",
        "{{ $s := \"x\" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}",
        "{{ $l := list 1 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}",
        "{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ $l }}",
        "{{ $l := list }}{{ range 100000 }}{{ $l = append $l (repeat 1000000 \"x\") }}{{ end }}",
        "{{ repeat 9223372036854775807 \"x\" }}",
        "{{ indent 9223372036854775807 \"x\" }}",
        "{{ printf \"%1000000d%1000000d%1000000d\" 1 2 3 }}",
        "{{ until 9223372036854775807 }}",
        "{{ untilStep -9223372036854775808 9223372036854775807 1 }}",
        "{{ seq 1 9223372036854775807 }}",
        "{{ replace \"\" (repeat 1000 \"y\") (repeat 100000 \"x\") }}",
        "{{ $s := repeat 1000000 \"x\" }}{{ range 100000 }}{{ contains \"y\" $s }}{{ end }}",
        "{{ $s := repeat 1000000 \"x\" }}{{ range 100 }}{{ regexMatch \"(x+x+)+y\" $s }}{{ end }}",
        "{{ $l := until 100000 }}{{ range 100000 }}{{ len $l }}{{ end }}",
        "{{ regexMatch \"(((a{100}){100}){100}){100}\" \"a\" }}",
        "{{ define \"t\" }}{{ range 100 }}{{ template \"u\" }}{{ end }}{{ end }}{{ define \"u\" }}{{ range 100000 }}{{ range 100 }}x{{ end }}{{ end }}{{ end }}{{ template \"t\" }}",
        "{{ wrapWith 1 (repeat 1000 \"y\") (repeat 100000 \"x\") }}",
    ] {
        assert!(render(text, &json!({})).is_err(), "{text}");
    }
}

#[test]
fn extreme_numbers_end_in_no_panic() {
    let numbers = [
        "9223372036854775807",
        "-9223372036854775808",
        "0",
        "-1",
        "1e308",
        "-1e308",
        "0.1",
    ];
    for function in sprig::names()
        .into_iter()
        .chain(["index", "slice", "len", "printf", "eq", "lt"])
    {
        for a in numbers {
            for b in numbers {
                for text in [
                    format!("{{{{ {function} {a} }}}}"),
                    format!("{{{{ {function} {a} {b} }}}}"),
                    format!("{{{{ {function} {a} {b} \"é x-Y\" }}}}"),
                    format!("{{{{ {function} {a} \"é x-Y\" }}}}"),
                    format!("{{{{ {function} \"é x-Y\" {a} }}}}"),
                    format!("{{{{ {function} \"é\" \"x\" {a} }}}}"),
                    format!("{{{{ {function} (list 1 \"a\") {a} {b} }}}}"),
                    format!("{{{{ {function} {a} (list 1 \"a\") }}}}"),
                    format!("{{{{ {function} (dict \"a\" 1) \"a\" {a} }}}}"),
                ] {
                    for rules in [Rules::GO, LENIENT] {
                        let template = Template::parse(&text, Functions::Sprig);
                        let _ = template.map(|template| template.render(&json!({}), rules));
                    }
                }
            }
        }
    }
}

/// Templates from meaningful pieces, rather than from arbitrary characters.
fn templates() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = sprig::names();
    let call = (prop::sample::select(names), prop::collection::vec(operand(), 0..4))
        .prop_map(|(name, operands)| format!("{{{{ {name} {} }}}}", operands.join(" ")));
    let piece = prop_oneof![
        4 => call,
        1 => Just("{{ range $k, $v := .m }}".to_owned()),
        1 => Just("{{ with .l }}".to_owned()),
        1 => Just("{{ if . }}".to_owned()),
        2 => Just("{{ end }}".to_owned()),
        1 => Just("{{ else if .x }}".to_owned()),
        1 => Just("{{ define \"t\" }}".to_owned()),
        1 => Just("{{ template \"t\" . }}".to_owned()),
        1 => Just("{{ break }}".to_owned()),
        1 => Just("{{- /* c */ -}}".to_owned()),
        1 => "[a-z0-9 {}.|$:=()\"'`/*,_-]{0,12}",
        1 => "\\PC{0,6}",
        1 => "%[-+# 0]{0,2}[0-9*]{0,3}(\\.[0-9*]{0,3})?[a-zA-Z%]".prop_map(|f| format!("{{{{ printf {f:?} .n .m .l 1.5 }}}}")),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(".m".to_owned()),
        Just(".l".to_owned()),
        Just(".s".to_owned()),
        Just(".nope".to_owned()),
        Just("nil".to_owned()),
        Just("true".to_owned()),
        Just("(list \"a\" 1 nil)".to_owned()),
        Just("(dict \"a\" .m)".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        (-20i64..20).prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(|f| format!("{f:e}")),
        "[a-zA-Z0-9é%_ ./:-]{0,10}".prop_map(|s| format!("{s:?}")),
    ]
}

proptest! {
    // AD-089
    #[test]
    fn whatever_a_template_is_it_ends_without_a_panic_and_gives_the_same_again(text in templates(), lenient: bool) {
        let data = json!({"m": {"b": 1, "a": {"c": null}}, "l": [3, "x", 2.5, null], "s": "héllo", "n": -7});
        let rules = Rules { missing: Missing::Print, lenient };
        if let Ok(template) = Template::parse(&text, Functions::Sprig) {
            let first = template.render(&data, rules);
            prop_assert_eq!(&first, &template.render(&data, rules));
            let _ = template.uses();
        }
    }
}
