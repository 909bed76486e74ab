//! Benchmark bodies, each a function of its size.
