"""Certified lower bounds that need no solver of a problem, and the engines of linear and constraint programs."""
