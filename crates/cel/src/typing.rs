//! Types of expressions, and their assignability.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::declared::Declared;

/// The type of an expression.
#[derive(Debug, Clone)]
pub(super) enum Ty {
    /// Not known before evaluation.
    Dyn,
    /// The type of a part with a reported error.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Self>),
    Map(Arc<Self>, Arc<Self>),
    Optional(Arc<Self>),
    /// A type as a value.
    Type(Arc<Self>),
    /// A type of Kubernetes.
    Extra(&'static str),
    /// An object with named fields.
    Object(Arc<Declared>),
    /// A type parameter.
    Param(usize),
}

/// The types without parameters.
const PLAIN: [(&str, Ty); 9] = [
    ("dyn", Ty::Dyn),
    ("bool", Ty::Bool),
    ("int", Ty::Int),
    ("uint", Ty::Uint),
    ("double", Ty::Double),
    ("string", Ty::String),
    ("bytes", Ty::Bytes),
    ("duration", Ty::Duration),
    ("timestamp", Ty::Timestamp),
];

impl Ty {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    /// A type without parameters, by name.
    pub(super) fn plain(name: &str) -> Option<Self> {
        PLAIN.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty.clone())
    }

    /// The type of a type name in an expression.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let named = match name {
            "list" => Self::list(Self::Dyn),
            "map" => Self::map(Self::Dyn, Self::Dyn),
            "null_type" => Self::Null,
            "optional_type" => Self::optional(Self::Dyn),
            "type" => return Some(Self::Type(Arc::new(Self::Dyn))),
            "dyn" => return None,
            "net.IP" => Self::Extra("net.IP"),
            "net.CIDR" => Self::Extra("net.CIDR"),
            "google.protobuf.Duration" => Self::Duration,
            "google.protobuf.Timestamp" => Self::Timestamp,
            other => Self::plain(other)?,
        };
        Some(Self::Type(Arc::new(named)))
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type without `optional`, and whether it was optional.
    pub(super) fn unwrap_optional(&self) -> (Self, bool) {
        match self {
            Self::Optional(inner) => (inner.as_ref().clone(), true),
            other => (other.clone(), false),
        }
    }

    /// Whether all values have the same size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether null is assignable to it.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Duration | Self::Timestamp | Self::Optional(_) | Self::Extra(_) | Self::Object(_)
        )
    }

    /// Whether it is the same type, parameters included.
    pub(super) fn is_exactly(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Type(a), Self::Type(b)) => a.is_exactly(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.is_exactly(c) && b.is_exactly(d),
            (Self::Extra(a), Self::Extra(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => self.is_simple() && other.is_simple() && std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn is_simple(&self) -> bool {
        !matches!(
            self,
            Self::List(_)
                | Self::Optional(_)
                | Self::Type(_)
                | Self::Map(..)
                | Self::Extra(_)
                | Self::Object(_)
                | Self::Param(_)
        )
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Type(of) => write!(f, "type({of})"),
            Self::Extra(name) => f.write_str(name),
            Self::Object(declared) => f.write_str(&declared.name),
            Self::Param(id) => write!(f, "_var{id}"),
            plain => {
                let known = PLAIN.iter().find(|(_, ty)| ty.is_exactly(plain));
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

/// The type parameters that are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping(HashMap<usize, Ty>);

impl Mapping {
    /// A type with known parameters replaced; `dynamic` replaces unknown ones with `dyn`.
    pub(super) fn substitute(&self, ty: &Ty, dynamic: bool) -> Ty {
        match ty {
            Ty::Param(id) => match self.0.get(id) {
                Some(known) => self.substitute(known, dynamic),
                None if dynamic => Ty::Dyn,
                None => ty.clone(),
            },
            Ty::List(of) => Ty::list(self.substitute(of, dynamic)),
            Ty::Optional(of) => Ty::optional(self.substitute(of, dynamic)),
            Ty::Type(of) => Ty::Type(Arc::new(self.substitute(of, dynamic))),
            Ty::Map(key, value) => Ty::map(self.substitute(key, dynamic), self.substitute(value, dynamic)),
            other => other.clone(),
        }
    }

    /// Whether a value of type `a` is assignable to `b`. If so, the resulting parameters are recorded.
    pub(super) fn assign(&mut self, a: &Ty, b: &Ty) -> bool {
        let mut attempt = self.clone();
        let fits = attempt.assignable(a, b);
        if fits {
            *self = attempt;
        }
        fits
    }

    /// [`Self::assign`] for lists of arguments.
    pub(super) fn assign_all(&mut self, a: &[Ty], b: &[Ty]) -> bool {
        let mut attempt = self.clone();
        let fits = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| attempt.assignable(a, b));
        if fits {
            *self = attempt;
        }
        fits
    }

    fn assignable(&mut self, a: &Ty, b: &Ty) -> bool {
        if let Ty::Param(id) = b {
            let (valid, known) = self.stands_for(a, *id);
            if valid {
                return true;
            }
            if known {
                return false;
            }
        }
        if let Ty::Param(id) = a {
            return self.stands_for(b, *id).0;
        }
        match (a, b) {
            _ if a.is_dyn_or_error() || b.is_dyn_or_error() => true,
            (Ty::Null, other) | (other, Ty::Null) => other.takes_null(),
            (Ty::Type(_), Ty::Type(_)) => true,
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => self.assignable(a, b),
            (Ty::Map(a, b), Ty::Map(c, d)) => self.assignable(a, c) && self.assignable(b, d),
            _ => a.is_exactly(b),
        }
    }

    /// Whether `ty` is possible for the parameter, and whether the parameter is known.
    fn stands_for(&mut self, ty: &Ty, id: usize) -> (bool, bool) {
        if matches!(ty, Ty::Param(other) if *other == id) {
            return (true, true);
        }
        if let Some(known) = self.0.get(&id).cloned() {
            if ty.is_exactly(&known) {
                return (true, true);
            }
            if self.assignable(ty, &known) {
                let general = most_general(ty, &known);
                if !self.occurs(id, &general) {
                    self.0.insert(id, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.occurs(id, ty) {
            return (false, false);
        }
        self.0.insert(id, ty.clone());
        (true, false)
    }

    fn occurs(&self, id: usize, within: &Ty) -> bool {
        match within {
            Ty::Param(other) => *other == id || self.0.get(other).is_some_and(|known| self.occurs(id, known)),
            Ty::List(of) | Ty::Optional(of) | Ty::Type(of) => self.occurs(id, of),
            Ty::Map(key, value) => self.occurs(id, key) || self.occurs(id, value),
            _ => false,
        }
    }
}

/// The more general one of two compatible types.
pub(super) fn most_general(a: &Ty, b: &Ty) -> Ty {
    if says_no_more(a, b) { a.clone() } else { b.clone() }
}

fn says_no_more(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Dyn | Ty::Param(_), _) | (Ty::Type(_), Ty::Type(_)) => true,
        (_, Ty::Dyn | Ty::Param(_)) => false,
        (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => says_no_more(a, b),
        (Ty::Map(a, b), Ty::Map(c, d)) => says_no_more(a, c) && says_no_more(b, d),
        _ => a.is_exactly(b),
    }
}
