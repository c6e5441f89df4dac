"""Graphs and problems of other tools, NetworkX graphs, and problems written as documents."""
