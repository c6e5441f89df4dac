"""Searches: improve a schedule until the time limit."""
