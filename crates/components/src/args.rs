//! Command lines: arguments of containers.
