"""Certified lower bounds: quick integer bounds, relaxations, and the engines that solve them."""
