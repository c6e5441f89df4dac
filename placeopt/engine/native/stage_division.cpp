// Divides an order of units into stages by dynamic programming over the places where a stage may end.
//
// The program is that of ideals.cpp for the sets of one order, with two differences that make it fast on large graphs: stages end
// only at some positions of the order, and devices may be used in a given order.
#include "stages.hpp"

namespace engine {

namespace {

class OrderDivision {
public:
    OrderDivision(const StageUnits& units, const DeviceLine& line, const UnitOrder& order, Int below)
        : units_(units), line_(line), at_(order), limit_(below), computing_(line.classes()), again_(line.classes()),
          barred_(line.classes()), known_(units.x), stamp_(units.x, NONE) {
        const std::size_t entries = order.cut.size() * line.used.size();
        table.value.assign(entries, NEVER);
        table.origin.assign(entries, NONE);
        table.move.assign(entries, NONE);
    }

    void run(Stop& stop) {
        const Int last = static_cast<Int>(at_.cut.size()) - 1, states = line_.states();
        table.value[last * states] = 0;
        for (Int j = last; j > 0; --j) {
            const auto row = table.value.begin() + j * states;
            if (*std::min_element(row, row + states) >= limit_) continue;
            total_ = {};
            std::fill(computing_.begin(), computing_.end(), 0);
            std::fill(again_.begin(), again_.end(), 0);
            std::fill(barred_.begin(), barred_.end(), 0);
            Int begin = j - 1;
            for (Int i = at_.cut[j] - 1; i >= 0; --i) {
                stop.poll(20 + line_.classes());
                if (!can_join(i, at_.cut[j])) break;
                add_unit(at_.order[i]);
                add_items(i, j, stop);
                if (i != at_.cut[begin]) continue;
                stop.poll(line_.classes() * line_.teams * states);
                if (!close_stage(begin, j) || begin == 0) break;
                --begin;
            }
        }
    }

    DivisionTable table;

private:
    // What a stage takes that grows towards the begin of the order.
    struct Total {
        Int fixed = 0, kept = 0, source = 0, gradient = 0, ahead = 0, behind = 0, sent = 0, received = 0, entering = 0;
    };
    // What is known of an item: a unit of the stage consumes it, it enters the stage, leaves it, is sent only once.
    enum Known : Int { CONSUMED = 1, ENTERS = 2, SENT = 4, MULTICAST = 8 };

    // Whether the unit at position i must be apart from no unit of positions (i, end).
    bool can_join(Int i, Int end) const {
        for (const Int other : units_.apart[at_.order[i]])
            if (i < at_.rank[other] && at_.rank[other] < end) return false;
        return true;
    }

    // Adds the work and the memory of a unit.
    void add_unit(Int v) {
        for (Int c = 0; c < line_.classes(); ++c) {
            const Int entry = v * units_.m + line_.device[c];
            computing_[c] = add(computing_[c], units_.computing[entry]);
            again_[c] = add(again_[c], units_.again[entry]);
            barred_[c] += !units_.allowed[entry];
        }
        total_.fixed = add(total_.fixed, units_.fixed[v]);
        total_.kept = add(total_.kept, units_.kept[v]);
        total_.source = add(total_.source, units_.source[v]);
        total_.gradient = add(total_.gradient, units_.gradient[v]);
        total_.ahead = add(total_.ahead, units_.tasks[2 * v]);
        total_.behind = add(total_.behind, units_.tasks[2 * v + 1]);
    }

    // A bit for each part that consumes item x outside positions [i, end).
    std::uint64_t parts_beyond(Int i, Int end, Int x) const {
        std::uint64_t parts = 0;
        for (const Int consumer : units_.consumer[x])
            if (const Int at = at_.rank[consumer]; at >= end || at < i) parts |= std::uint64_t{1} << at_.part[at];
        return parts;
    }

    // Adds the transfers of the unit at position i to the stage that ends at cut j and now begins there.
    //
    // An output that several later stages consume is sent to each of them. They are not known, so the `part` of each position
    // counts as its stage.
    void add_items(Int i, Int j, Stop& stop) {
        const Int v = at_.order[i], end = at_.cut[j];
        for (const Int x : units_.touched[v]) {
            const Int ticks = units_.transfer(x, 0, units_.m - 1);
            Int known = stamp_[x] == j ? known_[x] : 0;
            stop.poll(10 + static_cast<Int>(units_.consumer[x].size()));
            if (units_.producer[x] == v) {
                if (known & CONSUMED) total_.received -= ticks;
                if (known & ENTERS) total_.entering -= units_.payload[x];
                std::uint64_t parts = parts_beyond(i, end, x);
                if (parts != 0) known |= SENT;
                for (; parts != 0 && !(known & MULTICAST); parts &= parts - 1) {
                    total_.sent = add(total_.sent, ticks);
                    if (units_.multicast) known |= MULTICAST;
                }
            } else if (const Int at = at_.rank[units_.producer[x]]; i < at && at < end) {
                // A consumer that comes before its producer in the order: a backward task, for example.
                if (known & SENT && parts_beyond(i, end, x) == 0) {
                    total_.sent -= ticks;
                    known &= CONSUMED | ENTERS;
                }
            } else {
                if (!(known & CONSUMED)) {
                    total_.received = add(total_.received, ticks);
                    known |= CONSUMED;
                }
                if (!(known & ENTERS) && units_.enters(x, v) != 0) {
                    total_.entering = add(total_.entering, units_.payload[x]);
                    known |= ENTERS;
                }
            }
            known_[x] = known;
            stamp_[x] = j;
        }
    }

    // Updates the table with the stage between cuts `begin` and j on each team, and the limit of the period; returns whether any
    // class can run the stage, or a longer one.
    bool close_stage(Int begin, Int j) {
        const Int classes = line_.classes(), states = line_.states(), kinds = (total_.ahead > 0) + (total_.behind > 0);
        bool hopeful = false;
        for (Int c = 0; c < classes; ++c) {
            const Int d = line_.device[c];
            if (barred_[c] > 0 || total_.fixed > units_.capacity[d] || quotient_ceil(computing_[c], line_.teams) >= limit_) continue;
            hopeful = true;
            const Int busy = add(computing_[c], multiply(kinds, units_.launch[d]));
            for (Int r = 1; r <= line_.teams; ++r) {
                for (Int redone = 0; redone < (units_.recompute ? 2 : 1); ++redone) {
                    const Int work = redone ? add(busy, again_[c]) : busy;
                    const Int load = units_.tracks.period(d, r, work, total_.sent, total_.received, total_.gradient);
                    if (load >= limit_) continue;
                    // Bytes once, and for each run under way.
                    const Int once = total_.fixed - (redone ? total_.source : total_.kept);
                    const Int each = redone ? add(total_.entering, total_.source) : total_.kept;
                    for (Int q = 0; q < states; ++q) {
                        const Int then = line_.then[(q * classes + c) * line_.teams + r - 1];
                        const Int worst = std::max(load, table.value[j * states + q]), entry = begin * states + then;
                        if (then < 0 || worst >= limit_ || worst >= table.value[entry]) continue;
                        const Int runs = units_.in_flight > 0 ? units_.in_flight : quotient_ceil(line_.used[q] + r, r);
                        if (add(once, multiply(runs, each)) > units_.capacity[d]) continue;
                        table.value[entry] = worst;
                        table.origin[entry] = j;
                        table.move[entry] = (r * classes + c) * 2 + redone;
                        if (begin == 0) limit_ = worst;
                    }
                }
            }
        }
        return hopeful;
    }

    const StageUnits& units_;
    const DeviceLine& line_;
    const UnitOrder& at_;
    Int limit_;
    Total total_;
    std::vector<Int> computing_, again_, barred_;  // (c,) ticks, those of outputs computed again, units that may not run there
    std::vector<Int> known_, stamp_;  // (x,) what is known of each item, for the stage that ends at which cut
};

}  // namespace

DivisionTable divide_order(const StageUnits& units, const DeviceLine& line, const UnitOrder& order, Int below, Stop& stop) {
    OrderDivision division(units, line, order, below);
    division.run(stop);
    return std::move(division.table);
}

}  // namespace engine
