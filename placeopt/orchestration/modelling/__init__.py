"""Build a problem in Python, part by part."""
