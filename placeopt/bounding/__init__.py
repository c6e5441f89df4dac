"""Certified lower bounds: quick ones in integers, relaxations, and the engines that solve them."""
