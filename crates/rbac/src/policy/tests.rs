//! Permissions by binding.

use crate::attributes::Target;

use super::*;

const OBJECTS: &str = r#"
- {kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {kind: ClusterRole, metadata: {name: health}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}
- {kind: Role, metadata: {name: writer, namespace: a}, rules: [{apiGroups: [""], resources: [pods], verbs: [create]}]}
- {kind: ClusterRoleBinding, metadata: {name: everywhere}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: User, name: ann}, {kind: ServiceAccount, name: robot, namespace: a}, {kind: ServiceAccount, name: robot}]}
- {kind: ClusterRoleBinding, metadata: {name: health}, roleRef: {kind: ClusterRole, name: health}, subjects: [{kind: Group, name: ops}]}
- {kind: ClusterRoleBinding, metadata: {name: lost}, roleRef: {kind: ClusterRole, name: nowhere}, subjects: [{kind: User, name: eve}]}
- {kind: RoleBinding, metadata: {name: readers, namespace: a}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: Group, name: dev}]}
- {kind: RoleBinding, metadata: {name: writers, namespace: a}, roleRef: {kind: Role, name: writer}, subjects: [{kind: User, name: ann}, {kind: ServiceAccount, name: local}]}
- {kind: RoleBinding, metadata: {name: writers, namespace: b}, roleRef: {kind: Role, name: writer}, subjects: [{kind: User, name: eve}]}
"#;

fn policy(yaml: &str) -> Policy {
    let mut policy = Policy::default();
    let objects: Vec<Value> = serde_saphyr::from_str(yaml).unwrap();
    for object in objects {
        let (namespace, name) = (
            windlass_objects::metadata::meta(&object, "namespace"),
            windlass_objects::metadata::meta(&object, "name"),
        );
        let labels: Vec<(Box<str>, Box<str>)> = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or("").into()))
            .collect();
        match text(&object, "kind") {
            "Role" | "ClusterRole" => policy.set_role(namespace, name, Some(Role::parse(&object, &labels))),
            _ => policy.set_binding(namespace, name, Some(Binding::parse(&object))),
        }
    }
    policy
}

fn pods<'a>(verb: &'a str, namespace: &'a str) -> Attributes<'a> {
    let target = Target::Resource {
        group: "",
        resource: "pods",
        subresource: "",
        namespace,
        name: "",
    };
    Attributes { verb, target }
}

fn check(user: &UserInfo, asked: &Attributes<'_>, allowed: bool, reason: &str) {
    let policy = policy(OBJECTS);
    let decision = policy.decide(user, asked);
    assert_eq!(
        (decision.allowed, decision.reason.as_str()),
        (allowed, reason),
        "{} {asked:?}",
        user.name
    );
    assert_eq!(policy.allows(user, asked), allowed);
}

#[test]
fn bindings_count_in_their_namespace_or_everywhere() {
    let ann = UserInfo::new("ann", &[]);
    let everywhere = r#"RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to User "ann""#;
    check(&ann, &pods("get", ""), true, everywhere);
    check(&ann, &pods("get", "b"), true, everywhere);
    check(&ann, &pods("create", ""), false, "");
    check(&ann, &pods("create", "b"), false, "");
    check(
        &ann,
        &pods("create", "a"),
        true,
        r#"RBAC: allowed by RoleBinding "writers/a" of Role "writer" to User "ann""#,
    );
}

#[test]
fn groups_and_service_accounts_are_subjects() {
    let dev = UserInfo::new("dan", &["dev"]);
    let reason = r#"RBAC: allowed by RoleBinding "readers/a" of ClusterRole "reader" to Group "dev""#;
    check(&dev, &pods("get", "a"), true, reason);
    check(&dev, &pods("get", "b"), false, "");
    let robot = UserInfo::new("system:serviceaccount:a:robot", &[]);
    let reason =
        r#"RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to ServiceAccount "robot/a""#;
    check(&robot, &pods("get", "b"), true, reason);
    // In a cluster-wide binding, a service account without a namespace matches no user; in a namespace, it is an account of that
    // namespace.
    check(
        &UserInfo::new("system:serviceaccount:b:robot", &[]),
        &pods("get", "b"),
        false,
        "",
    );
    let local = UserInfo::new("system:serviceaccount:a:local", &[]);
    let reason = r#"RBAC: allowed by RoleBinding "writers/a" of Role "writer" to ServiceAccount "local/a""#;
    check(&local, &pods("create", "a"), true, reason);
}

#[test]
fn a_missing_role_gives_nothing_and_is_named() {
    let eve = UserInfo::new("eve", &[]);
    check(
        &eve,
        &pods("get", ""),
        false,
        r#"RBAC: clusterrole.rbac.authorization.k8s.io "nowhere" not found"#,
    );
    check(
        &eve,
        &pods("get", "b"),
        false,
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "nowhere" not found, role.rbac.authorization.k8s.io "writer" not found]"#,
    );
}

#[test]
fn paths_are_no_matter_of_namespaces() {
    let asked = Attributes {
        verb: "get",
        target: Target::Path("/metrics"),
    };
    let reason = r#"RBAC: allowed by ClusterRoleBinding "health" of ClusterRole "health" to Group "ops""#;
    check(&UserInfo::new("olga", &["ops"]), &asked, true, reason);
    check(&UserInfo::new("ann", &[]), &asked, false, "");
}

#[test]
fn roles_gather_the_rules_of_others() {
    let mut policy = policy(
        r#"
- {kind: ClusterRole, metadata: {name: all, labels: {a: "1"}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: "1"}}, {matchLabels: {b: "1"}}]}}
- {kind: ClusterRole, metadata: {name: one, labels: {a: "1"}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- {kind: ClusterRole, metadata: {name: two, labels: {b: "1"}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/x], verbs: [get]}]}
- {kind: ClusterRole, metadata: {name: other}, rules: [{apiGroups: [apps], resources: [x], verbs: [get]}]}
"#,
    );
    let stale = policy.stale();
    assert_eq!(stale.len(), 1);
    assert_eq!(stale[0].0, "all");
    let described = super::super::rule::lines(&stale[0].1);
    assert_eq!(
        described,
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}\n{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
    );
    policy.set_role("", "two", None);
    assert_eq!(policy.stale()[0].1.len(), 1);
    policy.set_role("", "all", None);
    assert!(policy.stale().is_empty());
}

/// A tenant can bind a large role many times.
#[test]
fn a_role_counts_once_however_often_it_is_bound() {
    let binding = |at: usize| {
        format!(
            "- {{kind: RoleBinding, metadata: {{name: b{at}, namespace: a}}, roleRef: {{kind: Role, name: writer}}, subjects: [{{kind: User, name: ann}}]}}\n"
        )
    };
    let many: String = (0..100).map(binding).collect();
    let policy = policy(&format!("{OBJECTS}{many}"));
    let ann = UserInfo::new("ann", &[]);
    assert_eq!(policy.rules_of(&ann, "a").len(), 2);
    let reason = policy.decide(&ann, &pods("create", "a")).reason;
    assert!(reason.contains("RoleBinding \"b0/a\""), "{reason}");
    let missing = |at: usize| {
        format!(
            "- {{kind: RoleBinding, metadata: {{name: c{at}, namespace: a}}, roleRef: {{kind: Role, name: gone}}, subjects: [{{kind: User, name: ann}}]}}\n"
        )
    };
    let many: String = (0..3).map(missing).collect();
    let policy = super::tests::policy(&format!("{OBJECTS}{many}"));
    let problems = policy.problems(&ann, "a").unwrap();
    assert_eq!(problems.matches("not found").count(), 1, "{problems}");
}
