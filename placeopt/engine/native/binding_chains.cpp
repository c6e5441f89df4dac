// Division of chains into stages.
#include "chains.hpp"
#include "fields.hpp"

namespace engine {

namespace {

Chain chain_of(Fields& of) {
    Chain chain;
    chain.size = of.ints("size", {ANY_LENGTH}, 1, INT16_MAX);
    chain.fixed = of.ints("fixed", {ANY_LENGTH});
    const Int c = chain.classes = static_cast<Int>(chain.size.size()), cuts = static_cast<Int>(chain.fixed.size());
    chain.n = cuts - 1;
    if (c == 0 || cuts < 2) throw Wrong("size, fixed: no class or no node; expected at least one of both");
    if (cuts > INT32_MAX) throw Wrong("fixed: too many nodes");
    for (const Int size : chain.size) chain.devices = add(chain.devices, size);
    chain.computing = of.ints("computing", {c, cuts});
    chain.again = of.ints("again", {c, cuts});
    chain.nearest = of.ints("nearest", {c, cuts}, 0, cuts - 1);
    chain.kept = of.ints("kept", {cuts});
    chain.source = of.ints("source", {cuts});
    chain.gradient = of.ints("gradient", {cuts});
    chain.ahead = of.ints("ahead", {cuts});
    chain.behind = of.ints("behind", {cuts});
    chain.down = of.ints("down", {ANY_LENGTH, cuts});
    const Int links = chain.links = static_cast<Int>(chain.down.size()) / cuts;
    if (links == 0) throw Wrong("down: no link; expected at least one");
    chain.up = of.ints("up", {links, cuts});
    chain.entering_down = of.ints("entering_down", {cuts});
    chain.entering_up = of.ints("entering_up", {cuts});
    chain.reach = of.ints("reach", {cuts}, 1, cuts);
    for (Int cut = 0; cut < cuts; ++cut)
        if (chain.reach[cut] <= cut) throw Wrong("reach: entry " + std::to_string(cut) + " is " + std::to_string(chain.reach[cut]) + "; expected a later cut");
    chain.link = of.ints("link", {c, c}, 0, links - 1);
    chain.binding = of.flags("binding", {c});
    chain.capacity = of.ints("capacity", {c});
    chain.launch = of.ints("launch", {c});
    chain.tracks = of.tracks(c);
    chain.replicas = of.number("replicas", 1);
    chain.in_flight = of.number("in_flight", 0);
    chain.recompute = of.flag("recompute");
    return chain;
}

struct BoundDivider {
    Fields fields;
    Chain chain;
    ChainDivider value;
    bool begun = false;

    BoundDivider(nb::handle of, bool layered) : fields(of), chain(chain_of(fields)), value(chain, layered) {}

    void check_begun() const {
        if (!begun) throw Wrong("period: no search has begun; `begin` one first");
    }
    void check(const char* name, Int value, Int least, Int most) const {
        if (value < least || value > most)
            throw Wrong(std::string(name) + ": " + std::to_string(value) + "; expected " + std::to_string(least) + " to " + std::to_string(most));
    }
};

nb::object pieces_of(Pieces&& found) {
    std::vector<Int> rows;
    for (const Piece& piece : found.pieces) rows.insert(rows.end(), {piece.begin, piece.end, piece.label, piece.team});
    return nb::make_tuple(moved(std::move(rows), {static_cast<Int>(found.pieces.size()), 4}), found.complete);
}

}  // namespace

void bind_chains(nb::module_& module) {
    nb::class_<BoundDivider>(module, "ChainDivider", R"(Divisions of a chain into stages whose loads are at most a period.

`chain` is that of placeopt_solvers.pipelines._chains.chain. With `layered`, prices count the devices behind a stage if memory limits
the runs under way. Loops raise StoppedError.)")
        .def(nb::init<nb::handle, bool>(), "chain"_a, "layered"_a, nb::sig("def __init__(self, chain: object, layered: bool) -> None"))
        .def(
            "begin",
            [](BoundDivider& self, Int period, nb::handle price, Stop& stop) {
                self.check("period", period, 0, NEVER - 1);
                const auto prices = array<Int>("price", price, {self.chain.classes});
                check_range("price", prices, 0, NEVER - 1);
                self.begun = true;
                const nb::gil_scoped_release unlocked;
                return self.value.begin(period, prices, stop);
            },
            "period"_a, "price"_a, "stop"_a,
            nb::sig("def begin(self, period: int, price: numpy.typing.NDArray[numpy.int64], stop: Stop) -> bool"),
            "Start a search for a period with prices (c,) of devices; return whether they allow a division.")
        .def(
            "rooms",
            [](BoundDivider& self, nb::handle weight, Stop& stop) {
                self.check_begun();
                const auto weights = array<Int>("weight", weight, {self.chain.n + 1});
                std::vector<Int> found;
                {
                    const nb::gil_scoped_release unlocked;
                    found = self.value.rooms(weights, stop);
                }
                return moved(std::move(found), {self.chain.classes});
            },
            "weight"_a, "stop"_a,
            nb::sig("def rooms(self, weight: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the most weight of a stage for each device of each class (c,); `weight` (n + 1,) holds sums over nodes.")
        .def(
            "used",
            [](const BoundDivider& self) {
                self.check_begun();
                return moved(self.value.used(), {self.chain.classes});
            },
            nb::sig("def used(self) -> numpy.typing.NDArray[numpy.int64]"),
            "Return the devices (c,) that the cheapest stages of the last `begin` use.")
        .def(
            "table",
            [](BoundDivider& self, Stop& stop) {
                self.check_begun();
                Pieces found;
                {
                    const nb::gil_scoped_release unlocked;
                    found = self.value.table(stop);
                }
                return pieces_of(std::move(found));
            },
            "stop"_a, nb::sig("def table(self, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], bool]"),
            "Search all vectors of used devices; return the begin, the end, the class and the team of each stage (s, 4), the first one "
            "first, and whether the search was complete. Without stages, there is no division with the period.")
        .def(
            "beam",
            [](BoundDivider& self, Int width, Stop& stop) {
                self.check_begun();
                self.check("width", width, 1, Int{1} << 31);
                Pieces found;
                {
                    const nb::gil_scoped_release unlocked;
                    found = self.value.beam(width, stop);
                }
                return pieces_of(std::move(found));
            },
            "width"_a, "stop"_a,
            nb::sig("def beam(self, width: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], bool]"),
            "The same with at most `width` vectors for each number of used devices. It is complete if none was left out.")
        .def(
            "least_load",
            [](const BoundDivider& self, Int label, Int team, Int runs, Int begin, Int end, Int before, Int after) {
                self.check("label", label, 0, self.chain.classes - 1);
                self.check("team", team, 1, self.chain.devices);
                self.check("runs", runs, 1, NEVER - 1);
                self.check("end", end, 1, self.chain.n);
                self.check("begin", begin, 0, end - 1);
                self.check("before", before, 0, self.chain.links - 1);
                self.check("after", after, 0, self.chain.links - 1);
                return self.value.least_load(label, team, runs, begin, end, before, after);
            },
            "label"_a, "team"_a, "runs"_a, "begin"_a, "end"_a, "before"_a, "after"_a,
            "Return the least load of a stage with `runs` runs under way and links `before` and `after` it; 2^62 if none fits.")
        .def_prop_ro("least_cost", [](const BoundDivider& self) { return self.value.least_cost(); },
                     "The price of the cheapest stages for all nodes; 2^62 without.")
        .def_prop_ro("next", [](const BoundDivider& self) { return self.value.next; },
                     "The least load that was above the period; 2^62 without.")
        .def_prop_ro("rows", [](const BoundDivider& self) { return self.value.rows(); },
                     "Numbers of devices behind a stage that prices count.");
}

}  // namespace engine
