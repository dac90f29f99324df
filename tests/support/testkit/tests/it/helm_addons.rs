//! Charts on simulated clusters, with the real helm: from a HelmChartProxy to the output of `helm list` there.

mod choice;
mod example;
mod input;
mod life;
mod world;
