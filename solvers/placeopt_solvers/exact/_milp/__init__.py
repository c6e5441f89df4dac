"""The mixed-integer linear program: variables, constraints, objective, and how it is solved."""
