"""Series decomposition: cuts, blocks between them, and the shortest path over pairs of a cut and a device class."""
