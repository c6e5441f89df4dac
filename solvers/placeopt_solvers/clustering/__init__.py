"""Clustering and fusion: join tasks first, then place the clusters."""
