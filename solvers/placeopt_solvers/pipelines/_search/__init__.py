"""Division of orders into stages, and simulated annealing of stages and devices."""
