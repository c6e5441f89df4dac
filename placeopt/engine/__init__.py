"""The native engine: hot loops in C++, compiled when placeopt is installed."""
