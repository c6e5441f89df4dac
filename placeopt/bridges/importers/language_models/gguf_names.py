r"""Names of tensors in GGUF files, and the parts of a model to which they belong.

The patterns are regular expressions in the common subset of Python and ECMAScript, which llama.cpp uses.
"""

from __future__ import annotations

import re
from functools import lru_cache

BLOCK = r"blk\.(\d{1,4})\.(.+)"
"""A tensor of a block, with its number and its name in the block."""
ROPE = "rope_"
"""Beginning of tensors of position encodings, which the attention of all blocks shares."""
EMBEDDING = "(token|position|per_layer)_"
"""Beginning of tensors of the input. All other tensors outside blocks are of the output."""
FFN = "(ffn|post_ffw|exp_probs|channel_mix|layer_output_norm)"
"""Beginning of tensors of the feed-forward network, after the block. All others are of the attention."""
EXPERTS = r"ffn_\w+(_exps|\.\d)"
"""Beginning of tensors of the routed experts."""


def place_of(name: str) -> tuple[int | None, str]:
    """Return the block of a tensor, or None, and its part: `embedding`, `attention`, `ffn`, `experts` or `head`."""
    match = re.fullmatch(BLOCK, name)
    if match is None:
        if name.startswith(ROPE):
            return 0, "attention"
        return None, "embedding" if re.match(EMBEDDING, name) else "head"
    return int(match[1]), _part_of_block(match[2])


@lru_cache(maxsize=4096)
def _part_of_block(name: str) -> str:
    """The part of a tensor by its name in the block; all blocks have the same names."""
    return "experts" if re.match(EXPERTS, name) else "ffn" if re.match(FFN, name) else "attention"
