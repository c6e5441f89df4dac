// Simulated annealing of the stages and devices of a pipeline.
#include <cmath>

#include "stages.hpp"

namespace engine {

namespace {

// Units that a move takes along, at most.
constexpr Int MOST_MOVED = 256;

}  // namespace

StageSearch::StageSearch(const StageUnits& units, Placement start, Int seed, Int squares, double scale, Stop& stop)
    : now(start), best(std::move(start)), units_(units), stop_(&stop), random_(seed % (MODULUS - 1) + 1), squares_(squares),
      longest_(std::min(std::max(units.k / 8, Int{4}), MOST_MOVED)), scale_(scale), team_(units.m), stages_(units.m) {
    rebuild();
    cost_ = assess();
    stop_ = nullptr;
}

void StageSearch::set_weight(double changed) {
    weight = changed;
    cost_ = assess();
}

// Adds to a place and its device what a unit takes by itself, or subtracts it (sign -1).
void StageSearch::take(Int unit, Int place, Int sign) {
    const Int d = now.home[place], at = unit * units_.m + d;
    Load& load = load_[d];
    load.busy = add(load.busy, sign * units_.computing[at]);
    load.again = add(load.again, sign * units_.again[at]);
    load.fixed = add(load.fixed, sign * units_.fixed[unit]);
    load.kept = add(load.kept, sign * units_.kept[unit]);
    load.source = add(load.source, sign * units_.source[unit]);
    load.gradient = add(load.gradient, sign * units_.gradient[unit]);
    for (Int way = 0; way < 2; ++way) {
        const Int tasks = sign * units_.tasks[2 * unit + way];
        load.tasks[way] = add(load.tasks[way], tasks);
        filled_[place][way] = add(filled_[place][way], tasks);
    }
}

// Adds what an item takes of all devices if device `a` produces it, or subtracts it (sign -1). `only` is the device of its
// consumer if it has one consumer, otherwise NONE.
void StageSearch::count(Int item, Int a, Int only, Int sign) {
    const Int m = units_.m, first = only < 0 ? 0 : only, last = only < 0 ? m : only + 1;
    Int most = 0, total = 0;
    poll(last - first);
    for (Int b = first; b < last; ++b) {
        if (b == a || consumers_[item * m + b] == 0) continue;
        const Int ticks = units_.transfer(item, a, b);
        Load& load = load_[b];
        load.received = add(load.received, sign * ticks);
        total = add(total, ticks);
        most = std::max(most, ticks);
        if (units_.recompute && entering_[item * m + b] > 0) load.entering = add(load.entering, sign * units_.payload[item]);
    }
    load_[a].sent = add(load_[a].sent, sign * (units_.multicast ? most : total));
}

// Moves a unit to a place.
void StageSearch::shift(Int unit, Int place) {
    const Int old = now.place[unit], a = now.home[old], b = now.home[place], m = units_.m;
    take(unit, old, -1);
    now.place[unit] = place;
    take(unit, place, 1);
    if (a == b) return;
    for (const Int item : units_.touched[unit]) {
        const bool produces = units_.producer[item] == unit;
        const Int source = produces ? a : where(units_.producer[item]);
        const Ints consumers = units_.consumer[item];
        const bool lone = consumers.size() == 1;
        Int only = !lone ? NONE : produces ? where(consumers[0]) : a;
        count(item, source, only, -1);
        if (!produces) {
            if (lone) only = b;
            --consumers_[item * m + a];
            ++consumers_[item * m + b];
            if (units_.recompute) {
                const auto enters = static_cast<std::int32_t>(units_.enters(item, unit));
                entering_[item * m + a] -= enters;
                entering_[item * m + b] += enters;
            }
        }
        count(item, produces ? b : source, only, 1);
    }
}

// Computes all sums from places, homes and teams.
void StageSearch::rebuild() {
    const Int m = units_.m;
    load_.assign(m, {});
    filled_.assign(now.home.size(), {0, 0});
    consumers_.assign(multiply(units_.x, m), 0);
    if (units_.recompute) entering_.assign(consumers_.size(), 0);
    std::fill(team_.begin(), team_.end(), 0);
    for (const Int leader : now.leader) ++team_[leader];
    for (Int unit = 0; unit < units_.k; ++unit) {
        poll(10);
        take(unit, now.place[unit], 1);
    }
    for (Int item = 0; item < units_.x; ++item) {
        for (Int at = units_.consumer.start[item]; at < units_.consumer.start[item + 1]; ++at) {
            const Int slot = item * m + where(units_.consumer.item[at]);
            ++consumers_[slot];
            if (units_.recompute) entering_[slot] += static_cast<std::int32_t>(units_.entering[at]);
        }
        count(item, where(units_.producer[item]), NONE, 1);
    }
}

double StageSearch::assess() {
    double norm = 0.0, share = 0.0;
    Int later = 0;
    period = over = 0;
    std::fill(stages_.begin(), stages_.end(), 0);
    for (std::size_t p = 0; p < filled_.size(); ++p) stages_[now.home[p]] += (filled_[p][0] > 0) + (filled_[p][1] > 0);
    for (std::size_t p = filled_.size(); p-- > 0;) {
        const Int d = now.home[p], r = team_[d], stages = stages_[d];
        // A device with several places counts once, at the last of them: only 1f1b depends on the order, and it allows one
        // place.
        stages_[d] = NONE;
        if (r == 0 || stages == NONE) continue;
        const Load& load = load_[d];
        Int busy = add(load.busy, multiply(stages, units_.launch[d])), runs = units_.in_flight;
        if (runs == 0) {
            runs = 1;
            if (load.tasks[0] > 0) {
                later += r;
                runs = quotient_ceil(later, r);
            }
        }
        Int need = load.fixed;
        if (now.again[d]) {
            busy = add(busy, load.again);
            need = add(need, add(multiply(runs, load.entering), multiply(runs - 1, load.source)));
        } else {
            need = add(need, multiply(runs - 1, load.kept));
        }
        const Int total = units_.tracks.ticks(d, r, busy, load.sent, load.received, load.gradient);
        period = std::max(period, quotient_ceil(total, r));
        double part = static_cast<double>(total) / (static_cast<double>(r) * scale_);
        for (Int k = 0; k < squares_; ++k) part *= part;
        norm += part;
        if (const Int capacity = units_.capacity[d]; need > capacity) {
            over = add(over, need - capacity);
            share += static_cast<double>(need - capacity) / static_cast<double>(std::max(capacity, Int{1})) + 1e-3;
        }
    }
    return std::pow(norm, std::ldexp(1.0, -static_cast<int>(squares_))) + weight * share;
}

void StageSearch::keep() {
    best = now;
    best_period = period;
    known = true;
}

void StageSearch::anneal(Int begin, Int end, Int rounds, double hot, double cold, Stop& stop) {
    struct Polled {
        Stop*& stop;
        ~Polled() { stop = nullptr; }
    };
    stop_ = &stop;
    const Polled polled{stop_};
    walk(begin, end, rounds, hot, cold);
}

void StageSearch::walk(Int begin, Int end, Int rounds, double hot, double cold) {
    // A swap of devices computes all sums again, so it is rare.
    const Int rare = std::max(units_.k / 4, Int{20}), places = static_cast<Int>(now.home.size());
    Int least = known ? best_period : NEVER;
    for (Int at = begin; at < end; ++at) {
        poll(50 + 10 * places);
        moved_.clear();
        changed_ = {};
        const bool valid = draw(rare) == 0 ? rearrange() : propose();
        if (moved_.empty() && !valid) continue;
        double limit = cost_;
        if (hot > 0) {
            const double heat = hot * std::pow(cold / hot, static_cast<double>(at) / static_cast<double>(rounds));
            limit -= heat * std::log(1.0 - static_cast<double>(draw(1 << 24)) / (1 << 24));
        }
        const double value = valid ? assess() : limit + 1.0;
        if (value > limit) {
            restore();
            undo();
            continue;
        }
        cost_ = value;
        const bool better = !known || period < best_period;
        if (better && over == 0 && (period < least || at == end - 1)) {
            keep();
            // Copies of large states take longer than moves.
            least = best_period - units_.k * (best_period / 100'000'000);
        }
    }
    if (!known || period < best_period) {
        assess();
        if (over == 0) keep();
    }
}

}  // namespace engine
