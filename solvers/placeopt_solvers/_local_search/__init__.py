"""The core of every search: incremental evaluation of an order and a placement.

A state is a topological order of the tasks and a device for each group. Its schedule starts every task, in that order,
as soon as its device, its release, its data and its resources allow. Under ports, the transfers to a task are booked at
its turn. The order may be that of the starts, so every schedule without unnecessary waiting can be reached.

    instance    the problem's arrays for the engine, and the weights of the objective
    search      walkers on several threads, each with one cooling after the other
    strategies  the coolings of annealing and of iterated local search, and their tuning

The engine holds the state (`local_search.hpp`): times from the first position that a change affects (`decoding.cpp`),
the moves and how to reverse them (`moves.cpp`), walks at falling temperatures and rounds of tabu search (`walk.cpp`).
"""
