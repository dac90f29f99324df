//! What is read from objects of any kind.
