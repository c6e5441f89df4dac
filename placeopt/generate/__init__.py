"""Models, random graphs and device networks, generated as problem documents."""
