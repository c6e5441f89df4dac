"""Ready lists: the next task is chosen among those whose predecessors are placed."""
