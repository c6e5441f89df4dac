// Tabu search over critical paths.
#include "bound_instance.hpp"
#include "critical.hpp"

namespace engine {

namespace {

struct BoundCritical {
    BoundInstance instance;
    CriticalPaths value;

    BoundCritical(nb::handle of, Int seed) : instance(of), value(instance.value, checked_seed(seed)) {}
};

}  // namespace

void bind_critical(nb::module_& module) {
    const auto number = [](Int CriticalPaths::*member) { return [member](const BoundCritical& self) { return self.value.*member; }; };
    nb::class_<BoundCritical>(module, "CriticalPaths", R"(An order and a placement, and tabu search that moves tasks of a longest path.

`instance` are the arrays of placeopt_solvers._local_search.instance. Arrays are read-only views.)")
        .def(nb::init<nb::handle, Int>(), "instance"_a, "seed"_a, nb::sig("def __init__(self, instance: object, seed: int) -> None"))
        .def(
            "load",
            [](BoundCritical& self, nb::handle order, nb::handle device) { self.instance.load(self.value, order, device); },
            "order"_a, "device"_a,
            nb::sig("def load(self, order: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Continue from a topological order (n,) and devices (n,), with an empty tabu list.")
        .def(
            "search",
            [](BoundCritical& self, Int rounds, Int most, Int enough, Stop& stop) {
                const nb::gil_scoped_release unlocked;
                return self.value.search(rounds, most, enough, stop);
            },
            "rounds"_a, "most"_a, "enough"_a, "stop"_a,
            "Make moves until `rounds` in a row have not shortened the best state, or its makespan is at most `enough`; return their "
            "number.\n\nThe search also ends after about `most` steps of work.")
        .def_prop_ro("span", number(&CriticalPaths::span), "The makespan in ticks.")
        .def_prop_ro("held", number(&CriticalPaths::held), "The makespan of the best state since `load`, in ticks.")
        .def_prop_ro("work", number(&CriticalPaths::work), "Elementary steps so far.")
        .def_prop_ro("order", viewed<BoundCritical>(&CriticalPaths::order), "(n,) the tasks in a topological order.")
        .def_prop_ro("device", viewed<BoundCritical>(&CriticalPaths::device), "(n,) the device of each task.")
        .def_prop_ro("end", viewed<BoundCritical>(&CriticalPaths::end), "(n,) end of each task.")
        .def_prop_ro("after", viewed<BoundCritical>(&CriticalPaths::after), "(n,) ticks after each task's end.")
        .def_prop_ro("best_order", viewed<BoundCritical>(&CriticalPaths::best_order), "(n,) the order of the best state.")
        .def_prop_ro("best_device", viewed<BoundCritical>(&CriticalPaths::best_device), "(n,) its devices.");
}

}  // namespace engine
