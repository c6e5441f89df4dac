"""What commands print: tables and texts for a terminal."""
