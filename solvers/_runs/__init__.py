"""What exact solvers and searches share: incumbents, warm starts, validity, coarser ticks."""
