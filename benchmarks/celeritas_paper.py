"""What Celeritas's paper reports, and how our results are judged.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas, 2022, arXiv:2208.00184, figure 3 and tables 2 to 4. The machines, the graphs
and the batches differ, so seconds are not compared. Ratios within a row are: of a method's seconds to Celeritas's, of
the CCR and the nodes before fusion to those after. Ratios are the same within 10 %. Ours is 1, so that the verdict is
*open*, within 0.1 % (for times to place, 5 %).
"""

from __future__ import annotations

from claims import EQUAL, Claim, ratio_verdict

TABLE_2 = {
    "inception_v3": (6332, 33.118, 59, 8.137),
    "lstm_nmt": (25463, 18.630, 154, 6.372),
    "transformer": (36352, 111.957, 220, 11.10),
    "tensor_holography": (3810, 49.147, 37, 7.438),
}
"""Nodes and CCR before fusion, nodes and CCR after it."""

METHODS = ("metis", "m-topo", "m-etf", "m-sct", "HRL", "order-place", "celeritas")
TABLE_3: dict[str, tuple[float | None, ...]] = {
    "inception_v3": (None, 3.100, 10.548, 7.610, 8.565, 2.931, 2.859),
    "lstm_nmt": (None, None, None, None, 10.224, 9.117, 9.099),
    "transformer": (None, None, 8.613, 8.411, 42.837, 6.935, 6.536),
    "tensor_holography": (6.591, 2.220, 6.376, 6.013, 3.683, 1.520, 1.461),
}
"""Seconds of a training step by METHODS on four GPUs; None: out of memory."""

SPEED_UP = {"inception_v3": 7.8, "lstm_nmt": 11.0, "transformer": 22.3, "tensor_holography": 34.2}
"""Table 3: by how many per cent Celeritas's step is shorter than that of the best other method except Order-Place."""

TABLE_4: dict[str, tuple[float | None, float, float]] = {
    "inception_v3": (8.591, 5.439, 7.183),
    "lstm_nmt": (None, 54.695, 59.418),
    "transformer": (129.498, 92.639, 95.304),
    "tensor_holography": (2.968, 2.711, 3.586),
}
"""Seconds in which m-sct, order-place and celeritas generate a placement."""

TABLE_5 = {
    "inception_v3": (1.54, 7.99), "lstm_nmt": (3.93, 10.85), "transformer": (6.02, 14.16),
    "tensor_holography": (2.92, 11.32),
}  # fmt: skip
"""Mean deviation of the memory and of the time that the Rough Estimation predicts, in per cent."""

FIGURE_6: dict[str, dict[str, float | None]] = {
    "inception_v3": {"m-topo": 6.0, "dfs-topo": 4.22, "celeritas": 4.32},
    "lstm_nmt": {"m-topo": None, "dfs-topo": 10.07, "celeritas": 9.50},
    "transformer": {"m-topo": 38.45, "dfs-topo": 34.3, "celeritas": 9.58},
}
"""Section 6.5.2: minutes of the Standard Evaluation; None: out of memory."""
HOLOGRAPHY, SLOWER = 65.1, 1.0
"""The same for Tensor Holography, without minutes: Celeritas takes 65.1 % less than m-topo, 1 s more than DFS-TOPO."""
STEPS = 55
"""Steps of the Standard Evaluation (section 6.3)."""

FIGURE_3 = {"m-topo": 4, "dfs-topo": 0}
"""Edges cut by two orders in the example of section 4.2.2."""

EQUAL_TIMES = 0.05


def ratio_cell(what: str, paper: tuple[float, float], ours: tuple[float, float], equal: float = EQUAL) -> Claim:
    """The cell of a value and its reference, which the paper and we have."""
    texts = [f"{value:,.3f} (x {value / reference:.2f})" for value, reference in (paper, ours)]
    return Claim(what, *texts, ratio_verdict(paper[0] / paper[1], ours[0] / ours[1], equal))


def shorter_cell(what: str, paper: float, ours: tuple[float | None, float | None]) -> Claim:
    """The cell of a share in per cent by which Celeritas's seconds are below others; None: out of memory."""
    own, other = ours
    if own is None or other is None:
        return Claim(what, f"{paper:.1f} % shorter", "out of memory", "not comparable", "no time to compare with")
    verdict = ratio_verdict(1 / (1 - paper / 100), other / own)
    share = 100 * (1 - own / other)
    return Claim(what, f"{paper:.1f} % shorter", f"{abs(share):.1f} % {'shorter' if share > 0 else 'longer'}", verdict)


def fusion_cells(model: str, before: tuple[int, float], after: tuple[int, float]) -> list[Claim]:
    """The cells of a model's row in table 2: what fusion divides the nodes and the CCR by, and nodes in a cluster."""
    nodes, ccr, fused_nodes, fused_ccr = TABLE_2[model]
    return [
        Claim(f"{model}: {what}", paper_text, our_text, ratio_verdict(paper, ours))
        for what, paper, ours, paper_text, our_text in (
            (
                "nodes", nodes / fused_nodes, before[0] / after[0],
                f"{nodes:,} -> {fused_nodes} (1/{nodes / fused_nodes:.0f})",
                f"{before[0]:,} -> {after[0]} (1/{before[0] / after[0]:.0f})",
            ),
            (
                "CCR", ccr / fused_ccr, before[1] / after[1],
                f"{ccr:.1f} -> {fused_ccr:.1f} (1/{ccr / fused_ccr:.1f})",
                f"{before[1]:.1f} -> {after[1]:.1f} (1/{before[1] / after[1]:.1f})",
            ),
        )
    ]  # fmt: skip
