//! A judge is what it says: a real API server that goes with whoever started it. Skipped aloud where the tools are not built.

mod life;
