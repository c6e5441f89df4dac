// Placement and times by live memory (memory model `peak`); placeopt_solvers._constructive.live_memory describes them.
#pragma once

#include "stop.hpp"
#include "timeline.hpp"

namespace engine {

// Assigns group k, for which no device has room, to one after evictions; false if none can take it. `movable` (g,) are
// the groups that may be evicted.
bool make_room(Line& line, const std::vector<bool>& movable, Int k, Stop& stop);
// Assigns the groups in turn to the device with the most room, or with `stay` to the last one while it has room, with
// evictions; returns NONE or the group that no device can take.
Int pack_groups(Line& line, const std::vector<bool>& movable, Ints turn, bool stay, Stop& stop);
// (m,) bytes that each device lacks for group k, which has no home.
std::vector<Int> missing_bytes(Line& line, Int k);

// Appends tasks in a topological sequence (n,) on their `device` (n,), each as soon as its memory is free. `room` (m,)
// are the bytes of each device beyond the resident ones of its tasks, `output` and `scratch` (n,) bytes.
struct Waits {
    Int stuck = NONE;  // the first task that finds no memory
    Int count = 0;     // tasks that waited for memory
};
Waits append_with_waits(Line& line, Ints output, Ints scratch, std::vector<Int> room, Ints device, Ints sequence, Stop& stop);

}  // namespace engine
