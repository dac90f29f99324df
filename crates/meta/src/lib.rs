//! Kubernetes vocabulary: names, object keys, versions, quantities, durations, clocks.
