"""Problems and results in words, data frames, plots, traces and HTML pages."""
