"""Bridges to other tools: models, graphs and measurements become problems, and plans become what a runtime executes."""
