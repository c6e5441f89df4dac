"""The compiled problem and a schedule: integer arrays, what they are worth, the shape of the task graph."""
