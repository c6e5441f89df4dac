"""Submodular placement after Carbonari et al. (2017)."""
