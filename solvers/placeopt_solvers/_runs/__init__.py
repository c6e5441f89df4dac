"""What exact solvers and searches share: incumbents, runs, validity, coarser ticks."""
