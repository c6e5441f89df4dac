"""Convert NetworkX graphs, and write problems as documents."""
