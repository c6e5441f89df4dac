"""Graphs of models as TensorFlow 1.12 builds them: each constant, variable, reshape and gradient is an operation.

graph         operations, tensors, colocation
operations    what TensorFlow's Python functions add
gradients     tf.gradients, and the gradient function of each operation
variables     variables, layers that hold them, optimisers
lowering      layers of image models
recurrent     the LSTM translator
transformer   the Transformer
documents     VGG-19, ResNet-50, Inception-v3, Tensor Holography; the tasks of a spec
"""
