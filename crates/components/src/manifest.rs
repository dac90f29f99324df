//! Objects in YAML.
