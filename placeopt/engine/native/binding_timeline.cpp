// The timeline, for loops in Python.
#include "bindings.hpp"

namespace engine {

void bind_timeline(nb::module_& module) {
    const auto ints = [](std::vector<Int> Line::*member) {
        return [member](nb::handle_t<BoundTimeline> self) {
            const auto& values = nb::cast<BoundTimeline&>(self).line.*member;
            return view(values, self, {static_cast<Int>(values.size())});
        };
    };
    nb::class_<BoundTimeline>(module, "Timeline", R"(A schedule under construction.

Tasks are placed in a topological order. Each starts as early as its data, its device and, under port contention, the
ports allow. With `insertion` it may use a gap between other tasks. The first task of a colocation group decides for the
group, whose memory is reserved at once. With `record`, placements can be taken back. Arrays are read-only views.)")
        .def(nb::init<nb::handle, nb::handle, bool, bool>(), "problem"_a, "groups"_a, "insertion"_a = true,
             "record"_a = false,
             nb::sig("def __init__(self, problem: Problem, groups: object, insertion: bool = True, record: bool = False) "
                     "-> None"))
        .def_prop_ro("home", ints(&Line::home), "(g,) device of each group, -1 for groups without a home.")
        .def_prop_ro("room", ints(&Line::room), "(m,) bytes left on each device; under live memory beyond resident ones.")
        .def_prop_ro("left", ints(&Line::left), "(b,) what is left of each budget.")
        .def_prop_ro("device", ints(&Line::device), "(n,) device of each task, -1 before it is placed.")
        .def_prop_ro("start", ints(&Line::start), "(n,) start of each placed task.")
        .def_prop_ro("end", ints(&Line::end), "(n,) end of each placed task.")
        .def_prop_ro("free", ints(&Line::free), "(m,) end of the last task of each device.")
        .def_prop_ro(
            "closed",
            [](const BoundTimeline& self) {
                const auto& closed = self.line.closed;
                std::vector<Int> found;
                for (Int d = 0; d < static_cast<Int>(closed.size()); ++d)
                    if (closed[d]) found.push_back(d);
                const Int count = static_cast<Int>(found.size());
                return moved(std::move(found), {count});
            },
            nb::sig("def closed(self) -> numpy.typing.NDArray[numpy.int64]"), nb::rv_policy::automatic,
            "The devices that were closed, for heuristics that close devices.")
        .def_prop_ro("moves", ints(&Line::moves), "(e,) start of each edge's transfer, -1 without a separate one; empty "
                                                  "without port contention.")
        .def_prop_ro(
            "trees",
            [](nb::handle_t<BoundTimeline> self) {
                const Line& line = nb::cast<BoundTimeline&>(self).line;
                const bool on = line.groups.live.on;
                return view(line.trees, self, {on ? line.problem.m : 0, on ? 2 * line.groups.live.leaves : 0});
            },
            "(m, 2 leaves) the profile of each device under live memory, otherwise empty.")
        .def_prop_ro("placed", [](const BoundTimeline& self) { return self.line.placements.size(); },
                     "Number of placements that can be taken back: a mark for `resume`.")
        .def(
            "usage",
            [](const BoundTimeline& self, Int resource) {
                const Resources& resources = self.line.problem.resources;
                const Int count = static_cast<Int>(resources.capacity.size());
                if (resource < 0 || resource >= count || !resources.renewable[resource])
                    throw Wrong("resource: " + std::to_string(resource) + " is not a renewable one");
                std::vector<Int> ticks, amounts;
                self.line.usage.list(resource, ticks, amounts);
                const Int steps = static_cast<Int>(ticks.size());
                return nb::make_tuple(moved(std::move(ticks), {steps}), moved(std::move(amounts), {steps}));
            },
            "resource"_a,
            nb::sig("def usage(self, resource: int) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
            "Return the ticks (k,) from which another amount of a renewable resource is in use, and these amounts.")
        .def(
            "can_run",
            [](BoundTimeline& self, Int task, Int device) {
                self.check_task(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) { return timeline.can_run(task, device); });
            },
            "task"_a, "device"_a,
            "Return whether a device can take a task: by its memory and its group, and apart from others.")
        .def(
            "earliest",
            [](BoundTimeline& self, Int task, Int device) {
                self.line.check_next(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) {
                    return timeline.slot(task, device, timeline.ready_time(task, device)).start;
                });
            },
            "task"_a, "device"_a, "Return the earliest start of a task whose producers are placed.")
        .def(
            "place",
            [](BoundTimeline& self, Int task, Int device) {
                self.line.check_next(task);
                self.check_device(device);
                return with_rules(self.line, [&](auto& timeline) {
                    if (!timeline.can_run(task, device))
                        throw Wrong("device: " + std::to_string(device) + " cannot take task " + std::to_string(task) +
                                    "; expected one for which can_run is true");
                    timeline.place(task, device);
                    return self.line.start[task];
                });
            },
            "task"_a, "device"_a, "Place a task at its earliest start, and return that.")
        .def(
            "resume",
            [](BoundTimeline& self, Int placed) {
                Line& line = self.line;
                if (!line.record) throw Wrong("resume: the timeline does not record; expected record=True");
                const Int count = static_cast<Int>(line.placements.size());
                if (placed < 0 || placed > count)
                    throw Wrong("placed: " + std::to_string(placed) + "; expected 0 to " + std::to_string(count));
                while (static_cast<Int>(line.placements.size()) > placed) line.remove();
            },
            "placed"_a, "Take back placements, the latest first, until so many are left.");
}

}  // namespace engine
