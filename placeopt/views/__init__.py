"""Show problems and results as text, data frames, plots, traces and HTML pages."""
