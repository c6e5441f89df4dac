"""Training of policies, and files of weights. Reading these needs no PyTorch for GiPH's own network.

settings       parameters of training
reinforce      REINFORCE, with the baseline of GiPH or of peers
cases          problems to train and to evaluate on
checkpoints    writing of weights, and of the state of a training
weights        the header of files of weights, and reading of policies
folder         a training whose state is kept in a folder: `placeopt train`
"""
