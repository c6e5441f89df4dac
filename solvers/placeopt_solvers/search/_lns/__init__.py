"""Large neighbourhood search: CP-SAT improves parts of a schedule."""
