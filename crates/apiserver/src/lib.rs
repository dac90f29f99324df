//! A Kubernetes-compatible API server that knows no kind but the built-in ones.
