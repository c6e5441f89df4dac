"""Learned search: GiPH, its variants, and its learned rivals, in PyTorch (the extra `placeopt[torch]`).

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable
placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562. A policy network scores moves of
one task to one device; REINFORCE trains it to shorten the makespan.

traits        work of tasks and speed of devices, fitted to durations
gpnet         gpNet, the graph of all placement options, kept up to date move by move
views         what a network observes of a search: gpNet, or the task graph
batch         many observations as one PyTorch batch
layers        message passing
networks      the networks of GiPH and of its variants
placeto       the network of Placeto
variants      views and networks by name
search        searches in lockstep, and a learned policy for `placeopt.policies`
reinforce     training
rnn_placer    the RNN-based placer, which is trained on each problem separately
rnn_network   its network
checkpoints   weights with all parameters in one file
"""
