"""Policy networks: a score for each choice of a view. All but `compiled` and `variants` need PyTorch.

batch       many observations as one PyTorch batch
layers      message passing
giph        the networks of GiPH and of its variants
compiled    the network of GiPH in compiled code, for searches
placeto     the network of Placeto
variants    views and networks by name
"""
