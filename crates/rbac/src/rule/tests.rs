//! Tables of allowed requests and covered rules.

use super::*;

fn rule(yaml: &str) -> Rule {
    serde_saphyr::from_str(yaml).unwrap()
}

/// `verb resource.group/subresource name` or `verb /path`.
fn check(yaml: &str, asked: &str, want: bool) {
    let mut words = asked.split(' ');
    let verb = words.next().unwrap();
    let what = words.next().unwrap();
    let target = if what.starts_with('/') {
        Target::Path(what)
    } else {
        let (main, subresource) = what.split_once('/').unwrap_or((what, ""));
        let (resource, group) = main.split_once('.').unwrap_or((main, ""));
        Target::Resource {
            group,
            resource,
            subresource,
            namespace: "n",
            name: words.next().unwrap_or(""),
        }
    };
    let asks = Attributes { verb, target };
    assert_eq!(rule(yaml).allows(&asks), want, "{yaml} for {asked}");
}

#[test]
fn groups_resources_and_verbs_must_all_be_named() {
    let pods = r#"{apiGroups: [""], resources: [pods], verbs: [get, list]}"#;
    check(pods, "get pods", true);
    check(pods, "list pods", true);
    check(pods, "watch pods", false);
    check(pods, "get services", false);
    check(pods, "get pods.apps", false);
    check(pods, "get pods/log", false);
    check(pods, "get /pods", false);
    check(
        "{apiGroups: [apps], resources: [pods], verbs: [get]}",
        "get pods",
        false,
    );
    check("{resources: [pods], verbs: [get]}", "get pods", false);
    check(
        r#"{apiGroups: ["", apps], resources: [pods, deployments], verbs: [get]}"#,
        "get deployments.apps",
        true,
    );
}

#[test]
fn stars_stand_for_everything() {
    let all = r#"{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}"#;
    for asked in [
        "get pods",
        "impersonate users bob",
        "update deployments.apps/scale d",
        "* *.*",
    ] {
        check(all, asked, true);
    }
    check(all, "get /healthz", false);
    check(
        r#"{apiGroups: ["*"], resources: [pods], verbs: ["*"]}"#,
        "get pods.example.com",
        true,
    );
    check(r#"{apiGroups: [""], resources: [pods], verbs: [get]}"#, "* pods", false);
}

#[test]
fn subresources_are_resources_of_their_own() {
    check(
        r#"{apiGroups: [""], resources: [pods/log], verbs: [get]}"#,
        "get pods/log",
        true,
    );
    check(
        r#"{apiGroups: [""], resources: [pods/log], verbs: [get]}"#,
        "get pods",
        false,
    );
    check(
        r#"{apiGroups: [""], resources: ["*/status"], verbs: [get]}"#,
        "get pods/status",
        true,
    );
    check(
        r#"{apiGroups: [""], resources: ["*/status"], verbs: [get]}"#,
        "get pods",
        false,
    );
    check(
        r#"{apiGroups: [""], resources: ["*/status"], verbs: [get]}"#,
        "get pods/log",
        false,
    );
    check(
        r#"{apiGroups: [""], resources: ["*"], verbs: [get]}"#,
        "get pods/log",
        true,
    );
    // Only webhooks support this form.
    check(
        r#"{apiGroups: [""], resources: ["pods/*"], verbs: [get]}"#,
        "get pods/log",
        false,
    );
}

#[test]
fn names_narrow_a_rule() {
    let one = r#"{apiGroups: [""], resources: [pods], resourceNames: [a, b], verbs: ["*"]}"#;
    check(one, "get pods a", true);
    check(one, "get pods c", false);
    check(one, "list pods", false);
    check(one, "create pods", false);
}

#[test]
fn paths_may_end_in_a_star() {
    check("{nonResourceURLs: [/healthz], verbs: [get]}", "get /healthz", true);
    check(
        "{nonResourceURLs: [/healthz], verbs: [get]}",
        "get /healthz/ping",
        false,
    );
    check(
        "{nonResourceURLs: [/healthz/*], verbs: [get]}",
        "get /healthz/ping",
        true,
    );
    check("{nonResourceURLs: [/healthz/*], verbs: [get]}", "get /healthz", false);
    check("{nonResourceURLs: [/heal*], verbs: [get]}", "get /healthz", true);
    check("{nonResourceURLs: ['*'], verbs: ['*']}", "post /anything", true);
    check("{nonResourceURLs: ['/*/x'], verbs: [get]}", "get /a/x", false);
    check("{nonResourceURLs: [/healthz], verbs: [get]}", "post /healthz", false);
}

fn check_lacking(held: &str, wanted: &str, want: &str) {
    let held: Vec<Rule> = serde_saphyr::from_str(held).unwrap();
    let wanted: Vec<Rule> = serde_saphyr::from_str(wanted).unwrap();
    assert_eq!(lines(&lacking(&held, &wanted)), want);
}

#[test]
fn rules_are_covered_piece_by_piece() {
    let edit = r#"[{apiGroups: [""], resources: [pods, services], verbs: [get, update]}]"#;
    check_lacking(
        edit,
        r#"[{apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [get]}]"#,
        "",
    );
    check_lacking(
        edit,
        r#"[{apiGroups: ["", apps], resources: [pods], verbs: [get, list]}]"#,
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}\n{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}",
    );
    // Two rules together cover what neither does alone.
    check_lacking(
        r#"[{apiGroups: [""], resources: [pods], verbs: [get]}, {apiGroups: [""], resources: [pods], verbs: [list]}]"#,
        r#"[{apiGroups: [""], resources: [pods], verbs: [get, list]}]"#,
        "",
    );
    check_lacking(
        r#"[{apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [get]}]"#,
        r#"[{apiGroups: [""], resources: [pods], resourceNames: [a, b], verbs: [get]}, {apiGroups: [""], resources: [pods], verbs: [get]}]"#,
        "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}",
    );
    check_lacking(
        r#"[{apiGroups: ["*"], resources: ["*/status"], verbs: ["*"]}]"#,
        "[{apiGroups: [apps], resources: [deployments/status], verbs: [update]}]",
        "",
    );
    check_lacking(
        r#"[{apiGroups: ["*"], resources: [pods], verbs: [get]}]"#,
        r#"[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]"#,
        "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}",
    );
    check_lacking(
        "[{nonResourceURLs: [/a/*], verbs: [get]}]",
        "[{nonResourceURLs: [/a/b, /c], verbs: [get]}]",
        "{NonResourceURLs:[\"/c\"], Verbs:[\"get\"]}",
    );
}
