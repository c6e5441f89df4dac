"""Learned search: GiPH, its variants, and its learned rivals.

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable
placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562. A policy network scores moves of
one task to one device; REINFORCE trains it to shorten the makespan. Training, and searches with most variants, need
PyTorch (the extra `placeopt[torch]`). GiPH's own network also runs compiled, without PyTorch.

graphs        what a network observes of a search: gpNet, or the task graph, with features
networks      the networks of GiPH, of its variants and of Placeto, and message passing
search        searches that a network guides, and a learned policy for `placeopt.policies`
training      REINFORCE, files of weights, data sets, trainings in a folder
weights       policies that come with placeopt
"""
