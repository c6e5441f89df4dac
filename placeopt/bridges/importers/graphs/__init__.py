"""Import graphs: formats with attributes of any names, and formats of task graphs with fixed fields."""
