"""Access to the keys of a `config.json`, with an issue for each missing or wrong value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placeopt.bridges.importers.json_file import JsonFile
from placeopt.model.units import is_whole, shown

NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "block_ff_dim"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads"),
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts"),
}
"""Names that families give to a key."""
OUTER = ("dtype", "torch_dtype", "tie_word_embeddings")
"""Keys that a model for several kinds of input may state outside the configuration of its language model."""
_LARGEST = 2**31


class Configuration:
    """The keys of a configuration, or of an object inside it."""

    def __init__(self, file: JsonFile, path: tuple[str, ...] = ()) -> None:
        self.file = file
        self._path = path
        self.defaults: Mapping[str, Any] = {}
        """Values of keys that the configuration does not state."""
        self._data: Mapping[str, Any] = file.data
        if path:
            for key in path:
                self._data = self._data[key]
            self._data = {key: file.data[key] for key in OUTER if key in file.data} | dict(self._data)

    def size(self, key: str, *, zero: bool = False) -> int | None:
        """A positive whole number; None, with an issue, without one. `zero` is whether 0 counts as absent."""
        value = self.optional(key)
        if value is None:
            names = NAMES.get(key, (key,))
            stated = self.name(key)
            if self._data.get(stated) is None:
                self.wrong(f"{' or '.join(names)} is missing; expected a positive whole number")
            elif self._data[stated] == 0 and not zero:
                self.wrong("0 is not a size; expected a positive whole number", stated)
        return value

    def name(self, key: str) -> str:
        """The name by which the configuration states a key."""
        return next((name for name in NAMES.get(key, (key,)) if self._data.get(name) is not None), key)

    def optional(self, key: str) -> int | None:
        """A positive whole number; None if it is absent or zero, or, with an issue, wrong."""
        for name in NAMES.get(key, (key,)):
            value = self._data.get(name, self.defaults.get(name))
            if value is None or (is_whole(value) and value == 0):
                continue
            if not is_whole(value) or not 0 < value < _LARGEST:
                self.wrong(f"{shown(value)} is not a size; expected a positive whole number", name)
                return None
            return int(value)
        return None

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._data.get(key, self.defaults.get(key))
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(f"{shown(value)} is not true or false", key)
        return value is True

    def text(self, key: str) -> str:
        """A text; empty without one."""
        value = self._data.get(key)
        if value is not None and not isinstance(value, str):
            self.wrong(f"{shown(value)} is not a text", key)
        return value if isinstance(value, str) else ""

    def values(self, key: str) -> list[Any]:
        """A list; empty without one."""
        value = self._data.get(key)
        if value is not None and not isinstance(value, list):
            self.wrong(f"{shown(value)} is not a list", key)
        return value if isinstance(value, list) else []

    def fraction(self, key: str) -> float | None:
        """A positive number; None if it is absent, or, with an issue, wrong."""
        value = self._data.get(key)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST):
            return value
        self.wrong(f"{shown(value)} is not a positive number", key)
        return None

    def number(self, key: str) -> int | None:
        """A whole number of any sign; None if it is absent, or, with an issue, wrong."""
        value = self._data.get(key)
        if value is None or (is_whole(value) and abs(value) < _LARGEST):
            return value
        self.wrong(f"{shown(value)} is not a whole number", key)
        return None

    def stated(self) -> tuple[str, ...]:
        """The keys with a value that is not false, zero or empty."""
        return tuple(key for key, value in self._data.items() if value)

    def keys(self) -> tuple[str, ...]:
        """The keys."""
        return tuple(map(str, self._data))

    def inside(self, key: str) -> Configuration | None:
        """The object at a key, or else at this key of the whole document."""
        for path in ((*self._path, key), (key,)):
            data: Any = self.file.data
            for part in path:
                data = data.get(part) if isinstance(data, dict) else None
            if isinstance(data, dict):
                return Configuration(self.file, path)
        return None

    def wrong(self, message: str, *keys: str) -> None:
        """Add an issue at a key; each place has each message once."""
        issue = self.file.issue(message, (*self._path, *keys))
        if issue not in self.file.issues:
            self.file.issues.append(issue)
