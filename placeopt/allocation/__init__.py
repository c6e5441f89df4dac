"""Static memory allocation: offsets for buffers with known lifetimes, with a proved bound of their height.

A buffer is live in an interval of time and takes a number of bytes. Two buffers that are live at the same time must not
overlap in memory. Wanted are offsets whose largest end, the height, is least or within a capacity. The problem is also
called dynamic storage allocation; it is NP-hard (M. R. Garey, D. S. Johnson, Computers and Intractability, 1979, SR2).

- `problem`: buffers, also as the engine takes them; `files`: CSV and JSON
- `bounds`: lower bounds of the height
- `solving`: all of it within a time limit; `verification`: the rules
- `shortages`: why buffers do not fit
- `views`, `pictures`: results in words, and the map of the memory
"""
