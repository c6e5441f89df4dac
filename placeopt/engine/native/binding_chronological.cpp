// A search that appends tasks to identical devices.
#include "bindings.hpp"
#include "chronological.hpp"

namespace engine {

void bind_chronological(nb::module_& module) {
    const auto viewed = [](std::vector<Int> Chronological::*member) {
        return [member](nb::handle_t<Chronological> self) {
            const auto& values = nb::cast<Chronological&>(self).*member;
            return view(values, self, {static_cast<Int>(values.size())});
        };
    };
    nb::class_<Chronological>(module, "Chronological", R"(A search that appends tasks to identical devices by their starts.

placeopt_solvers.exact._chronological has the rules. The targets of the edges out of task i are target[start[i]:start[i + 1]], and
`transfer` are their ticks between two devices. At most 64 tasks. It remembers up to `states` refuted states.)")
        .def(
            "__init__",
            [](Chronological* self, Int devices, nb::handle duration, nb::handle start, nb::handle target, nb::handle transfer,
               Int states) {
                IdenticalDevices given{devices, array<Int>("duration", duration, {ANY_LENGTH}), {}, {}, {}};
                const Int n = static_cast<Int>(given.duration.size());
                given.start = array<Int>("start", start, {n + 1});
                given.target = array<Int>("target", target, {ANY_LENGTH});
                const Int edges = static_cast<Int>(given.target.size());
                given.transfer = array<Int>("transfer", transfer, {edges});
                const Int most = (Int{1} << 48);
                if (devices < 1 || devices > 64) throw Wrong("devices: " + std::to_string(devices) + "; expected 1 to 64");
                if (n > Chronological::MOST_TASKS) throw Wrong("duration: " + std::to_string(n) + " tasks; expected at most 64");
                check_range("duration", given.duration, 0, most);
                check_starts("start", given.start, edges);
                check_range("target", given.target, 0, n - 1);
                check_range("transfer", given.transfer, 0, most);
                if (static_cast<Int>(topological_order(given.start, given.target).size()) < n)
                    throw Wrong("target: the edges form a cycle");
                if (states < 0) throw Wrong("states: " + std::to_string(states) + "; expected at least 0");
                new (self) Chronological(given, states);
            },
            "devices"_a, "duration"_a, "start"_a, "target"_a, "transfer"_a, "states"_a,
            nb::sig("def __init__(self, devices: int, duration: numpy.typing.NDArray[numpy.int64], "
                    "start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], "
                    "transfer: numpy.typing.NDArray[numpy.int64], states: int) -> None"))
        .def(
            "search",
            [](Chronological& self, Int makespan, Int nodes, Stop& stop) -> std::optional<bool> {
                if (makespan < 0 || makespan > self.makespan())
                    throw Wrong("makespan: " + std::to_string(makespan) + "; expected 0 to " + std::to_string(self.makespan()));
                Outcome found;
                {
                    const nb::gil_scoped_release unlocked;
                    found = self.search(makespan, nodes, stop);
                }
                if (found == Outcome::LIMIT) return std::nullopt;
                return found == Outcome::FOUND;
            },
            "makespan"_a, "nodes"_a, "stop"_a,
            "Return whether there is a schedule of at most `makespan` ticks; None if that is not known after `nodes` nodes. Further "
            "calls must not have longer makespans.")
        .def_ro("visited", &Chronological::visited, "Nodes so far.")
        .def_prop_ro("begin", viewed(&Chronological::begin), "(n,) start of each task, after `search` returned True.")
        .def_prop_ro("device", viewed(&Chronological::device), "(n,) its device.");
}

}  // namespace engine
