"""Questions that need several runs: comparison, explanation of infeasibility, replacement after a change."""
