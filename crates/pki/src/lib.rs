//! Certificate authorities, leaf certificates, kubeconfig rendering.
