//! The rights that a user must have for a write: a rule says which object the write refers to, and [`decide`] what the user may see of it.
//!
//! A controller copies with its own rights what an object of a user names in another namespace. So a user who
//! has a controller do that must be allowed to see it, or have a grant of its owner.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use futures::future::try_join_all;
use serde_json::Value;

use crate::rule::Change;

/// The verb of a grant: its user may refer to the object without seeing it.
pub const USE: &str = "use";
/// The most parts of an object whose rights are asked for. A review has seconds.
const MOST_PARTS: usize = 50;

/// An object that a write refers to, and that a controller copies from.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The field that refers to it.
    pub field: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// The version in which it is read.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its resource.
    pub resource: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it names itself in its namespace, and is copied, too.
    pub parts: fn(&Value) -> Vec<Part>,
}

/// An object that a referenced object names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A pure function that says what a write newly refers to; none for writes that leave the reference as it is.
pub type Refers = fn(&Change<'_>) -> Option<Reference>;

/// A right of the user of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right<'a> {
    /// The verb.
    pub verb: &'static str,
    /// The API group.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name; empty for all objects of the resource.
    pub name: &'a str,
}

/// What an API server knows of the user of a request, and of objects. An error says why it cannot be asked.
pub trait Asker: Sync {
    /// Whether the user has a right.
    fn may(&self, right: &Right<'_>) -> impl Future<Output = Result<bool, String>> + Send;
    /// A referenced object; none if it does not exist.
    fn read(&self, reference: &Reference) -> impl Future<Output = Result<Option<Value>, String>> + Send;
    /// The resource of a kind; none if it is not served.
    fn resource(&self, group: &str, kind: &str) -> impl Future<Output = Result<Option<String>, String>> + Send;
}

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user lacks a right.
    Forbidden(String),
    /// It is not known whether the user has the rights. The write may be repeated.
    Unknown(String),
}

/// Decides whether a user may refer to an object: with the verb [`USE`] on it, or with `get` on it and on all of its parts. Of an object
/// that does not exist only `get` by its name is asked for.
pub async fn decide(reference: &Reference, user: &str, asker: &impl Asker) -> Result<(), Refusal> {
    let unknown = |why: String| {
        Refusal::Unknown(format!(
            "it is not known whether User {user:?} may refer to {} {}/{} in {}: {why}",
            reference.kind, reference.namespace, reference.name, reference.field
        ))
    };
    let right = |verb| Right {
        verb,
        group: reference.group,
        resource: reference.resource,
        namespace: &reference.namespace,
        name: &reference.name,
    };
    if asker.may(&right(USE)).await.map_err(unknown)? {
        return Ok(());
    }
    if !asker.may(&right("get")).await.map_err(unknown)? {
        return Err(reference.forbidden(user, &right("get")));
    }
    let Some(object) = asker.read(reference).await.map_err(unknown)? else {
        return Ok(());
    };
    let parts: BTreeSet<Part> = (reference.parts)(&object).into_iter().collect();
    if parts.len() > MOST_PARTS {
        return Err(reference.refused(
            user,
            &format!("it names more than {MOST_PARTS} objects, of which not all are asked for"),
        ));
    }
    may_get(reference, user, &parts, asker).await.map_err(unknown)?
}

/// Whether a user may `get` all parts of an object. The inner error is a refusal. It does not name the parts: it also goes to clients that
/// only say that they are the API server.
async fn may_get(
    reference: &Reference,
    user: &str,
    parts: &BTreeSet<Part>,
    asker: &impl Asker,
) -> Result<Result<(), Refusal>, String> {
    let kinds: BTreeSet<(&str, &str)> = parts
        .iter()
        .map(|part| (part.group.as_str(), part.kind.as_str()))
        .collect();
    let mut resources = BTreeMap::new();
    for (group, kind) in kinds {
        let Some(resource) = asker.resource(group, kind).await? else {
            let why = "cannot use it, because it names an object of a kind which is not served";
            return Ok(Err(reference.refused(user, why)));
        };
        resources.insert((group, kind), resource);
    }
    // Few users have rights to single objects, and an object may name many of one resource.
    let whole: BTreeSet<(&str, &str)> = resources
        .iter()
        .map(|((group, _), resource)| (*group, resource.as_str()))
        .collect();
    let get = |group, resource, name| Right {
        verb: "get",
        group,
        resource,
        namespace: &reference.namespace,
        name,
    };
    let whole: Vec<Right<'_>> = whole.into_iter().map(|(group, of)| get(group, of, "")).collect();
    let allowed = try_join_all(whole.iter().map(|right| asker.may(right))).await?;
    let allowed: BTreeSet<(&str, &str)> = whole
        .iter()
        .zip(allowed)
        .filter_map(|(right, is_allowed)| is_allowed.then_some((right.group, right.resource)))
        .collect();
    let single = parts.iter().filter_map(|part| {
        let resource = resources.get(&(part.group.as_str(), part.kind.as_str()))?.as_str();
        let is_open = !allowed.contains(&(part.group.as_str(), resource));
        is_open.then(|| get(&part.group, resource, &part.name))
    });
    let single: Vec<Right<'_>> = single.collect();
    let answers = try_join_all(single.iter().map(|right| asker.may(right))).await?;
    if answers.contains(&false) {
        return Ok(Err(reference.refused(user, "cannot get all objects that it names")));
    }
    Ok(Ok(()))
}

impl Reference {
    fn forbidden(&self, user: &str, lacking: &Right<'_>) -> Refusal {
        let Right {
            verb,
            group,
            resource,
            namespace,
            name,
        } = lacking;
        let why = format!(
            "cannot {verb} resource {resource:?} named {name:?} in API group {group:?} in the namespace {namespace:?}"
        );
        self.refused(user, &why)
    }

    fn refused(&self, user: &str, why: &str) -> Refusal {
        let Self {
            field,
            group,
            kind,
            resource,
            namespace,
            name,
            ..
        } = self;
        Refusal::Forbidden(format!(
            "{field} refers to {kind} {namespace}/{name}: User {user:?} {why}, and cannot use {resource:?} in API group {group:?} in the \
             namespace {namespace:?} either; an administrator of that namespace allows it by a Role with verb {USE:?} on \
             {resource}.{group} and a RoleBinding for the user"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    /// Rights as `verb resource/name`, and the object.
    struct Table<'a> {
        rights: &'a [&'a str],
        object: Option<Value>,
        fails_at: Option<&'a str>,
    }

    impl Asker for Table<'_> {
        async fn may(&self, right: &Right<'_>) -> Result<bool, String> {
            let asked = format!("{} {}/{}", right.verb, right.resource, right.name);
            assert_eq!(right.namespace, "theirs");
            if self.fails_at == Some(asked.as_str()) {
                return Err("no answer".to_owned());
            }
            Ok(self.rights.contains(&asked.as_str()))
        }

        async fn read(&self, _: &Reference) -> Result<Option<Value>, String> {
            Ok(self.object.clone())
        }

        async fn resource(&self, _: &str, kind: &str) -> Result<Option<String>, String> {
            Ok((kind != "Absent").then(|| format!("{}s", kind.to_lowercase())))
        }
    }

    /// What a function that waits for nothing gives.
    fn now<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().unwrap()
    }

    fn reference() -> Reference {
        Reference {
            field: "spec.class",
            group: "g.io",
            version: "v1",
            kind: "Class",
            resource: "classes",
            namespace: "theirs".to_owned(),
            name: "c".to_owned(),
            parts: |class| {
                let kinds = class["parts"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                let part = |kind: &str| Part {
                    group: "g.io".to_owned(),
                    kind: kind.to_owned(),
                    name: "p".to_owned(),
                };
                kinds.map(part).collect()
            },
        }
    }

    #[test]
    fn a_grant_or_the_sight_of_everything_is_needed() {
        let check = |rights: &[&str], parts: Option<&[&str]>, expect: Option<&str>| {
            let object = parts.map(|parts| json!({"parts": parts}));
            let table = Table {
                rights,
                object,
                fails_at: None,
            };
            match (now(decide(&reference(), "eve", &table)), expect) {
                (Ok(()), None) => {}
                (Err(Refusal::Forbidden(why)), Some(expect)) => {
                    let told =
                        why.contains(expect) && why.contains("\"eve\"") && why.contains("verb \"use\" on classes.g.io");
                    assert!(told, "{why}");
                }
                (found, _) => panic!("{rights:?} {parts:?}: {found:?}"),
            }
        };
        check(&["use classes/c"], Some(&["Pod"]), None);
        check(&[], Some(&[]), Some("get resource \"classes\" named \"c\""));
        check(&["get classes/c"], None, None);
        check(
            &["get classes/c"],
            Some(&["Pod"]),
            Some("cannot get all objects that it names"),
        );
        check(&["get classes/c", "get pods/"], Some(&["Pod"]), None);
        check(
            &["get classes/c", "get pods/"],
            Some(&["Pod", "Job"]),
            Some("cannot get all"),
        );
        check(&["get classes/c", "get pods/p"], Some(&["Pod", "Pod"]), None);
        check(
            &["get classes/c", "get pods/p"],
            Some(&["Absent", "Pod"]),
            Some("names an object of a kind which is not served"),
        );
        let many: Vec<String> = (0..=MOST_PARTS).map(|n| format!("Kind{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&["get classes/c"], Some(&many), Some("more than 50"));
    }

    /// Also of an API server in this process, whose answers are ready.
    #[test]
    fn many_parts_are_asked_for_together_and_those_of_one_resource_once() {
        let names = |count: usize| -> Value {
            let kinds = (0..count).map(|number| format!("Kind{number}"));
            json!({"parts": kinds.collect::<Vec<_>>()})
        };
        let mut rights: Vec<String> = (0..MOST_PARTS).map(|number| format!("get kind{number}s/p")).collect();
        rights.push("get classes/c".to_owned());
        let rights: Vec<&str> = rights.iter().map(String::as_str).collect();
        let table = Table {
            rights: &rights,
            object: Some(names(MOST_PARTS)),
            fails_at: None,
        };
        assert_eq!(decide(&reference(), "eve", &table).now_or_never(), Some(Ok(())));
        let waits = Waits {
            table,
            asked: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        };
        let decided = futures::executor::block_on(decide(&reference(), "eve", &waits));
        assert_eq!(decided, Ok(()));
        assert_eq!(waits.most.load(Ordering::Relaxed), MOST_PARTS);
        let many = Reference {
            parts: |_| {
                let part = |number: usize| Part {
                    group: "g.io".to_owned(),
                    kind: "Pod".to_owned(),
                    name: number.to_string(),
                };
                (0..MOST_PARTS).map(part).collect()
            },
            ..reference()
        };
        waits.asked.store(0, Ordering::Relaxed);
        let table = Table {
            rights: &["get classes/c", "get pods/"],
            object: Some(json!({})),
            fails_at: None,
        };
        let waits = Waits { table, ..waits };
        assert_eq!(futures::executor::block_on(decide(&many, "eve", &waits)), Ok(()));
        assert_eq!(waits.asked.load(Ordering::Relaxed), 3);
    }

    /// Answers only after all other questions at the time were asked.
    struct Waits<'a> {
        table: Table<'a>,
        asked: AtomicUsize,
        open: AtomicUsize,
        most: AtomicUsize,
    }

    impl Asker for Waits<'_> {
        async fn may(&self, right: &Right<'_>) -> Result<bool, String> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(open, Ordering::Relaxed);
            let mut is_first = true;
            let others_first = futures::future::poll_fn(|context| {
                if std::mem::take(&mut is_first) {
                    context.waker().wake_by_ref();
                    return std::task::Poll::Pending;
                }
                std::task::Poll::Ready(())
            });
            others_first.await;
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.table.may(right).await
        }

        async fn read(&self, reference: &Reference) -> Result<Option<Value>, String> {
            self.table.read(reference).await
        }

        async fn resource(&self, group: &str, kind: &str) -> Result<Option<String>, String> {
            self.table.resource(group, kind).await
        }
    }

    #[test]
    fn a_question_without_an_answer_lets_nothing_pass() {
        for fails_at in ["use classes/c", "get classes/c", "get pods/p"] {
            let table = Table {
                rights: &["get classes/c", "get pods/p"],
                object: Some(json!({"parts": ["Pod"]})),
                fails_at: Some(fails_at),
            };
            let found = now(decide(&reference(), "eve", &table));
            assert!(
                matches!(&found, Err(Refusal::Unknown(why)) if why.ends_with("no answer")),
                "{fails_at}: {found:?}"
            );
        }
    }
}
