"""Import graphs and problems of other tools, convert NetworkX graphs, and write problems as documents."""
