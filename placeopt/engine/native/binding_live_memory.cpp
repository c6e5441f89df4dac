// Placement and times by live memory.
#include "bindings.hpp"
#include "live_memory.hpp"

namespace engine {

namespace {

void check_group(const Line& line, Int k) {
    if (k < 0 || k >= line.problem.g)
        throw Wrong("group: " + std::to_string(k) + "; expected 0 to " + std::to_string(line.problem.g - 1));
    if (line.home[k] >= 0) throw Wrong("group: " + std::to_string(k) + " has a home; expected one without");
}

void check_live(const Line& line) {
    if (!line.groups.live.on) throw Wrong("groups: without live memory; expected live.on");
}

std::vector<bool> free_groups(Ints home) {
    std::vector<bool> free(home.size());
    std::transform(home.begin(), home.end(), free.begin(), [](Int d) { return d < 0; });
    return free;
}

}  // namespace

void bind_live_memory(nb::module_& module) {
    module.def(
        "make_room",
        [](BoundTimeline& timeline, nb::handle fixed, Int group, Stop& stop) {
            Line& line = timeline.line;
            const auto homes = array<Int>("fixed", fixed, {line.problem.g});
            const nb::gil_scoped_release unlocked;
            check_live(line);
            check_group(line, group);
            return make_room(line, free_groups(homes), group, stop);
        },
        "timeline"_a, "fixed"_a, "group"_a, "stop"_a,
        nb::sig("def make_room(timeline: Timeline, fixed: numpy.typing.NDArray[numpy.int64], group: int, stop: Stop) -> bool"),
        "Assign a group, for which no device has room by live memory, to one after evictions of groups without a home in "
        "`fixed` (g,); return False if none can take it.");
    module.def(
        "pack_groups",
        [](BoundTimeline& timeline, nb::handle fixed, nb::handle turn, bool stay, Stop& stop) {
            Line& line = timeline.line;
            const auto homes = array<Int>("fixed", fixed, {line.problem.g}), groups = array<Int>("turn", turn, {ANY_LENGTH});
            const nb::gil_scoped_release unlocked;
            check_live(line);
            check_range("turn", groups, 0, line.problem.g - 1);
            return pack_groups(line, free_groups(homes), groups, stay, stop);
        },
        "timeline"_a, "fixed"_a, "turn"_a, "stay"_a, "stop"_a,
        nb::sig("def pack_groups(timeline: Timeline, fixed: numpy.typing.NDArray[numpy.int64], "
                "turn: numpy.typing.NDArray[numpy.int64], stay: bool, stop: Stop) -> int"),
        "Assign the groups in turn to the device with the most room by live memory, or `stay` on the last one while it has "
        "room; evictions are those of `make_room`. Return -1 or the group that no device can take.");
    module.def(
        "missing_bytes",
        [](BoundTimeline& timeline, Int group) {
            Line& line = timeline.line;
            check_live(line);
            check_group(line, group);
            return moved(missing_bytes(line, group), {line.problem.m});
        },
        "timeline"_a, "group"_a,
        nb::sig("def missing_bytes(timeline: Timeline, group: int) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the bytes (m,) that each device lacks for a group without a home, by live memory.");
    module.def(
        "append_with_waits",
        [](BoundTimeline& timeline, nb::handle output, nb::handle scratch, nb::handle room, nb::handle device,
           nb::handle sequence, Stop& stop) {
            Line& line = timeline.line;
            const Problem& problem = line.problem;
            const auto outputs = array<Int>("output", output, {problem.n}), extra = array<Int>("scratch", scratch, {problem.n});
            const auto rooms = array<Int>("room", room, {problem.m}), devices = array<Int>("device", device, {problem.n});
            const auto tasks = array<Int>("sequence", sequence, {problem.n});
            Waits found;
            {
                const nb::gil_scoped_release unlocked;
                check_range("output", outputs, 0, INT64_MAX);
                check_range("scratch", extra, 0, INT64_MAX);
                check_range("room", rooms, 0, INT64_MAX);
                check_range("device", devices, 0, problem.m - 1);
                line.check_sequence(tasks);
                found = append_with_waits(line, outputs, extra, {rooms.begin(), rooms.end()}, devices, tasks, stop);
            }
            return nb::make_tuple(found.stuck, found.count);
        },
        "timeline"_a, "output"_a, "scratch"_a, "room"_a, "device"_a, "sequence"_a, "stop"_a,
        nb::sig("def append_with_waits(timeline: Timeline, output: numpy.typing.NDArray[numpy.int64], "
                "scratch: numpy.typing.NDArray[numpy.int64], room: numpy.typing.NDArray[numpy.int64], "
                "device: numpy.typing.NDArray[numpy.int64], sequence: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> tuple[int, int]"),
        "Append all tasks in a topological sequence (n,) on their device (n,), each as soon as the device has the memory for "
        "it: `output` and `scratch` (n,) of `room` (m,) bytes. Return -1 or the first task that finds no memory, and the "
        "number of tasks that waited.");
}

}  // namespace engine
