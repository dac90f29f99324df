//! What many conversions share.
