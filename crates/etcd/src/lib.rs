//! The part of the etcd v3 API that control plane management needs.
