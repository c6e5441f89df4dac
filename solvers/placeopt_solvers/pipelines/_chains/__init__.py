"""Division of chains into stages with replicas."""
