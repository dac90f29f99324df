//! The CEL rules that the schemas carry.

use serde_json::{Value, json};

/// The condition types that health checks themselves set or that follow from them, and so cannot be checked.
const RESERVED_CONDITION_TYPES: [&str; 5] = [
    "Ready",
    "Available",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "ExternallyRemediated",
];

/// A Machine condition named in a health check must not be one that the health check would feed on.
pub fn unhealthy_machine_condition_type() -> Value {
    let quoted: Vec<String> = RESERVED_CONDITION_TYPES.iter().map(|t| format!("'{t}'")).collect();
    json!([{
        "rule": format!("!(self in [{}])", quoted.join(", ")),
        "message": format!("this condition type cannot be used in a health check (reserved: {})", RESERVED_CONDITION_TYPES.join(", ")),
    }])
}

/// A list has no entry twice.
pub fn unique(list: &str) -> Value {
    json!([{
        "rule": "self.all(entry, self.exists_one(other, other == entry))",
        "message": format!("entries in {list} must be unique"),
    }])
}

/// A command line names each argument once.
pub fn unique_argument_names() -> Value {
    json!([{
        "rule": "self.all(arg, self.exists_one(other, other.name == arg.name))",
        "message": "each argument name may appear only once",
    }])
}

/// A partition table is described either by one flag or by a list of partitions.
pub fn partition_layout() -> Value {
    json!([{
        "rule": "has(self.layout) != has(self.diskLayout)",
        "message": "set either layout or diskLayout, and not both",
    }])
}

/// The partition types that cloud-init knows by name, or a GPT type GUID.
pub fn partition_type() -> Value {
    json!([{
        "rule": "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')",
        "message": "use Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended, or the GUID of a GPT partition type",
    }])
}
