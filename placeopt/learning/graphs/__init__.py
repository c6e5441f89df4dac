"""What a policy network observes of a search: graphs with features, and the meaning of choices. No PyTorch.

traits       work of tasks and speed of devices, fitted to durations
gpnet        gpNet, the graph of all placement options, kept up to date move by move
views        observations and choices of a search
placeto      the view of Placeto
"""
