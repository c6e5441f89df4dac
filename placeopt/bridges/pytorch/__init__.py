"""PyTorch: graphs of `torch.export` become operators, for inference and training; the section `x-torch`.

A *kernel* is a call of an operator that does work. Views of tensors, sizes and assertions are not kernels.
"""
