"""Exporters: plans become the files that runtimes read; one module for each runtime."""
