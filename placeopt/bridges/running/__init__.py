"""Run exported segments on this machine: a process for each device, tensors along the edges, measured times."""
