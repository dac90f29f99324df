//! Words that appear as values of fields.

/// Format of bootstrap data.
pub const FORMAT_CLOUD_CONFIG: &str = "cloud-config";
/// Format of bootstrap data.
pub const FORMAT_IGNITION: &str = "ignition";

/// Encoding of the content of a file.
pub const ENCODING_BASE64: &str = "base64";
/// Encoding of the content of a file.
pub const ENCODING_GZIP: &str = "gzip";
/// Encoding of the content of a file.
pub const ENCODING_GZIP_BASE64: &str = "gzip+base64";

/// The content of a file is used as it is.
pub const CONTENT_FORMAT_RAW: &str = "Raw";
/// The content of a file is a Go template.
pub const CONTENT_FORMAT_TEMPLATE: &str = "Template";

/// Keys made by kubeadm when nothing else is wished for.
pub const ENCRYPTION_RSA_2048: &str = "RSA-2048";
/// Larger RSA keys.
pub const ENCRYPTION_RSA_3072: &str = "RSA-3072";
/// The largest RSA keys.
pub const ENCRYPTION_RSA_4096: &str = "RSA-4096";
/// Elliptic curve keys on P-256.
pub const ENCRYPTION_ECDSA_P256: &str = "ECDSA-P256";
/// Elliptic curve keys on P-384.
pub const ENCRYPTION_ECDSA_P384: &str = "ECDSA-P384";
