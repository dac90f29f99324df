//! Runs any set of controllers, or all of them with the embedded API server.
