// The most that a device can hold.
#include "bindings.hpp"
#include "frontier.hpp"

namespace engine {

void bind_frontier(nb::module_& module) {
    module.def(
        "hold_most",
        [](nb::handle order, nb::handle amount, nb::handle worth, nb::handle excluded, nb::handle producer, nb::handle start,
           nb::handle consumer, nb::handle ticks, nb::handle gain, nb::handle copies, Int limit, Int sets, Stop& stop) {
            Frontier f;
            f.amount = array<Int>("amount", amount, {ANY_LENGTH});
            f.ticks = array<Int>("ticks", ticks, {ANY_LENGTH});
            const Int g = static_cast<Int>(f.amount.size()), x = static_cast<Int>(f.ticks.size());
            f.order = array<Int>("order", order, {g});
            f.worth = array<Int>("worth", worth, {g});
            f.excluded = array<bool>("excluded", excluded, {g});
            f.producer = array<Int>("producer", producer, {x});
            f.start = array<Int>("start", start, {x + 1});
            f.consumer = array<Int>("consumer", consumer, {ANY_LENGTH});
            f.gain = array<Int>("gain", gain, {x});
            f.copies = array<Int>("copies", copies, {x});
            check_starts("start", f.start, static_cast<Int>(f.consumer.size()));
            check_range("order", f.order, 0, g - 1);
            check_range("producer", f.producer, 0, g - 1);
            check_range("consumer", f.consumer, 0, g - 1);
            check_range("amount", f.amount, 0, FRONTIER_LOADS - 1);
            check_range("ticks", f.ticks, 0, FRONTIER_LOADS - 1);
            check_range("copies", f.copies, 1, FRONTIER_CODES - 3);
            check_range("worth", f.worth, 0, FRONTIER_LOADS - 1);
            check_range("gain", f.gain, 1 - FRONTIER_LOADS, FRONTIER_LOADS - 1);
            if (sets < 0) throw Wrong("sets: " + std::to_string(sets) + "; expected at least 0");
            if (limit < 0 || limit >= FRONTIER_LOADS) throw Wrong("limit: " + std::to_string(limit) + "; expected 0 to 2^30 - 1");
            std::vector<Int> place(g, NONE);
            for (Int s = 0; s < g; ++s) place[f.order[s]] = s;
            Int total = 0;
            for (Int s = 0; s < g; ++s) {
                if (place[s] == NONE) throw Wrong("order: group " + std::to_string(s) + " is missing");
                total = add(total, f.amount[s]);
            }
            for (Int j = 0; j < x; ++j) {
                const std::string item = "item " + std::to_string(j);
                if (f.start[j] == f.start[j + 1]) throw Wrong("start: " + item + " has no consumer");
                for (Int k = f.start[j]; k < f.start[j + 1]; ++k)
                    if (place[f.consumer[k]] <= place[f.producer[j]]) throw Wrong("order: " + item + " has a consumer before its producer");
                total = add(total, multiply(f.ticks[j], f.copies[j]));
            }
            if (total >= FRONTIER_LOADS) throw Wrong("amount, ticks: they add up to " + std::to_string(total) + "; expected less than 2^30");
            Held found;
            {
                const nb::gil_scoped_release unlocked;
                found = hold_most(f, limit, sets, stop);
            }
            const Int rows = g + x ? static_cast<Int>(found.balance.size()) / (g + x) : 0;
            return nb::make_tuple(found.most, moved(std::move(found.balance), {rows, g + x}));
        },
        "order"_a, "amount"_a, "worth"_a, "excluded"_a, "producer"_a, "start"_a, "consumer"_a, "ticks"_a, "gain"_a, "copies"_a, "limit"_a,
        "sets"_a, "stop"_a,
        nb::sig("def hold_most(order: numpy.typing.NDArray[numpy.int64], amount: numpy.typing.NDArray[numpy.int64], "
                "worth: numpy.typing.NDArray[numpy.int64], excluded: numpy.typing.NDArray[numpy.bool], "
                "producer: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], "
                "consumer: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], "
                "gain: numpy.typing.NDArray[numpy.int64], copies: numpy.typing.NDArray[numpy.int64], limit: int, sets: int, stop: Stop) "
                "-> tuple[int, numpy.typing.NDArray[numpy.int64]]"),
        "Return the most that a set of groups is worth, with what it sends and receives, within a load of `limit`.\n\n"
        "Each item's `producer` (x,) precedes its consumers, those of item j at start[j]:start[j + 1], in `order` (g,). A group has a "
        "load `amount` (g,) and a `worth` (g,), and is not in the set if `excluded` (g,). An item takes `ticks` (x,) whenever it is sent, "
        "at most `copies` (x,) times, and if it is received; it is worth `gain` (x,) if sent, -gain if received. All loads add up to less "
        "than 2^30. The result: the most, and sets of at most `sets` worths (placeopt.bounding.borders.frontier): 1 for each group, and "
        "how often each item is sent, -1 if it is received, as (s, g + x).");
}

}  // namespace engine
