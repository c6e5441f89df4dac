"""Large neighbourhood search: parts of a schedule are freed and solved again by CP-SAT."""
