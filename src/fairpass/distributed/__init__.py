"""Training on a graph that several processes share, each with some of its nodes."""
