"""Forks, joins and fork-joins: an exact method for independent tasks between a source and a sink."""
