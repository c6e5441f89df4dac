"""Many solvers on many problems: isolated runs, a ledger that survives anything, and the tables that compare them."""
