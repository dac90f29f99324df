//! The controller driver: caches, queue, apply, events, metrics, health.
