//! The variable `authorizer`: authorization checks in expressions.

use std::any::Any;
use std::sync::Arc;

use cel::common::functions::Function;
use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::library::{Args, AsVal as _, Outcome, give, text};

/// A permission: on a path, or on a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permission {
    /// `get`, `create`, ...
    pub verb: String,
    /// The path, if it is a permission on a path.
    pub path: Option<String>,
    /// API group.
    pub group: String,
    /// Resource.
    pub resource: String,
    /// Subresource, may be empty.
    pub subresource: String,
    /// Namespace, may be empty.
    pub namespace: String,
    /// Name, may be empty.
    pub name: String,
    /// Field selector of a list, watch or deletion of many, as it is written; may be empty.
    pub field_selector: String,
    /// Label selector, likewise.
    pub label_selector: String,
    /// Namespace and name of the service account; without one, the user of the request.
    pub account: Option<(String, String)>,
}

/// The result of an authorization check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permitted {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The reason; may be empty.
    pub reason: String,
}

/// Checks permissions.
pub trait Permissions: Send + Sync {
    /// Checks a permission.
    fn check(&self, asked: &Permission) -> Permitted;
}

/// A value of an expression about permissions.
#[derive(Clone)]
pub(super) enum Ask {
    /// The authorizer, perhaps for a service account.
    Authorizer(Arc<dyn Permissions>, Permission),
    /// A check of a path.
    Path(Arc<dyn Permissions>, Permission),
    /// A check of resources of a group.
    Group(Arc<dyn Permissions>, Permission),
    /// A check of a resource.
    Resource(Arc<dyn Permissions>, Permission),
    /// The result.
    Answer(Permitted),
}

static AUTHORIZER: Type = Type::new_unspecified_type("kubernetes.authorization.Authorizer");
static PATH: Type = Type::new_unspecified_type("kubernetes.authorization.PathCheck");
static GROUP: Type = Type::new_unspecified_type("kubernetes.authorization.GroupCheck");
static RESOURCE: Type = Type::new_unspecified_type("kubernetes.authorization.ResourceCheck");
static ANSWER: Type = Type::new_unspecified_type("kubernetes.authorization.Decision");

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Authorizer(_, asked) | Self::Path(_, asked) | Self::Group(_, asked) | Self::Resource(_, asked) => {
                f.debug_tuple("Ask").field(asked).finish()
            }
            Self::Answer(answer) => answer.fmt(f),
        }
    }
}

impl Val for Ask {
    fn get_type(&self) -> &Type {
        match self {
            Self::Authorizer(..) => &AUTHORIZER,
            Self::Path(..) => &PATH,
            Self::Group(..) => &GROUP,
            Self::Resource(..) => &RESOURCE,
            Self::Answer(_) => &ANSWER,
        }
    }

    fn cel_type() -> &'static Type {
        // Only registration macros call this, and they are not used with this type.
        &AUTHORIZER
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Ask {}

fn ask(args: &Args<'_, '_>) -> Result<Ask, ExecutionError> {
    args.first()
        .and_then(|value| value.as_ref_val().downcast_ref::<Ask>())
        .cloned()
        .ok_or(ExecutionError::MissingArgumentOrTarget)
}

/// Sets a field of a resource check.
fn about<'b, 'v>(args: &Args<'_, '_>, set: impl FnOnce(&mut Permission, String)) -> Outcome<'b, 'v> {
    let word = text(args, 1)?.as_ref().clone();
    match ask(args)? {
        Ask::Resource(who, mut asked) => {
            set(&mut asked, word);
            Ok(CowVal::owned(Ask::Resource(who, asked)))
        }
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

/// Converts one type of check to the next.
fn onward<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    let word = text(args, 1)?.as_ref().clone();
    Ok(CowVal::owned(match ask(args)? {
        Ask::Group(who, mut asked) => {
            asked.resource = word;
            Ask::Resource(who, asked)
        }
        Ask::Authorizer(who, mut asked) => {
            asked.group = word;
            Ask::Group(who, asked)
        }
        _ => return Err(ExecutionError::MissingArgumentOrTarget),
    }))
}

fn check<'b, 'v>(args: &Args<'_, '_>) -> Outcome<'b, 'v> {
    match ask(args)? {
        Ask::Path(who, mut asked) | Ask::Resource(who, mut asked) => {
            asked.verb = text(args, 1)?.to_string();
            Ok(CowVal::owned(Ask::Answer(who.check(&asked))))
        }
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

fn answer(args: &Args<'_, '_>) -> Result<Permitted, ExecutionError> {
    match ask(args)? {
        Ask::Answer(answer) => Ok(answer),
        _ => Err(ExecutionError::MissingArgumentOrTarget),
    }
}

/// Declares the functions.
pub(super) fn register(env: &mut Env) -> Result<(), DeclarationError> {
    let word = || vec![STRING_TYPE];
    let authorizer = || Type::new_unspecified_type("kubernetes.authorization.Authorizer");
    let group = || Type::new_unspecified_type("kubernetes.authorization.GroupCheck");
    let resource = || Type::new_unspecified_type("kubernetes.authorization.ResourceCheck");
    let path = || Type::new_unspecified_type("kubernetes.authorization.PathCheck");
    let decision = || Type::new_unspecified_type("kubernetes.authorization.Decision");
    env.add_member_overload("path", "authorizer_path", authorizer(), word(), |args| {
        match ask(&args)? {
            Ask::Authorizer(who, mut asked) => {
                asked.path = Some(text(&args, 1)?.as_ref().clone());
                Ok(CowVal::owned(Ask::Path(who, asked)))
            }
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        }
    })?;
    let accounts = vec![STRING_TYPE, STRING_TYPE];
    env.add_member_overload(
        "serviceAccount",
        "authorizer_account",
        authorizer(),
        accounts,
        |args| match ask(&args)? {
            Ask::Authorizer(who, mut asked) => {
                asked.account = Some((text(&args, 1)?.as_ref().clone(), text(&args, 2)?.as_ref().clone()));
                Ok(CowVal::owned(Ask::Authorizer(who, asked)))
            }
            _ => Err(ExecutionError::MissingArgumentOrTarget),
        },
    )?;
    env.add_member_overload("group", "authorizer_group", authorizer(), word(), |args| onward(&args))?;
    env.add_member_overload("resource", "authorizer_resource", group(), word(), |args| onward(&args))?;
    let parts: [(&str, Function); 5] = [
        ("subresource", |args| {
            about(&args, |asked, word| asked.subresource = word)
        }),
        ("namespace", |args| about(&args, |asked, word| asked.namespace = word)),
        ("name", |args| about(&args, |asked, word| asked.name = word)),
        ("fieldSelector", |args| {
            about(&args, |asked, word| asked.field_selector = word)
        }),
        ("labelSelector", |args| {
            about(&args, |asked, word| asked.label_selector = word)
        }),
    ];
    for (name, function) in parts {
        env.add_member_overload(name, name, resource(), word(), function)?;
    }
    env.add_member_overload("check", "path_check", path(), word(), |args| check(&args))?;
    env.add_member_overload("check", "resource_check", resource(), word(), |args| check(&args))?;
    let answers: [(&str, Function); 4] = [
        ("allowed", |args| give(answer(&args)?.allowed)),
        ("reason", |args| give(answer(&args)?.reason)),
        // The check itself never fails.
        ("errored", |args| give(answer(&args).is_err())),
        ("error", |args| answer(&args).and_then(|_| give(String::new()))),
    ];
    for (name, function) in answers {
        env.add_member_overload(name, name, decision(), vec![], function)?;
    }
    Ok(())
}
