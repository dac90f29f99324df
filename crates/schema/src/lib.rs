//! Structural OpenAPI schemas: defaulting, pruning, validation, CEL rules.
