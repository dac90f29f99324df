//! The result of a read.

/// The result of a read. An observation is total, so a failed read is data as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// The value exists.
    Found(T),
    /// The value does not exist.
    NotFound,
    /// The read failed, so it is unknown whether the value exists. The text is the reason.
    Failed(String),
}

impl<T> Seen<T> {
    /// The value, if it was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::NotFound | Self::Failed(_) => None,
        }
    }

    /// Why the read failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(why) => Some(why),
            Self::Found(_) | Self::NotFound => None,
        }
    }

    /// True if the value is known not to exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound)
    }

    /// Changes the found value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Found(value) => Seen::Found(f(value)),
            Self::NotFound => Seen::NotFound,
            Self::Failed(why) => Seen::Failed(why),
        }
    }

    /// The same with a borrowed value.
    pub fn as_ref(&self) -> Seen<&T> {
        match self {
            Self::Found(value) => Seen::Found(value),
            Self::NotFound => Seen::NotFound,
            Self::Failed(why) => Seen::Failed(why.clone()),
        }
    }
}

impl<T> From<Option<T>> for Seen<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NotFound, Self::Found)
    }
}

impl<T, E: std::fmt::Display> From<Result<Option<T>, E>> for Seen<T> {
    fn from(value: Result<Option<T>, E>) -> Self {
        match value {
            Ok(value) => value.into(),
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}
