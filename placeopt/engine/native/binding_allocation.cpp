// Offsets of buffers.
#include <numeric>

#include "allocation.hpp"
#include "bindings.hpp"

namespace engine {

namespace {

// Amounts up to this one, in all: sums of two do not overflow.
constexpr Int MOST = Int{1} << 61;

Buffers buffers_of(nb::handle of) {
    Buffers b;
    b.size = array<Int>("size", of.attr("size"), {ANY_LENGTH});
    const Int n = b.count();
    b.first = ranged("first", of.attr("first"), n, 0, 2 * n);
    b.last = ranged("last", of.attr("last"), n, 0, 2 * n);
    b.alignment = ranged("alignment", of.attr("alignment"), n, 1, MOST);
    b.fixed = ranged("fixed", of.attr("fixed"), n, NONE, MOST);
    b.grain = nb::cast<Int>(of.attr("grain"));
    if (b.grain < 1 || b.grain > MOST) throw Wrong("grain: " + std::to_string(b.grain) + "; expected 1 or more");
    check_range("size", b.size, 1, MOST);
    Int total = 0;
    for (Int k = 0; k < n; ++k) {
        if (b.last[k] <= b.first[k]) throw Wrong("last: buffer " + std::to_string(k) + " ends before it begins");
        total = add(total, add(add(b.size[k], b.grain), add(b.alignment[k], std::max(b.fixed[k], Int{0}))));
    }
    if (total > MOST) throw Wrong("size: the amounts are 2^61 or more in all");
    return b;
}

Ints order_of(nb::handle given, const Buffers& buffers) {
    const auto order = ranged("order", given, buffers.count(), 0, buffers.count() - 1);
    std::vector<char> seen(order.size());
    for (const Int b : order)
        if (std::exchange(seen[b], 1)) throw Wrong("order: names buffer " + std::to_string(b) + " twice");
    return order;
}

}  // namespace

void bind_allocation(nb::module_& module) {
    module.def(
        "first_fit",
        [](nb::handle given, nb::handle order, Stop& stop) {
            const Buffers buffers = buffers_of(given);
            const Ints turn = order_of(order, buffers);
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                found = first_fit(buffers, turn, stop);
            }
            return moved_all(std::move(found));
        },
        "buffers"_a, "order"_a, "stop"_a,
        nb::sig("def first_fit(buffers: object, order: numpy.typing.NDArray[numpy.int64], stop: Stop) "
                "-> numpy.typing.NDArray[numpy.int64]"),
        "Return offsets (n,): each buffer in the order (n,) at the least free offset; those with given offsets come first.");
    module.def(
        "lower_height",
        [](nb::handle given, nb::handle at, Int target, Int seed, Int most, Stop& stop) {
            const Buffers buffers = buffers_of(given);
            const Ints offset = ranged("offset", at, buffers.count(), 0, MOST);
            if (seed < 0 || most < 1) throw Wrong("seed and most: expected 0 or more, and 1 or more");
            std::vector<Int> found;
            {
                const nb::gil_scoped_release unlocked;
                found = lower_height(buffers, offset, target, seed, most, stop);
            }
            return moved_all(std::move(found));
        },
        "buffers"_a, "offset"_a, "target"_a, "seed"_a, "most"_a, "stop"_a,
        nb::sig("def lower_height(buffers: object, offset: numpy.typing.NDArray[numpy.int64], target: int, seed: int, most: int, "
                "stop: Stop) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the best offsets (n,) of up to `most` moves of buffers, from given ones without overlaps; ends at the target height.");
    module.def(
        "fit_buffers",
        [](nb::handle given, nb::handle order, Int capacity, Int most, Stop& stop) {
            const Buffers buffers = buffers_of(given);
            const Ints turn = order_of(order, buffers);
            if (capacity < 0 || capacity > MOST) throw Wrong("capacity: " + std::to_string(capacity) + "; expected 0 to 2^61");
            Fitted found;
            {
                const nb::gil_scoped_release unlocked;
                found = fit_buffers(buffers, turn, capacity, most, stop);
            }
            const char* how = found.fit == Fit::FOUND ? "found" : found.fit == Fit::REFUTED ? "refuted" : "limit";
            return nb::make_tuple(how, found.nodes, moved_all(std::move(found.offset)));
        },
        "buffers"_a, "order"_a, "capacity"_a, "most"_a, "stop"_a,
        nb::sig("def fit_buffers(buffers: object, order: numpy.typing.NDArray[numpy.int64], capacity: int, most: int, stop: Stop) "
                "-> tuple[str, int, numpy.typing.NDArray[numpy.int64]]"),
        "Search offsets within a capacity; ties end by the order (n,). Return \"found\", \"refuted\", or \"limit\" after `most` nodes "
        "or at the stop; the nodes; and offsets (n,), which hold if found.");
}

}  // namespace engine
