// Search in windows.
#include "bound_instance.hpp"
#include "windows.hpp"

namespace engine {

namespace {

struct BoundWindows {
    BoundInstance instance;
    WindowMoves value;

    BoundWindows(nb::handle of, Int seed) : instance(of), value(instance.value, checked_seed(seed)) {}

    // Moves need a task to draw.
    void check_window() const {
        if (value.low >= value.high) throw Wrong("window: has no task; `enter` one first");
    }
};

Tuning checked_tuning(nb::handle given) {
    const auto values = nb::cast<nb::tuple>(given);
    if (values.size() != 8) throw Wrong("tuning: expected 8 numbers");
    const auto number = [&](std::size_t place, Int least, Int most) {
        const Int value = nb::cast<Int>(values[place]);
        if (value < least || value > most) throw Wrong("tuning: entry " + std::to_string(place) + " is " + std::to_string(value));
        return value;
    };
    constexpr Int many = 1 << 24;
    return {number(0, 0, 100), number(1, 0, 100), number(2, 0, 100), number(3, 0, 100),
            number(4, 1, many), number(5, 0, many), number(6, 0, 100), number(7, 0, many)};
}

}  // namespace

void bind_windows(nb::module_& module) {
    const auto number = [](Int WindowMoves::*member) { return [member](const BoundWindows& self) { return self.value.*member; }; };
    nb::class_<BoundWindows>(module, "WindowMoves", R"(An order and a placement, and moves in a window of the order that keep the makespan exact.

`instance` are the arrays of placeopt_solvers._local_search.instance. Arrays are read-only views; ends are valid before the window's
end, tails from its begin on.)")
        .def(nb::init<nb::handle, Int>(), "instance"_a, "seed"_a, nb::sig("def __init__(self, instance: object, seed: int) -> None"))
        .def(
            "load",
            [](BoundWindows& self, nb::handle order, nb::handle device) { self.instance.load(self.value, order, device); },
            "order"_a, "device"_a,
            nb::sig("def load(self, order: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> None"),
            "Continue from a topological order (n,) and devices (n,); the window is empty and at the begin.")
        .def(
            "reserve",
            [](BoundWindows& self, Int first, nb::handle free) {
                const auto ticks = array<Int>("free", free, {self.instance.value.m});
                check_range("free", ticks, 0, NEVER - 1);
                self.value.reserve(first, ticks);
            },
            "first"_a, "free"_a, nb::sig("def reserve(self, first: int, free: numpy.typing.NDArray[numpy.int64]) -> None"),
            "From position `first` on, devices are not free before the ticks `free` (m,). Counts from the next `load` on.")
        .def(
            "enter",
            [](BoundWindows& self, Int low, Int high) {
                if (low < self.value.low || high < self.value.high || low > high || high > self.instance.value.n)
                    throw Wrong("low, high: " + std::to_string(low) + ", " + std::to_string(high) +
                                "; expected positions that are not before those of the window");
                const nb::gil_scoped_release unlocked;
                self.value.enter(low, high);
            },
            "low"_a, "high"_a, "Move the window to the positions [low, high), where neither is lower than before.")
        .def(
            "walk",
            [](BoundWindows& self, nb::tuple tuning, Int begin, Int end, Int rounds, double hot, double cold, Stop& stop) {
                self.check_window();
                if (begin < 0 || end > rounds) throw Wrong("begin, end: expected 0 to rounds");
                const Tuning chosen = checked_tuning(tuning);
                const nb::gil_scoped_release unlocked;
                return self.value.walk(chosen, begin, end, rounds, hot, cold, stop);
            },
            "tuning"_a, "begin"_a, "end"_a, "rounds"_a, "hot"_a, "cold"_a, "stop"_a,
            nb::sig("def walk(self, tuning: tuple[int, ...], begin: int, end: int, rounds: int, hot: float, cold: float, "
                    "stop: Stop) -> int"),
            "Try the moves `begin` to `end` of a walk of `rounds` moves in the window; return the number of the next.\n\n"
            "Temperatures fall from `hot` to `cold` ticks along the walk; 0 accepts moves that do not increase the makespan.")
        .def("keep_best", [](BoundWindows& self) { self.value.keep_best(); }, "Store the state as the best so far.")
        .def("settle", [](BoundWindows& self) { self.value.settle(); },
             "End the moves in the window: store the state if it is not longer than the best one, and return to that one otherwise.")
        .def(
            "propose",
            [](BoundWindows& self, nb::tuple tuning, double limit) {
                self.check_window();
                return self.value.propose(checked_tuning(tuning), limit);
            },
            "tuning"_a, "limit"_a, nb::sig("def propose(self, tuning: tuple[int, ...], limit: float) -> bool"),
            "Apply a random move; return False if there is none, or its makespan is certainly above `limit`.")
        .def("evaluate", [](BoundWindows& self, Int limit) { return self.value.evaluate(limit); }, "limit"_a,
             "Time a proposal; return whether the makespan is at most `limit`. Then `accept` or `reject` it.")
        .def("accept", [](BoundWindows& self) { self.value.accept(); }, "Repair the tails after a proposal.")
        .def("reject", [](BoundWindows& self) { self.value.reject(); }, "Reverse a proposal and its times.")
        .def_prop_ro("marked", [](const BoundWindows& self) { return self.value.any_marked(); }, "Whether a task is to be timed again.")
        .def_prop_ro("low", number(&WindowMoves::low), "First position of the window.")
        .def_prop_ro("high", number(&WindowMoves::high), "Position after the window.")
        .def_prop_ro("span", number(&WindowMoves::span), "The makespan in ticks.")
        .def_prop_ro("held", number(&WindowMoves::held), "The makespan of the best state in ticks.")
        .def_prop_ro("evaluated", number(&WindowMoves::evaluated), "Moves that walks evaluated.")
        .def_prop_ro("fresh", [](const BoundWindows& self) { return self.value.fresh; },
                     "Whether the best state and this one are the same outside the window.")
        .def_prop_ro("order", viewed<BoundWindows>(&WindowMoves::order), "(n,) the tasks in a topological order.")
        .def_prop_ro("position", viewed<BoundWindows>(&WindowMoves::position), "(n,) the position of each task in it.")
        .def_prop_ro("device", viewed<BoundWindows>(&WindowMoves::device), "(n,) the device of each task.")
        .def_prop_ro("ticks", viewed<BoundWindows>(&WindowMoves::ticks), "(n,) ticks of each task on its device.")
        .def_prop_ro("delay", viewed<BoundWindows>(&WindowMoves::delay), "(e,) ticks of each in-edge's transfer.")
        .def_prop_ro("end", viewed<BoundWindows>(&WindowMoves::end), "(n,) end of each task.")
        .def_prop_ro("after", viewed<BoundWindows>(&WindowMoves::after), "(n,) ticks after each task's end.")
        .def_prop_ro("reach", viewed<BoundWindows>(&WindowMoves::reach), "(n,) longest path that leaves the window at each of its tasks.")
        .def_prop_ro("before", viewed<BoundWindows>(&WindowMoves::before), "(n,) the task before each on its device, or -1.")
        .def_prop_ro("behind", viewed<BoundWindows>(&WindowMoves::behind), "(n,) the task after each on its device, or -1.")
        .def_prop_ro("first", viewed<BoundWindows>(&WindowMoves::first), "(m,) the first task of each device, or -1.")
        .def_prop_ro("room", viewed<BoundWindows>(&WindowMoves::room), "(m,) bytes left on each device.")
        .def_prop_ro("best_order", viewed<BoundWindows>(&WindowMoves::best_order), "(n,) the order of the best state.")
        .def_prop_ro("best_device", viewed<BoundWindows>(&WindowMoves::best_device), "(n,) its devices.");
}

}  // namespace engine
