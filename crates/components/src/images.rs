//! Images of containers.
