"""Print tables and texts of commands on a terminal."""
