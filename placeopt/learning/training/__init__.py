"""Training of policies.

reinforce      REINFORCE, with the baseline of GiPH or of peers
cases          problems to train and to evaluate on
checkpoints    files of weights, and of the state of a training
folder         a training whose state is kept in a folder: `placeopt train`
"""
