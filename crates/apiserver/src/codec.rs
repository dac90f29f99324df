//! Wire formats: JSON, YAML and protobuf, and the wording of Go's decoders in error messages.

pub(crate) mod decoding;
pub(crate) mod go_wording;
pub(crate) mod protobuf;
pub(crate) mod yaml;
