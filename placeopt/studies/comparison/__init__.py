"""Compare many solvers on many problems: isolated runs, a ledger that survives crashes, and tables."""
