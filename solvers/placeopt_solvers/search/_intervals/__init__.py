"""Parts of a schedule as problems: exact heads and tails, improved parts inserted again."""
