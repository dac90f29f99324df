//! What a request to an API server may cost. Its sender chooses what it contains, so no cost may multiply with what was sent. The table in
//! the README of `apiserver` has the same limits.

use std::time::Duration;

/// Bytes of a request's body. kube-apiserver has the same limit.
pub const BODY_BYTES: usize = 3 << 20;
/// Bytes of an object that is stored. No request could replace a larger one.
pub const OBJECT_BYTES: usize = BODY_BYTES;
/// The time in which a request arrives, and in which it is answered.
pub const REQUEST_TIME: Duration = Duration::from_mins(1);
/// Bytes of a body, of the object that it changes, or of objects that are decoded or written in another form to be answered, that are handled
/// without giving up the thread to other requests.
pub const LIGHT_BYTES: usize = 64 << 10;
/// Bytes of objects that are copied into an answer as they are stored without giving up the thread.
pub const LIGHT_COPIED_BYTES: usize = 4 << 20;
/// Bytes of an answer in YAML or in indented JSON. Its objects have fewer: each level of theirs indents all below it.
pub const ENCODED_BYTES: usize = 64 << 20;
/// Bytes of a query that are handled without giving up the thread: selectors are compared with every object.
pub const LIGHT_QUERY_BYTES: usize = 4 << 10;
/// Objects of a kind that are listed without giving up the thread.
pub const LIGHT_LIST: usize = 1_000;
/// Requests of one user above [`LIGHT_BYTES`] that arrive, wait or run at the same time.
pub const HEAVY_REQUESTS_OF_A_USER: usize = 16;
/// Of these, the requests that give their turn back while they wait for a webhook. Each keeps its object in memory.
pub const PARKED_OF_A_USER: usize = 4;
/// How long such a request waits for its turn.
pub const HEAVY_WAIT: Duration = Duration::from_secs(15);
/// Watches of one user at the same time.
pub const WATCHES_OF_A_USER: usize = 400;
/// Bytes of the selectors of a watch, which are compared with every change.
pub const WATCH_SELECTOR_BYTES: usize = 8 << 10;
/// Requests of one user whose body is waited for at the same time. Their headers are in memory.
pub const BODIES_OF_A_USER: usize = 1_000;
/// Bytes of an answer that are sent without being counted.
pub const LIGHT_ANSWER_BYTES: usize = 1 << 10;
/// Bytes of larger answers to one user that are not sent yet.
pub const ANSWER_BYTES_OF_A_USER: usize = 256 << 20;
/// With no more unsent bytes than this, the next answer to a user may have any size.
pub const FEW_ANSWER_BYTES: usize = 16 << 20;
/// Connections of one user at the same time.
pub const CONNECTIONS_OF_A_USER: usize = 256;
/// Connections without an authenticated request at the same time. The oldest makes room for a new one.
pub const UNKNOWN_CONNECTIONS: usize = 256;
/// Requests on one HTTP/2 connection at the same time. All watches of a client may share one.
pub const STREAMS: u32 = 1000;
/// Headers of a request over HTTP/1.1. Over HTTP/2, only their bytes are limited.
pub const HEADERS: usize = 1_000;
/// Bytes of the request line and the headers of a request. Over HTTP/2, each header counts 32 bytes more.
pub const HEADER_BYTES: usize = 64 << 10;

/// Levels of an object that is stored, with its managed fields. Decoders take 128, and lists, watches and reviews add some.
pub const OBJECT_DEPTH: usize = 120;
/// Duplicate and unknown fields that are reported. kube-apiserver has the same limit.
pub const STRICT_ERRORS: usize = 100;
/// Duplicate and unknown fields that are looked at, of which some may be the same.
pub const STRICT_ERRORS_FOUND: usize = 10_000;
/// Bytes of a path in an error, and of a duplicate or unknown field.
pub const PATH_BYTES: usize = 1024;
/// Errors of fields in an answer.
pub const FIELD_ERRORS: usize = 1_000;
/// Bytes of all errors of fields in an answer, if it has more than one.
pub const FIELD_ERROR_BYTES: usize = 192 << 10;
/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 256 << 10;
/// Parts of an applied configuration that do not match the schema and are reported.
pub const APPLY_PROBLEMS: usize = 100;
/// Fields of other managers that a conflict lists.
pub const CONFLICTS: usize = 1_000;
/// Bytes of managers and paths that a conflict lists.
pub const CONFLICT_BYTES: usize = 128 << 10;

/// Levels of filters in a JSONPath.
pub const PATH_LEVELS: usize = 8;
/// Values of an object that a JSONPath visits for a cell of a table.
pub const PATH_VALUES: usize = 10_000;

/// Owner references that an error lists.
pub const OWNERS_LISTED: usize = 50;
/// Errors about further controllers among owner references: each of them lists references.
pub const CONTROLLER_ERRORS: usize = 10;
/// Combinations of API group, resource, name and verb that a grant may have. The default roles have some hundreds.
pub const GRANTED_COMBINATIONS: usize = 10_000;
/// Combinations of a grant times the values in the rules of the user who grants, who has them all compared. About 0.3 s.
pub const GRANTED_COMPARISONS: usize = 20_000_000;
/// Missing rights that a refusal lists.
pub const MISSING_RIGHTS: usize = 100;

/// Operations of a JSON patch. kube-apiserver has the same limit.
pub const PATCH_OPERATIONS: usize = 10_000;
/// Bytes that the operations of a JSON patch copy. kube-apiserver has the same limit.
pub const PATCH_COPIED_BYTES: usize = 3 << 20;
/// Values that the operations of a JSON patch add or move, with the items of lists that move because another is added or removed before them.
pub const PATCH_MOVED_ITEMS: usize = 1 << 24;

/// The cost of all validation rules (CEL) for one object, about a second. kube-apiserver has the same limit.
pub const RULE_COST: u64 = 10_000_000;
/// The cost of rules that are evaluated without giving up the thread to other requests.
pub const LIGHT_RULE_COST: u64 = 100_000;
/// The cost to compile one regular expression that a request contains, by estimate 50 ms and 12 MB: 100,000 take 20 ms and 5 MB. The patterns of Cluster API cost up to 2,000.
pub const PATTERN_COST: u64 = 250_000;
/// The cost to compile all regular expressions of one object.
pub const PATTERNS_COST: u64 = 400_000;

/// The cost of one rendering of a template, about 50 ms. A unit is about a byte of memory, or two nanoseconds.
pub const RENDER_COST: usize = 24 << 20;
/// The cost of all patches of a ClusterClass for one Cluster, about 0.2 s. Those of our examples cost less than a thousandth of it.
pub const PATCHES_COST: usize = 96 << 20;
/// The cost of rendering a name.
pub const NAME_COST: usize = 1 << 20;

/// Bytes of the kubeconfig of a workload cluster. A usual one has less than 10,000.
pub const KUBECONFIG_BYTES: usize = 256 << 10;

/// Warnings in the answer of a webhook that are looked at. A response has room for fewer.
pub const WEBHOOK_WARNINGS: usize = 1_000;
/// Bytes of such a warning.
pub const WEBHOOK_WARNING_BYTES: usize = 4096;

/// Names that a condition lists of what a namespace still has.
pub const NAMES_LISTED: usize = 50;

/// How long the rules of a kind count as expensive after they were for some object.
pub const RULES_REMEMBERED: Duration = Duration::from_mins(1);
