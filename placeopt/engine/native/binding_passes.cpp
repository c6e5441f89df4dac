// Passes over windows of a schedule, and times along a sequence of tasks.
#include <memory>

#include "bindings.hpp"
#include "passes.hpp"

namespace engine {

namespace {

struct BoundPasses : Owning<std::unique_ptr<Passes>> {
    BoundGroups groups;

    BoundPasses(nb::handle of, nb::handle parts, nb::handle head, nb::handle behind, nb::handle device, nb::handle tail,
                Int span, Int seed)
        : groups(of, parts) {
        const Problem& p = nb::cast<const BoundProblem&>(of).value;
        if (p.ports.any() || p.tiers.any() || groups.value.live.on)
            throw Wrong("problem: has ports, memory tiers or live memory; expected none of them");
        if (seed < 1 || seed >= MODULUS) throw Wrong("seed: " + std::to_string(seed) + "; expected 1 to 2147483646");
        if (span < 0 || span >= NEVER) throw Wrong("span: " + std::to_string(span) + "; expected 0 to below 2^62");
        const auto matrix = [&](const char* name, nb::handle given) {
            const Ints found = keep<Int>(name, given, {p.n, p.m});
            check_range(name, found, 0, NEVER - 1);
            return found;
        };
        const Ints heads = matrix("head", head), ticks = matrix("behind", behind);
        const Ints devices = keep<Int>("device", device, {p.n}), tails = keep<Int>("tail", tail, {p.n});
        check_range("device", devices, 0, p.m - 1);
        check_range("tail", tails, 0, NEVER - 1);
        value = std::make_unique<Passes>(p, groups.value, heads, ticks, devices, tails, span, seed);
    }
};

}  // namespace

void bind_passes(nb::module_& module) {
    nb::class_<BoundPasses>(module, "Passes", R"(Forward and backward passes over a part of a schedule.

Each pass places all tasks again, with the schedule of the pass before as its knowledge of what follows. `head` (n, m) are
the ticks from which a device is free and data from outside is there, `behind` (n, m) those that follow outside. `device`
and `tail` (n,) are the devices of a schedule of `span` ticks, and the ticks from the start of each task to its end.)")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, Int, Int>(), "problem"_a,
             "groups"_a, "head"_a, "behind"_a, "device"_a, "tail"_a, "span"_a, "seed"_a,
             nb::sig("def __init__(self, problem: Problem, groups: object, head: numpy.typing.NDArray[numpy.int64], "
                     "behind: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], "
                     "tail: numpy.typing.NDArray[numpy.int64], span: int, seed: int) -> None"))
        .def(
            "run",
            [](BoundPasses& self, Int passes, Int noise, Int aim, Stop& stop) {
                if (noise < 0 || noise > 1000) throw Wrong("noise: " + std::to_string(noise) + "; expected 0 to 1000");
                if (aim < 0 || aim > 1000) throw Wrong("aim: " + std::to_string(aim) + "; expected 0 to 1000");
                const nb::gil_scoped_release unlocked;
                self.value->run(passes, noise, aim, stop);
            },
            "passes"_a, "noise"_a, "aim"_a, "stop"_a,
            "Make passes in alternating directions, until stopped.\n\n"
            "With `noise`, random ticks up to this many thousandths of it are added to each duration when devices are "
            "compared. With `aim`, devices with which a task keeps a makespan of this many thousandths of the best one count "
            "as equal.")
        .def_prop_ro("span", [](const BoundPasses& self) { return self.value->span(); }, "Makespan of the best schedule.")
        .def_prop_ro(
            "device",
            [](nb::handle_t<BoundPasses> self) {
                const auto& found = nb::cast<BoundPasses&>(self).value->device();
                return view(found, self, {static_cast<Int>(found.size())});
            },
            "(n,) devices of the best arrangement, once one is shorter than the schedule at the start.")
        .def_prop_ro(
            "start",
            [](nb::handle_t<BoundPasses> self) {
                const auto& found = nb::cast<BoundPasses&>(self).value->start();
                return view(found, self, {static_cast<Int>(found.size())});
            },
            "(n,) its starts.");

    const auto line = [](nb::handle sequence, nb::handle device, const Problem& p) {
        const auto tasks = array<Int>("sequence", sequence, {p.n}), devices = array<Int>("device", device, {p.n});
        check_range("device", devices, 0, p.m - 1);
        check_range("sequence", tasks, 0, p.n - 1);
        return std::pair{tasks, devices};
    };
    module.def(
        "earliest_starts",
        [line](const BoundProblem& problem, nb::handle sequence, nb::handle device) {
            const auto [tasks, devices] = line(sequence, device, of(problem));
            return moved(earliest_starts(of(problem), tasks, devices), {of(problem).n});
        },
        "problem"_a, "sequence"_a, "device"_a,
        nb::sig("def earliest_starts(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], "
                "device: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the earliest starts (n,) of a topological sequence (n,) of tasks on their devices (n,), without ports.");
    module.def(
        "tails",
        [line](const BoundProblem& problem, nb::handle sequence, nb::handle device) {
            const auto [tasks, devices] = line(sequence, device, of(problem));
            return moved(tails(of(problem), tasks, devices), {of(problem).n});
        },
        "problem"_a, "sequence"_a, "device"_a,
        nb::sig("def tails(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], "
                "device: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the ticks (n,) from the start of each task to the end of the longest path from it, of tasks, transfers and "
        "the sequence (n,) of its device (n,).");
    module.def(
        "latest_starts",
        [line](const BoundProblem& problem, nb::handle sequence, nb::handle device, nb::handle deadline) {
            const auto [tasks, devices] = line(sequence, device, of(problem));
            const auto due = array<Int>("deadline", deadline, {of(problem).n});
            return moved(latest_starts(of(problem), tasks, devices, due), {of(problem).n});
        },
        "problem"_a, "sequence"_a, "device"_a, "deadline"_a,
        nb::sig("def latest_starts(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], "
                "device: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64]) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return the latest starts (n,) with which each task and its followers meet their deadlines (n,), 2^63 - 1 for none.");
}

}  // namespace engine
