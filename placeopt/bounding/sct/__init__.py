"""The linear program of Small Communication Times (SCT): favourite children, approximation ratios, and a lower bound.

    program      the linear program, and the paper's program of a problem              `program_of`
    solution     solves it to a tolerance, with a proof; also over whole favourites    `solution_of`
    favourites   selects one of its many optima, and favourite children from it        `favourites_of`
    ratios       rho, and the proved approximation ratios of ETF, SCT and m-SCT        `ratios_of`
    bound        a program of the same form that bounds the makespan                   `sct_bound`

The solution method: exact reductions (`core`), then GLOP if little is left (`engine`), else a game (`game`) whose
strategies give feasible points and proofs.
"""
