//! Values of enumerated fields.

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

/// The content of a file is literal.
pub const CONTENT_FORMAT_RAW: &str = "Raw";
/// The content of a file is a Go template.
pub const CONTENT_FORMAT_TEMPLATE: &str = "Template";

/// RSA keys of 2048 bits, the default of kubeadm.
pub const ENCRYPTION_RSA_2048: &str = "RSA-2048";
/// RSA keys of 3072 bits.
pub const ENCRYPTION_RSA_3072: &str = "RSA-3072";
/// RSA keys of 4096 bits.
pub const ENCRYPTION_RSA_4096: &str = "RSA-4096";
/// ECDSA keys on curve P-256.
pub const ENCRYPTION_ECDSA_P256: &str = "ECDSA-P256";
/// ECDSA keys on curve P-384.
pub const ENCRYPTION_ECDSA_P384: &str = "ECDSA-P384";
