"""Policy networks in PyTorch: a score for each choice of a view.

batch       many observations as one PyTorch batch
layers      message passing
giph        the networks of GiPH and of its variants
compiled    the network of GiPH in compiled code, for searches
placeto     the network of Placeto, and its view
variants    views and networks by name
"""
