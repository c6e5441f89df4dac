"""Costs of operators: FLOP and bytes of memory traffic, from which a roofline model gives durations.

`formulas` has functions of sizes that all importers share. `onnx_rules` has a rule for each operator of ONNX.

A multiplication and an addition are two FLOP. Papers on neural networks usually count multiply-adds, which are half.
"""
