"""The data of GiPH's experiments as problem documents (Hu et al. 2023, MLSys, arXiv:2305.14562).

released    the released generator of task graphs and device networks, bit for bit
sets        the training and test sets of the experiments by name
"""
