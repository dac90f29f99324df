//! Parsed roles and bindings, and the rules that they grant to a user. Pure.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::attributes::{Attributes, Decision};
use crate::rule::Rule;
use crate::user::UserInfo;
use windlass_objects::metadata::text;
use windlass_objects::selector::LabelSelector;

/// The labels of an object, in the form of its record.
pub type Labels = [(Box<str>, Box<str>)];

/// A Role or `ClusterRole`.
#[derive(Debug, Default)]
pub struct Role {
    rules: Vec<Rule>,
    labels: Box<Labels>,
    /// The selectors of an aggregated role.
    gathers: Option<Vec<LabelSelector>>,
}

impl Role {
    /// Parses a stored role.
    pub fn parse(object: &Value, labels: &Labels) -> Self {
        let selectors = object
            .pointer("/aggregationRule/clusterRoleSelectors")
            .and_then(Value::as_array);
        Self {
            rules: rules(object),
            labels: labels.into(),
            gathers: has_aggregation(object).then(|| {
                selectors
                    .into_iter()
                    .flatten()
                    .map(LabelSelector::from_object)
                    .collect()
            }),
        }
    }

    /// The rules, aggregated ones included.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// The rules of a role.
pub fn rules(object: &Value) -> Vec<Rule> {
    let list = object.get("rules").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
        .collect()
}

/// Whether a role is aggregated.
pub fn has_aggregation(object: &Value) -> bool {
    object.get("aggregationRule").is_some_and(|rule| !rule.is_null())
}

#[derive(Debug)]
enum Subject {
    User(String),
    Group(String),
    /// Namespace, possibly empty, and name.
    ServiceAccount(String, String),
}

impl Subject {
    fn parse(subject: &Value) -> Option<Self> {
        let name = text(subject, "name").to_owned();
        match text(subject, "kind") {
            "User" => Some(Self::User(name)),
            "Group" => Some(Self::Group(name)),
            "ServiceAccount" => Some(Self::ServiceAccount(text(subject, "namespace").to_owned(), name)),
            _ => None,
        }
    }

    /// Whether the subject of a binding in a namespace (empty for the cluster) includes a user.
    fn is(&self, user: &UserInfo, namespace: &str) -> bool {
        match self {
            Self::User(name) => *name == user.name,
            Self::Group(name) => user.groups.contains(name),
            Self::ServiceAccount(own, name) => {
                let place = if own.is_empty() { namespace } else { own };
                let account = user.name.strip_prefix("system:serviceaccount:");
                !place.is_empty() && account.and_then(|a| a.split_once(':')) == Some((place, name.as_str()))
            }
        }
    }

    fn describe(&self, namespace: &str) -> String {
        match self {
            Self::User(name) => format!("User {name:?}"),
            Self::Group(name) => format!("Group {name:?}"),
            Self::ServiceAccount(own, name) => {
                let place = if own.is_empty() { namespace } else { own };
                format!("ServiceAccount \"{name}/{place}\"")
            }
        }
    }
}

/// The role of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    /// Role or ClusterRole.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl RoleRef {
    /// Parses the reference of a binding.
    pub fn parse(binding: &Value) -> Self {
        let reference = binding.get("roleRef").unwrap_or(&Value::Null);
        Self {
            kind: text(reference, "kind").to_owned(),
            name: text(reference, "name").to_owned(),
        }
    }

    /// Whether the role is a ClusterRole.
    pub fn is_cluster_role(&self) -> bool {
        self.kind == "ClusterRole"
    }

    /// The error for a missing role.
    fn missing(&self) -> String {
        format!(
            "{}.rbac.authorization.k8s.io {:?} not found",
            self.kind.to_lowercase(),
            self.name
        )
    }
}

/// A `RoleBinding` or `ClusterRoleBinding`.
#[derive(Debug)]
pub struct Binding {
    subjects: Vec<Subject>,
    role: RoleRef,
}

impl Binding {
    /// Parses a stored binding.
    pub fn parse(object: &Value) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array);
        Self {
            subjects: subjects.into_iter().flatten().filter_map(Subject::parse).collect(),
            role: RoleRef::parse(object),
        }
    }
}

/// A binding that applies to a user.
struct Held<'p> {
    /// Empty for a binding in the whole cluster.
    namespace: &'p str,
    name: &'p str,
    binding: &'p Binding,
    subject: &'p Subject,
}

impl Held<'_> {
    fn reason(&self) -> String {
        let (kind, name) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", self.name.to_owned())
        } else {
            ("RoleBinding", format!("{}/{}", self.name, self.namespace))
        };
        let RoleRef { kind: of, name: role } = &self.binding.role;
        let subject = self.subject.describe(self.namespace);
        format!("RBAC: allowed by {kind} {name:?} of {of} {role:?} to {subject}")
    }
}

/// Values by namespace (empty for the cluster) and name.
type Placed<T> = BTreeMap<String, BTreeMap<String, T>>;

/// All roles and bindings.
#[derive(Debug, Default)]
pub struct Policy {
    roles: Placed<Role>,
    bindings: Placed<Binding>,
}

fn place<T>(map: &mut Placed<T>, namespace: &str, name: &str, value: Option<T>) {
    let Some(value) = value else {
        if let Some(names) = map.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                map.remove(namespace);
            }
        }
        return;
    };
    map.entry(namespace.to_owned())
        .or_default()
        .insert(name.to_owned(), value);
}

impl Policy {
    /// Sets or, with `None`, removes a role.
    pub fn set_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        place(&mut self.roles, namespace, name, role);
    }

    /// Sets or, with `None`, removes a binding.
    pub fn set_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        place(&mut self.bindings, namespace, name, binding);
    }

    /// The role that a binding in a namespace refers to; an error text if it does not exist.
    pub fn role(&self, namespace: &str, reference: &RoleRef) -> Result<&Role, String> {
        let place = if reference.is_cluster_role() { "" } else { namespace };
        let is_known = reference.is_cluster_role() || reference.kind == "Role" && !namespace.is_empty();
        let role = self.roles.get(place).and_then(|names| names.get(&reference.name));
        role.filter(|_| is_known).ok_or_else(|| reference.missing())
    }

    /// The bindings of a user: first those in the whole cluster, then those in the namespace, if there is one.
    fn held<'p>(&'p self, user: &'p UserInfo, namespace: &'p str) -> impl Iterator<Item = Held<'p>> {
        let places = ["", namespace];
        let count = if namespace.is_empty() { 1 } else { 2 };
        places.into_iter().take(count).flat_map(move |namespace| {
            let names = self.bindings.get(namespace);
            names.into_iter().flatten().filter_map(move |(name, binding)| {
                let subject = binding.subjects.iter().find(|subject| subject.is(user, namespace))?;
                Some(Held {
                    namespace,
                    name,
                    binding,
                    subject,
                })
            })
        })
    }

    fn role_of(&self, held: &Held<'_>) -> Option<&Role> {
        self.role(held.namespace, &held.binding.role).ok()
    }

    /// The bindings of a user with the roles that exist, each role once: a tenant can bind a large one many times.
    fn roles_of<'p>(&'p self, user: &'p UserInfo, namespace: &'p str) -> impl Iterator<Item = (Held<'p>, &'p Role)> {
        let mut seen: HashSet<*const Role> = HashSet::new();
        let held = self.held(user, namespace);
        let roles = held.filter_map(|held| self.role_of(&held).map(|role| (held, role)));
        roles.filter(move |(_, role)| seen.insert(std::ptr::from_ref(*role)))
    }

    fn grant<'p>(&'p self, user: &'p UserInfo, asked: &'p Attributes<'_>) -> Option<Held<'p>> {
        let mut roles = self.roles_of(user, asked.namespace());
        let granted = roles.find(|(_, role)| role.rules.iter().any(|rule| rule.allows(asked)));
        granted.map(|(held, _)| held)
    }

    /// Whether a user has a permission.
    pub fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool {
        self.grant(user, asked).is_some()
    }

    /// Whether a user has a permission, and the reason.
    pub fn decide(&self, user: &UserInfo, asked: &Attributes<'_>) -> Decision {
        match self.grant(user, asked) {
            Some(held) => Decision {
                allowed: true,
                reason: held.reason(),
            },
            None => Decision {
                allowed: false,
                reason: self
                    .problems(user, asked.namespace())
                    .map(|why| format!("RBAC: {why}"))
                    .unwrap_or_default(),
            },
        }
    }

    /// The missing roles of a user's bindings.
    pub fn problems(&self, user: &UserInfo, namespace: &str) -> Option<String> {
        let mut seen = HashSet::new();
        let wrong = |held: Held<'_>| self.role(held.namespace, &held.binding.role).err();
        let missing = self.held(user, namespace).filter_map(wrong);
        let missing: Vec<String> = missing.filter(|why| seen.insert(why.clone())).collect();
        match missing.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("[{}]", many.join(", "))),
        }
    }

    /// All rules of a user in a namespace, or in the cluster if it is empty.
    pub fn rules_of(&self, user: &UserInfo, namespace: &str) -> Vec<Rule> {
        let roles = self.roles_of(user, namespace);
        roles.flat_map(|(_, role)| role.rules.iter().cloned()).collect()
    }

    /// The aggregated `ClusterRoles` whose rules are outdated, with their desired rules.
    pub fn stale(&self) -> Vec<(String, Vec<Rule>)> {
        let empty = BTreeMap::new();
        let roles = self.roles.get("").unwrap_or(&empty);
        let gathering = roles
            .iter()
            .filter_map(|(name, role)| Some((name, role, role.gathers.as_ref()?)));
        gathering
            .filter_map(|(name, role, selectors)| {
                let mut seen: HashSet<&Rule> = HashSet::new();
                let others = roles.iter().filter(|(other, _)| *other != name);
                let gathered = others.filter(|(_, r)| selectors.iter().any(|s| s.matches(&r.labels)));
                let rules = gathered.flat_map(|(_, other)| &other.rules);
                let rules: Vec<Rule> = rules.filter(|rule| seen.insert(rule)).cloned().collect();
                (rules != role.rules).then(|| (name.clone(), rules))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
