//! Charts on simulated clusters, by the real helm: from a HelmChartProxy to what `helm list` shows there.

mod choice;
mod example;
mod input;
mod life;
mod world;
