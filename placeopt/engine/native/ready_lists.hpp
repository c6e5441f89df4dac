// Heuristics that choose the next task among the ready ones, one in each file of that name. They fill a line, and return
// NONE if they placed all tasks, otherwise the first ready task that no device can take.
//
// Matrices (n, m) of ticks have entries from 0 to NEVER - 1. `sequence` (n,) are the tasks in the order that breaks ties.
// With `batches`, all ready tasks are placed before the tasks that become ready meanwhile.
#pragma once

#include "stop.hpp"
#include "timeline.hpp"

namespace engine {

// ETF, m-ETF and min-min: the best pair of a ready task and a device, by start plus `work` (n, m).
Int place_pairs(Line& line, Ints sequence, Ints work, bool batches, Stop& stop);
// Max-min, or with `by_gap` sufferage.
Int place_neediest(Line& line, bool by_gap, bool batches, Stop& stop);
// m-SCT; favourite parents (n,), NONE if there is none.
Int place_favourites(Line& line, Ints sequence, Ints work, Ints parent, bool urgent_first, Stop& stop);
// m-SCT as Baechi's released code; favourite children (n,).
Int place_by_clock(Line& line, Ints sequence, Ints child, Stop& stop);
// GDL; `median` (n,), `level` (n,), and each task's out-edge with most data (n,), NONE for exits.
Int place_by_level(Line& line, Ints median, Ints level, Ints heaviest, Stop& stop);
// FCP; `detour` (n, m).
Int place_on_two(Line& line, Ints sequence, Ints detour, Stop& stop);
// FLB; `detour` (n, m).
Int place_by_type(Line& line, Ints sequence, Ints detour, Stop& stop);
// WBA; `chance` (n,) in [0, 1), the random number of each step.
Int draw_pairs(Line& line, std::span<const double> chance, double alpha, Stop& stop);
// BIL.
Int place_by_imaginary_level(Line& line, Stop& stop);

// (n, m) BIL in ticks.
std::vector<Int> imaginary_levels(const Line& line, Stop& stop);
// (n, m) the part of GDL's DL2 that never changes: SL + Delta + DC.
std::vector<Int> fixed_levels(const Line& line, Ints median, Ints level, Ints heaviest, Stop& stop);

}  // namespace engine
