"""Running one solver: arguments, the pipeline from a problem to a verified result, and cross-checked claims."""
