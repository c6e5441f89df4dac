"""Colours of devices: distinct for all readers, and the same in all views."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from placeopt.views.plots.palette import HUES, INK, PAPER, device_colors, legend, luminance, shades, strokes, text_on

# What remains of linear red, green and blue without one kind of cone, for the severest case:
# G. Machado, M. Oliveira, L. Fernandes, IEEE TVCG 15(6), 2009, doi:10.1109/TVCG.2009.113, table 1 (severity 1.0).
SEEN = {
    "by most": np.eye(3),
    "without long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without medium": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def oklab(color: str, seen: object) -> np.ndarray:
    """OKLab of a colour as it is seen."""
    coded = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    light = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.asarray(seen) @ light, 0, 1)
    cones = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ light
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ cones
    )


@pytest.mark.parametrize("kind", SEEN)
def test_hues_are_reported_apart_by_everyone(kind: str) -> None:
    places = [oklab(color, SEEN[kind]) for color in HUES]
    nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(places, 2))
    assert nearest > 0.06  # red and green of one lightness: 0.02 and less


@pytest.mark.parametrize("kind", SEEN)
def test_shades_rise_in_lightness_for_everyone(kind: str) -> None:
    for hue in HUES:
        lightness = [float(oklab(color, SEEN[kind])[0]) for color in shades(hue, 20)]
        assert (np.diff(lightness) > 0.005).all()


def test_few_devices_have_a_hue_each() -> None:
    assert device_colors(["cpu"] * 5 + ["gpu"] * 2) == HUES


def test_of_many_each_type_has_a_hue_and_each_device_a_shade() -> None:
    colors = device_colors(["cpu"] * 20 + ["gpu"] * 10)
    assert colors == shades(HUES[0], 20) + shades(HUES[1], 10)
    assert len(set(colors)) == 30
    mixed = device_colors(["cpu", "gpu"] * 5)
    assert mixed[::2] == shades(HUES[0], 5)
    assert mixed[1::2] == shades(HUES[1], 5)


def test_with_more_types_than_hues_all_stand_on_one_scale() -> None:
    colors = device_colors([f"kind{i}" for i in range(60)])
    assert len(set(colors)) == 60
    assert (np.diff([float(oklab(color, np.eye(3))[0]) for color in colors]) > 0).all()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 60, 500])
def test_every_device_has_a_colour(count: int) -> None:
    for types in (["gpu"] * count, [f"kind{i % 3}" for i in range(count)], [str(i) for i in range(count)]):
        colors = device_colors(types)
        assert len(colors) == count
        assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
        assert colors == device_colors(tuple(types))


def test_a_lone_device_among_many_keeps_its_hue() -> None:
    assert device_colors(["host"] + ["gpu"] * 9)[0] == HUES[0]


def test_a_legend_of_sixty_devices_is_short() -> None:
    types = ["cpu"] * 40 + ["gpu"] * 19 + ["host"]
    names = [f"cpu{i}" for i in range(40)] + [f"gpu{i}" for i in range(19)] + ["boss"]
    entries = legend(names, types)
    assert [entry.label for entry in entries] == ["cpu0 … cpu39 (40)", "gpu0 … gpu18 (19)", "boss"]
    assert [len(entry.colors) for entry in entries] == [40, 19, 1]
    assert tuple(color for entry in entries for color in entry.colors) == device_colors(types)
    (whole,) = legend([str(i) for i in range(60)], [f"kind{i}" for i in range(60)])
    assert whole.label == "0 … 59 (60)"
    assert [entry.label for entry in legend(["a", "b"], ["x", "x"])] == ["a", "b"]


def test_strokes_of_forty_nine_things_differ() -> None:
    drawn = strokes(49)
    assert len({(stroke.color, stroke.dashes) for stroke in drawn}) == 49
    assert strokes(3) == drawn[:3]


def test_text_can_be_read_on_every_colour() -> None:
    for color in (*HUES, *device_colors(["a"] * 30 + ["b"] * 30), *device_colors([str(i) for i in range(60)])):
        light, dark = sorted((luminance(color), luminance(text_on(color))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert text_on(PAPER) == "#000000"
    assert text_on(INK) == "#ffffff"
