"""What constructive heuristics share: the timeline, placement operations, groups, insertion and repair."""
