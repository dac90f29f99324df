//! Versioned storage of encoded objects: memory and durable.
