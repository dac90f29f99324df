//! Writes YAML as kube-apiserver does.

pub(crate) use windlass_gocompat::yaml::document as write;
