"""The compiled problem and a schedule: integer arrays, objective, memory, metrics and the shape of the task graph."""
