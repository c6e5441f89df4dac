"""Generate neural networks, random graphs and device networks as problem documents."""
