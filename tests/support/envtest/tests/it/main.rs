//! A control plane for tests is a real API server that ends with the process that started it. Left out, with a message, if the
//! tools are not built.

mod life;
