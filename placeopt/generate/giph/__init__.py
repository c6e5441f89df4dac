"""The data of GiPH's experiments as problem documents (Hu et al. 2023, MLSys, arXiv:2305.14562).

released    the released generator of task graphs and device networks, bit for bit
enas        deep learning graphs: recurrent cells of ENAS
traffic     the case study: sensor fusion of connected vehicles
cases       sets of problems that are generated when they are read
sets        the training and test sets of the experiments by name
"""
