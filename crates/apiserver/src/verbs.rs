//! The verbs of the resource API: get, list, watch, create, update, patch, delete, and the subresources scale, eviction and binding.

pub(crate) mod call;
pub(crate) mod continue_token;
pub(crate) mod cost;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod mutation;
pub(crate) mod options;
pub(crate) mod pods;
pub(crate) mod read;
pub(crate) mod scale;
pub(crate) mod watch;
pub(crate) mod watch_lines;
pub(crate) mod watch_queue;
pub(crate) mod write;
