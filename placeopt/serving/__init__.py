"""Serving a language model on unlike nodes: which layers each node holds, how tokens flow, and how many per second.

A model has layers that every token passes in order. A node holds an interval of layers, and passes fewer tokens per
second the more layers it holds. A token goes from node to node until it has passed all layers. Wanted are the
intervals and a flow of tokens with the largest rate (Mei et al., Helix, ASPLOS 2025, section 4).

- `problem`: the compiled problem; `files`: its file; `rates`: rates of nodes from the figures of devices
- `plan`: intervals and flow; `flow`: the largest flow for given intervals; `verification`: the rules
- `prefill`: the time to the first token, and routes of requests if prefill is separate from decoding
- `covers`, `bounds`: upper bounds of the rate
- `stages`: plans of consecutive stages, in one site and in several; `improving`: intervals that overlap
- `chains`: one node after the other; `replicas`: several complete copies of the model
- `exact`: all plans of a small problem in one model
- `solving`: all of it within a time limit
"""
