use proptest::prelude::*;
use serde_json::json;

use super::*;

fn args(list: &[&str]) -> Arguments {
    Arguments::of(&json!({"args": list})).unwrap()
}

#[test]
fn keys_may_have_dashes() {
    // OP-180
    let check = |key: &str, expect: Option<&str>| assert_eq!(flag_name(key), expect, "{key}");
    check("awscluster-concurrency", Some("awscluster-concurrency"));
    check("--sync-period", Some("sync-period"));
    check("-v", Some("v"));
    check(" --v ", Some("v"));
    check("--", None);
    check("", None);
    check("a=b", None);
    check("a b", None);
}

#[test]
fn a_flag_is_set_in_whatever_form_it_is() {
    // OP-179: replaced where it is, others kept, new ones at the end.
    let check = |before: &[&str], name: &str, value: &str, after: &[&str], was: Was| {
        let mut have = args(before);
        assert_eq!(have.set(name, value), was, "{before:?}");
        assert_eq!(have.list(), after, "{before:?}");
        assert_eq!(have.get(name).as_deref(), Some(value));
        assert_eq!(have.set(name, value), Was::Same);
        assert_eq!(have.list(), after, "a second time");
    };
    check(&[], "a", "1", &["--a=1"], Was::Absent);
    check(&["--b=2"], "a", "1", &["--b=2", "--a=1"], Was::Absent);
    check(&["--a=1"], "a", "1", &["--a=1"], Was::Same);
    check(&["--a=1", "--b"], "a", "2", &["--a=2", "--b"], Was::Different);
    check(&["--a", "1", "--b"], "a", "2", &["--a=2", "--b"], Was::Different);
    check(&["--a", "--b"], "a", "2", &["--a=2", "--b"], Was::Different);
    check(&["--a", "-1", "--b"], "a", "2", &["--a=2", "--b"], Was::Different);
    check(
        &["--a=1", "--b", "--a", "3", "--a"],
        "a",
        "2",
        &["--a=2", "--b"],
        Was::Different,
    );
    // Names with a common prefix are different flags.
    check(
        &["--feature-gates-x=1", "--feature"],
        "feature-gates",
        "A=true",
        &["--feature-gates-x=1", "--feature", "--feature-gates=A=true"],
        Was::Absent,
    );
    // A switch does not take the next argument, except `true` and `false`.
    check(
        &["--leader-elect", "other"],
        "leader-elect",
        "false",
        &["--leader-elect=false", "other"],
        Was::Different,
    );
    check(
        &["--leader-elect", "true"],
        "leader-elect",
        "false",
        &["--leader-elect=false"],
        Was::Different,
    );
    // One dash is kept: it may be the short form of an unknown name.
    check(&["-v=2"], "v", "5", &["-v=5"], Was::Different);
    check(&["-v", "2"], "v", "5", &["-v=5"], Was::Different);
    check(&["-v2"], "v", "5", &["-v=5"], Was::Different);
    check(&["-verbose"], "v", "5", &["-verbose", "--v=5"], Was::Absent);
    // Arguments after `--` are not flags.
    check(
        &["--b", "--", "--a=1"],
        "a",
        "2",
        &["--b", "--a=2", "--", "--a=1"],
        Was::Absent,
    );
}

#[test]
fn a_flag_is_read_in_whatever_form_it_is() {
    let check = |list: &[&str], expect: Option<&str>| {
        assert_eq!(args(list).get("a").as_deref(), expect, "{list:?}");
        assert_eq!(args(list).has("a"), expect.is_some());
    };
    check(&["--a=1"], Some("1"));
    check(&["--a", "1"], Some("1"));
    check(&["-a", "1"], Some("1"));
    check(&["--a"], Some("true"));
    check(&["--a="], Some(""));
    check(&["--a=1", "--a=2"], Some("2"));
    check(&["--a=b=c"], Some("b=c"));
    check(&["a=1", "--b", "--ab=1"], None);
    check(&["--", "--a"], None);
}

#[test]
fn a_flag_is_removed_with_its_value() {
    let mut have = args(&["--namespace", "foo", "--b", "-namespace=x", "--namespace=y"]);
    assert!(have.remove("namespace"));
    assert_eq!(have.list(), ["--b"]);
    assert!(!have.remove("namespace"));
}

#[test]
fn arguments_go_back_into_their_container() {
    let mut container = json!({"name": "manager", "args": ["--a"]});
    let mut have = Arguments::of(&container).unwrap();
    have.set("b", "1");
    have.write(&mut container);
    assert_eq!(container, json!({"name": "manager", "args": ["--a", "--b=1"]}));
    Arguments::default().write(&mut container);
    assert_eq!(container, json!({"name": "manager"}));
    assert_eq!(Arguments::of(&json!({"args": ["--a", 5]})), Err(1));
}

proptest! {
    /// OP-179: whatever was there, the flag has the value afterwards, once; doing it again changes nothing, and other
    /// arguments that are no values stay in their order.
    #[test]
    fn setting_is_stable(list in proptest::collection::vec("(--?(a|b|v)(=[0-9])?|[0-9]|true|--)", 0..8), value in "[0-9]|true") {
        let before: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut have = args(&before);
        have.set("a", &value);
        let once = have.clone();
        prop_assert_eq!(have.get("a"), Some(value.clone()));
        prop_assert_eq!(have.set("a", &value), Was::Same);
        prop_assert_eq!(&have, &once);
        let others = |list: &[String]| -> Vec<String> {
            list.iter().take_while(|arg| *arg != "--").filter(|arg| arg.contains(['b', 'v'])).cloned().collect()
        };
        prop_assert_eq!(others(&list), others(have.list()));
        have.remove("a");
        prop_assert!(!have.has("a"));
    }
}
