//! Functions for objects of any kind: metadata, names, owner references, selectors, preparation, validation, conversion and table
//! rows.

pub(crate) mod conversion;
pub(crate) mod convert;
pub(crate) mod converter;
pub(crate) mod cross_object;
pub(crate) mod embedded;
pub(crate) mod encoding;
pub(crate) mod forms;
pub(crate) mod fresh;
pub(crate) mod namespace;
pub(crate) mod prepare;
pub(crate) mod resource;
pub(crate) mod scale;
pub(crate) mod service_index;
pub(crate) mod stored;
pub(crate) mod table;
pub(crate) mod validate;
pub(crate) mod view;
