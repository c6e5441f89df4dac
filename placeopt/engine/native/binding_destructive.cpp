// Destructive bounds.
#include <memory>

#include "bindings.hpp"
#include "destructive.hpp"

namespace engine {

namespace {

struct BoundPropagation : Owning<std::unique_ptr<Propagation>> {
    Int tasks, classes;

    BoundPropagation(const BoundProblem& bound, nb::handle head, nb::handle tail, nb::handle duration, nb::handle move,
                     nb::handle capacity, nb::handle memory, nb::handle separation) {
        arrays.push_back(nb::find(bound));
        const Problem& p = of(bound);
        const auto ints = [&](const char* name, nb::handle given, Shape shape, Int least, Int most) {
            const Ints found = keep<Int>(name, given, shape);
            check_range(name, found, least, most);
            return found;
        };
        ClassTimes times;
        times.capacity = ints("capacity", capacity, {ANY_LENGTH}, 0, INT64_MAX);
        const Int n = tasks = p.n, k = classes = static_cast<Int>(times.capacity.size());
        times.head = ints("head", head, {n, k}, 0, NEVER_BOUND);
        times.tail = ints("tail", tail, {n, k}, 0, NEVER_BOUND);
        times.duration = ints("duration", duration, {n, k}, 0, NEVER_BOUND / 2);
        times.move = ints("move", move, {p.e, k, k}, 0, NEVER_BOUND);
        times.memory = ints("memory", memory, {n}, 0, INT64_MAX);
        times.separation = ints("separation", separation, {ANY_LENGTH, 2}, 0, n - 1);
        value = std::make_unique<Propagation>(p, times);
    }
};

}  // namespace

void bind_destructive(nb::module_& module) {
    const auto ints = [](std::vector<Int> Propagation::*member, bool by_class) {
        return [member, by_class](nb::handle_t<BoundPropagation> handle) {
            const auto& self = nb::cast<BoundPropagation&>(handle);
            const auto& values = (*self.value).*member;
            if (by_class) return view(values, handle, {self.tasks, self.classes});
            return view(values, handle, {static_cast<Int>(values.size())});
        };
    };
    nb::class_<BoundPropagation>(module, "Propagation", R"(Start windows and clusters of tasks that follow from a makespan.

placeopt.bounding.destructive has the rules. There are n tasks, e edges and k classes of devices: `head`, `tail` and
`duration` (n, k) are ticks, with heads of 2^61 where a task does not run, `move` (e, k, k) the ticks from a device of the
first class to another device of the second, `capacity` (k,) and `memory` (n,) bytes, and `separation` (p, 2) tasks that do
not share a device. After `refutes` returned False, the arrays hold for every schedule within the makespan; they are
read-only views.)")
        .def(nb::init<const BoundProblem&, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
             "problem"_a, "head"_a, "tail"_a, "duration"_a, "move"_a, "capacity"_a, "memory"_a, "separation"_a,
             nb::sig("def __init__(self, problem: Problem, head: numpy.typing.NDArray[numpy.int64], "
                     "tail: numpy.typing.NDArray[numpy.int64], duration: numpy.typing.NDArray[numpy.int64], "
                     "move: numpy.typing.NDArray[numpy.int64], capacity: numpy.typing.NDArray[numpy.int64], "
                     "memory: numpy.typing.NDArray[numpy.int64], separation: numpy.typing.NDArray[numpy.int64]) -> None"))
        .def(
            "refutes",
            [](BoundPropagation& self, Int makespan, Int most, Int probe, Int whole, Int changes, Stop& stop) {
                if (makespan < 0 || makespan > NEVER_BOUND)
                    throw Wrong("makespan: " + std::to_string(makespan) + "; expected 0 to 2^61");
                const nb::gil_scoped_release unlocked;
                return self.value->refutes(makespan, most, {probe, whole, changes}, stop);
            },
            "makespan"_a, "most"_a, "probe"_a, "whole"_a, "changes"_a, "stop"_a,
            "Return whether the rules refute the makespan: alone if `most` is 0, else also by assumptions about single edges, "
            "in up to about `most` cases. A probe takes about `probe` steps and makes at most `changes` changes; what follows "
            "from a decision takes about `whole` steps.")
        .def_prop_ro("cases", [](const BoundPropagation& self) { return self.value->cases; },
                     "Number of cases of the last makespan.")
        .def_prop_ro("start", ints(&Propagation::start, true),
                     "(n, k) earliest start of each task on each class, 2^61 if it does not run there.")
        .def_prop_ro("latest", ints(&Propagation::latest, true), "(n, k) latest start.")
        .def_prop_ro("cut", ints(&Propagation::cut, false), "(e,) 1 if the ends of the edge run on different devices.")
        .def_prop_ro("cluster", ints(&Propagation::cluster, false), "(n,) tasks with the same number run on one device.");
}

}  // namespace engine
