"""Import `config.json` of a Hugging Face model: layers, or their parts, become tasks.

The file has the sizes of the layers; `families` states what the layers of each family consist of. The library
`transformers` is not needed.
"""

from __future__ import annotations

import json
from pathlib import Path

from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.json_file import JsonFile
from placeopt.bridges.importers.language_models.configuration import Configuration
from placeopt.bridges.importers.language_models.costs import imported
from placeopt.bridges.importers.language_models.families import ENCODER_DECODERS, FAMILIES, Family, unlike_llama
from placeopt.bridges.importers.language_models.formats import Formats, weight_formats
from placeopt.bridges.importers.language_models.transformer import Attention, Block, Transformer, Weight
from placeopt.errors import listing, visible
from placeopt.io.files import StrPath

NAME = "hf-config"
_MOST_LAYERS = 10_000
_INSIDE = ("text_config", "llm_config", "language_config")
"""Keys of the language model in the configuration of a model for several kinds of input."""


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    if b'"model_type"' not in sample.json and b'"architectures"' not in sample.json:
        return False
    try:
        data = json.loads(sample.json)
    except ValueError:  # broken, but the keys are there
        return True
    return isinstance(data, dict) and ("model_type" in data or "architectures" in data)


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read the configuration of a language model as the problem of a step of inference.

    Raises a DocumentError if the file is not valid, or a size of the model is missing; it lists every issue. Raises a
    UsageError if an option does not fit the model.
    """
    file = JsonFile(path, "an object such as config.json of a model")
    model = transformer(file, options.precision)
    return imported(model, path, "Hugging Face configuration", options)


def transformer(file: JsonFile, precision: str | None = None) -> Transformer:
    """Return the transformer that a configuration describes; `precision` replaces its number format.

    Raises a DocumentError if the file is not valid, or a size of the model is missing; it lists every issue. Raises a
    UsageError if the precision is unknown.
    """
    notes: list[str] = []
    inside = next((key for key in _INSIDE if isinstance(file.data.get(key), dict)), None)
    config = Configuration(file, () if inside is None else (inside,))
    if inside is not None:
        notes.append(f"only the language model ({inside}) is imported, not the parts for other kinds of input")
    kind = config.text("model_type")
    if kind in ENCODER_DECODERS:
        config.wrong(f"{kind} is an encoder-decoder, which is not supported", "model_type")
        file.check()
    known = FAMILIES.get(kind, Family())
    family = known if isinstance(known, Family) else known(config)
    if kind not in FAMILIES:
        if unlike := unlike_llama(config):
            config.wrong(
                f"the model type {visible(kind) or 'of the file'} is not known, and these keys may change its sizes: "
                f"{listing(unlike, 8)}; expected a known type, or keys of Llama",
                *(["model_type"] if kind else []),
            )
        notes.append(
            f"the model type {visible(kind) or 'of the file'} is not known; its layers are assumed to be those of "
            "Llama with the sizes of the file"
        )
    config.defaults = family.defaults
    formats, about = weight_formats(config, precision)
    model = _Builder(config, family, formats).transformer(_name(file), (*notes, *about))
    file.check()
    return model


def _name(file: JsonFile) -> str:
    stated = file.data.get("_name_or_path")
    if isinstance(stated, str) and stated.strip(" ./"):
        return stated.rstrip("/").rpartition("/")[2]
    path = Path(file.name).absolute()
    return path.parent.name if path.stem == "config" and path.parent.name else path.stem


class _Builder:
    """Builds the weights of a model from the numbers of its configuration."""

    def __init__(self, config: Configuration, family: Family, formats: Formats) -> None:
        self._config = config
        self._family = family
        self._formats = formats

    def transformer(self, name: str, notes: tuple[str, ...]) -> Transformer:
        config, family = self._config, self._family
        needed = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
        hidden, layers, heads, vocabulary = (config.size(key) or 0 for key in needed)
        inner = config.optional("intermediate_size") or 0
        if not inner and family.gated:
            config.size("intermediate_size")
        experts, active = self._experts()
        if layers > _MOST_LAYERS:
            config.wrong(f"{layers:,} layers are too many; expected at most {_MOST_LAYERS:,}", "num_hidden_layers")
        config.file.check()
        inner = self._adjusted(inner or 4 * hidden)
        blocks = tuple(self._block(index, layers, hidden, heads, inner, experts) for index in range(layers))
        tied = False if family.encoder else config.flag("tie_word_embeddings", family.tied)
        return Transformer(
            name,
            hidden,
            vocabulary,
            self._embedding(hidden, vocabulary),
            blocks,
            self._head(hidden, vocabulary, tied),
            experts,
            active,
            tied=tied,
            causal=not family.encoder,
            longest=config.optional("max_position_embeddings"),
            activation=self._formats.activation,
            precision=self._formats.work,
            notes=notes,
        )

    def _embedding(self, hidden: int, vocabulary: int) -> tuple[Weight, ...]:
        config, family = self._config, self._family
        width = config.optional("word_embed_proj_dim") or hidden
        rows = [("words", vocabulary)]
        if family.positions is not None:
            rows.append(("positions", (config.size("max_position_embeddings") or 0) + family.positions))
        if family.segments:
            rows.append(("segments", config.size("type_vocab_size") or 0))
        found = [self._plain(name, count * (width if name == "words" else hidden)) for name, count in rows]
        if width != hidden:
            found.append(self._plain("projection", width * hidden, hidden))
        if family.embedding_norm:
            found.append(self._plain("norm", family.norm * hidden))
        return tuple(found)

    def _head(self, hidden: int, vocabulary: int, tied: bool) -> tuple[Weight, ...]:
        config, family = self._config, self._family
        found = []
        if family.encoder:
            return (self._plain("pooler", hidden * hidden, hidden), self._plain("pooler bias", hidden))
        if self._switch(family.last_norm) and not config.flag("_remove_final_layer_norm", False):
            found.append(self._plain("norm", family.norm * hidden))
        width = config.optional("word_embed_proj_dim") or hidden
        if width != hidden:
            found.append(self._plain("projection", width * hidden, width))
        if not tied:
            found.append(self._plain("output", width * vocabulary, vocabulary))
        if self._switch(family.head_bias):
            found.append(self._plain("output bias", vocabulary))
        return tuple(found)

    def _block(self, index: int, layers: int, hidden: int, heads: int, inner: int, experts: int) -> Block:
        window = self._window(index, layers)
        shape: Attention | None = None
        if index in self._family.convolutions:
            weights = self._convolution(hidden)
        elif self._family.latent:
            weights, shape = self._latent(hidden, heads)
        else:
            weights, shape = self._attention(hidden, heads, window)
        norms = self._plain("norm", self._family.norm * hidden)
        half = self._family.norms // 2
        attention = [*[norms] * (self._family.norms - half), *weights]
        ffn = [norms] * half
        if not self._is_sparse(index, experts):
            return Block(tuple(attention), (*ffn, *self._network("ffn", hidden, inner)), (), shape)
        more, routed = self._mixture(hidden, inner, experts)
        return Block(tuple(attention), (*ffn, *more), tuple(routed), shape)

    def _attention(self, hidden: int, heads: int, window: int | None) -> tuple[list[Weight], Attention]:
        config, family = self._config, self._family
        groups = 1 if family.one_key else config.optional("num_key_value_heads") or heads
        size = config.optional("head_dim") or hidden // heads
        if not size:
            config.wrong(f"{heads} is more than the hidden size {hidden}", config.name("num_attention_heads"))
        elif config.optional("head_dim") is None and hidden % heads:
            message = f"{heads} does not divide the hidden size {hidden}, and head_dim is missing"
            config.wrong(message, config.name("num_attention_heads"))
        if heads % groups:
            message = f"{groups} does not divide the {heads} attention heads"
            config.wrong(message, config.name("num_key_value_heads"))
        queries, keys = heads * size, groups * size
        found = [
            self._matrix("query", hidden, queries),
            self._matrix("key", hidden, keys),
            self._matrix("value", hidden, keys),
            self._matrix("output", queries, hidden),
        ]
        if self._switch(family.attention_bias):
            found.append(self._plain("query, key and value biases", queries + 2 * keys))
        if self._switch(family.attention_bias if family.output_bias is None else family.output_bias):
            found.append(self._plain("output bias", hidden))
        if family.query_norm is not None:
            normed = 2 * size if family.query_norm == "head" else queries + keys
            found.append(self._plain("query and key norms", family.norm * normed))
        if family.sinks:
            found.append(self._plain("sinks", heads))
        return found, Attention(heads, size, size, 2 * keys, window)

    def _convolution(self, hidden: int) -> list[Weight]:
        """LFM2's short convolution over the last tokens, between two matrices, with gates before and after."""
        taps = self._config.size("conv_L_cache") or 0
        found = [
            self._matrix("convolution in", hidden, 3 * hidden),
            self._plain("convolution", taps * hidden, hidden),
            self._matrix("convolution out", hidden, hidden),
        ]
        if self._config.flag("conv_bias", False):
            found.append(self._plain("convolution biases", 5 * hidden))
        return found

    def _adjusted(self, inner: int) -> int:
        """The width of the feed-forward network; LFM2 states another number and how to change it."""
        config = self._config
        if not config.flag("block_auto_adjust_ff_dim", False):
            return inner
        times = config.fraction("block_ffn_dim_multiplier")
        step = config.optional("block_multiple_of") or 1
        return -(-int((1 if times is None else times) * int(2 * inner / 3)) // step) * step

    def _latent(self, hidden: int, heads: int) -> tuple[list[Weight], Attention | None]:
        """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1)."""
        config = self._config
        sizes = [config.size(key) for key in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")]
        if None in sizes:
            return [], None
        low, rope, nope, value = (size or 0 for size in sizes)
        key = rope + nope
        rank = config.optional("q_lora_rank")
        if rank is None:
            found = [self._matrix("query", hidden, heads * key)]
        else:
            found = [self._matrix("query down", hidden, rank), self._matrix("query up", rank, heads * key)]
            found.append(self._plain("query norm", rank))
        found += [
            self._matrix("key and value down", hidden, low + rope),
            self._plain("key and value norm", low),
            self._matrix("key and value up", low, heads * (nope + value)),
            self._matrix("output", heads * value, hidden),
        ]
        if self._switch(self._family.attention_bias):
            found.append(self._plain("biases", (rank or 0) + low + rope + hidden))
        return found, Attention(heads, key, value, low + rope, None, (low + rope, low))

    def _network(self, name: str, hidden: int, inner: int) -> list[Weight]:
        found = [self._matrix(f"{name} up", hidden, inner), self._matrix(f"{name} down", inner, hidden)]
        if self._family.gated:
            found.insert(0, self._matrix(f"{name} gate", hidden, inner))
        if self._switch(self._family.ffn_bias):
            found.append(self._plain(f"{name} biases", hidden + inner * (2 if self._family.gated else 1)))
        return found

    def _mixture(self, hidden: int, inner: int, experts: int) -> tuple[list[Weight], list[Weight]]:
        """The router and the shared experts, and the routed experts."""
        config, family = self._config, self._family
        router = [self._plain("router", hidden * experts, experts)]
        if family.experts in ("qwen", "deepseek"):
            inner = config.size("moe_intermediate_size") or 0
        if family.experts == "deepseek":
            shared = (config.optional("n_shared_experts") or 0) * inner
        else:
            shared = config.optional("shared_expert_intermediate_size") or 0
        if shared:
            router += self._network("shared experts", hidden, shared)
            if family.experts == "qwen":
                router.append(self._plain("gate of the shared expert", hidden, 1))
        elements = experts * hidden * inner
        routed = [
            Weight(name, elements, self._formats.body(elements, routed=True), columns)
            for name, columns in (("gate", inner), ("up", inner), ("down", hidden))
        ]
        if family.experts == "gpt_oss":
            router.append(self._plain("router bias", experts))
            routed.append(self._plain("biases", experts * (2 * inner + hidden)))
        return router, routed

    def _experts(self) -> tuple[int, int]:
        """The numbers of routed experts and of those that a token uses; 0 without a mixture of experts."""
        if self._family.experts is None:
            if self._config.optional("num_experts"):
                self._config.wrong(
                    "a mixture of experts of an unknown form; only the forms of Mixtral, Qwen, DeepSeek and gpt-oss "
                    "are supported",
                    "model_type",
                )
            return 0, 0
        experts, active = (self._config.size(key, zero=True) for key in ("num_experts", "num_experts_per_tok"))
        if experts is not None and active is not None and active > experts:
            self._config.wrong(f"{active} is more than the {experts} experts", "num_experts_per_tok")
        return experts or 0, active or 0

    def _is_sparse(self, index: int, experts: int) -> bool:
        """Whether a layer is a mixture of experts."""
        config = self._config
        if not experts:
            return False
        if self._family.experts == "deepseek":
            first, step = config.optional("first_k_dense_replace") or 0, config.optional("moe_layer_freq") or 1
            return index >= first and index % step == 0
        if self._family.experts == "qwen":
            dense = config.values("mlp_only_layers")
            return index not in dense and (index + 1) % (config.optional("decoder_sparse_step") or 1) == 0
        return True

    def _window(self, index: int, layers: int) -> int | None:
        config, family = self._config, self._family
        window = config.optional("sliding_window")
        if window is None:
            return None
        kinds = config.values("layer_types")
        if len(kinds) == layers:
            return window if kinds[index] == "sliding_attention" else None
        period = (
            config.optional("sliding_window_pattern") or config.optional("_sliding_window_pattern") or family.period
        )
        if period is not None and family.period is not None:
            return window if (index + 1) % period else None
        if family.window == "qwen":
            first = config.optional("max_window_layers") or 0
            return window if config.flag("use_sliding_window", False) and index >= first else None
        return window if family.window == "stated" else None

    def _switch(self, switch: bool | str) -> bool:
        return switch if isinstance(switch, bool) else self._config.flag(switch, False)

    def _matrix(self, name: str, rows: int, columns: int) -> Weight:
        """A matrix of the body, which a quantised model has in few bits."""
        return Weight(name, rows * columns, self._formats.body(rows * columns), columns)

    def _plain(self, name: str, elements: int, width: int = 0) -> Weight:
        """A weight that is not quantised: a vector, an embedding, a router, or the output matrix."""
        return Weight(name, elements, self._formats.plain(elements), width)
