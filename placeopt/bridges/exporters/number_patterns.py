"""Short regular expressions for sets of numbers."""

from __future__ import annotations

from collections.abc import Iterable


def number_options(numbers: Iterable[int]) -> list[str]:
    r"""Return alternatives for the decimal texts of numbers, such as `\d` and `1[0-5]` for 0 to 15.

    They use only digits, classes, `\d`, groups, `|` and `?`, so that Python and ECMAScript read them alike.
    """
    texts = sorted({str(number) for number in numbers}, key=lambda text: (len(text), text))
    options: list[str] = []
    for length in sorted({len(text) for text in texts}):
        options += _options([text for text in texts if len(text) == length])
    return _with_optional_digit(options)


def _options(texts: list[str]) -> list[str]:
    """Alternatives for texts of one length: texts whose first digits have the same rests share a class."""
    rests: dict[str, list[str]] = {}
    for text in texts:
        rests.setdefault(text[0], []).append(text[1:])
    classes: dict[tuple[str, ...], str] = {}
    for digit, rest in rests.items():
        classes[tuple(rest)] = classes.get(tuple(rest), "") + digit
    return [_class(digits) + _tail(list(rest)) for rest, digits in classes.items()]


def _tail(rest: list[str]) -> str:
    if rest == [""]:
        return ""
    options = _options(rest)
    return options[0] if len(options) == 1 else f"({'|'.join(options)})"


def _class(digits: str) -> str:
    if len(digits) == 1:
        return digits
    if digits == "0123456789":
        return r"\d"
    consecutive = int(digits[-1]) - int(digits[0]) == len(digits) - 1
    return f"[{digits[0]}-{digits[-1]}]" if consecutive and len(digits) > 2 else f"[{digits}]"


def _with_optional_digit(options: list[str]) -> list[str]:
    r"""Join `\d` and `1\d` to `1?\d`."""
    kept: list[str] = []
    for option in options:
        end = option.index("]") + 1 if option.startswith("[") else 2 if option.startswith("\\") else 1
        rest = option[end:]
        if rest in kept:
            kept[kept.index(rest)] = f"{option[:end]}?{rest}"
        else:
            kept.append(option)
    return kept
