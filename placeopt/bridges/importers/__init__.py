"""Importers: files and objects of other tools become problem documents; one module for each format."""
