// The algorithms of the engine, one in each file of that name. Those that fill a line return NONE if they placed all
// tasks, otherwise the task that no device can take.
#pragma once

#include "timeline.hpp"

namespace engine {

using Floats = std::span<const double>;

// Ticks that are added to the end of a task on a device when devices are compared: row `row[i]` of `ticks` (r, m) for
// task i. Not negative; an end plus a penalty stays below NEVER.
struct Penalties {
    Ints row, ticks;
};

enum class Measure { end, work, idle, index };

Int insert_tasks(Line& line, Ints sequence, const Penalties& penalties, Stop& stop);
Int list_tasks(Line& line, Ints sequence, Measure measure, Stop& stop);
Int fill_devices(Line& line, Ints sequence, Ints weight, std::vector<Int> share, Stop& stop);
Int look_ahead(Line& line, Ints sequence, Stop& stop);
Int fill_in_order(Line& line, Ints sequence, bool overfill, Stop& stop);
Int adjust_in_order(Line& line, Ints sequence, bool overfill, Stop& stop);
// Batch k of the sequence is at bounds[k]..bounds[k + 1]; no task depends on another of its batch.
Int balance_batches(Line& line, Ints sequence, Ints bounds, Stop& stop);

void longest_paths(const Problem& problem, Floats work, Floats transfer, bool backwards, std::span<double> before);
std::vector<Int> tied_depths(const Problem& problem, Floats rank);
std::vector<Int> highest_first(const Problem& problem, Ints preference, Ints rank);
std::vector<Int> optimistic_costs(const Problem& problem, std::span<const bool> feasible, Ints transfer, Stop& stop);
std::vector<Int> longest_path(const Problem& problem, Int first, Floats behind);

}  // namespace engine
