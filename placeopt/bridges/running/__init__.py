"""Running: plans are executed, and measured times are compared with predicted ones."""
