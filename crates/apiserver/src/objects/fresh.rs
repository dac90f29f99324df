//! Values that the server generates for a new object.

/// Time, uid and name suffix for a new object.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    pub(crate) now: jiff::Timestamp,
    pub(crate) uid: String,
    pub(crate) suffix: String,
}
