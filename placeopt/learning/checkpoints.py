"""Weights in files of the format safetensors, with all parameters in the header."""
