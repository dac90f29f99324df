//! ClusterClass, Cluster and what exists, in; desired objects, out.
