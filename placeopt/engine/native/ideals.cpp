// The dynamic program over sets of last stages; placeopt_solvers.pipelines._shared.ideals has the paper and the departures.
#include "stages.hpp"

namespace engine {

namespace {

// Sums over the nodes of a set.
struct Sums {
    Int fixed = 0, kept = 0, source = 0, gradient = 0, least = 0, ahead = 0, behind = 0;
};

// What the stage from one set, `origin`, to another sends, receives and stores; `later` is the part of `sent` that goes to
// later stages.
struct Moving {
    Int sent = 0, later = 0, received = 0, entering = 0;
    Int origin = NONE;
};

// The best stages of a set on some devices: their least period, the set before the first of them, and that stage.
struct Best {
    Int value = NEVER;
    std::int32_t before = -1, move = -1;
};

class SetDivision {
public:
    SetDivision(const NodeSets& sets, const NodeCosts& costs, Int below, Stop& stop)
        : sets_(sets), costs_(costs), stop_(stop), limit_(below), s_(sets.count()),
          width_(static_cast<Int>(sets.bits.size()) / s_), classes_(static_cast<Int>(costs.size.size())),
          states_(static_cast<Int>(costs.room.size())) {
        for (Int c = 0, stride = 1; c < classes_; stride *= costs_.size[c++] + 1) {
            stride_.push_back(stride);
            for (Int q = 0; q < states_; ++q) used_.push_back(q / stride % (costs_.size[c] + 1));
        }
        total_used_.assign(states_, 0);
        for (std::size_t at = 0; at < used_.size(); ++at) total_used_[at % states_] += used_[at];
        best_.resize(multiply(s_, states_));
        moving_.resize(s_);
        add_up();
    }

    ChosenStages run() {
        best(0, 0).value = 0;
        for (Int origin = 0; origin < s_; ++origin) {
            find_live(origin);
            if (!live_.empty()) grow_stages(origin);
        }
        return chosen();
    }

private:
    Best& best(Int set, Int state) { return best_[set * states_ + state]; }
    Int used(Int state, Int c) const { return used_[c * states_ + state]; }

    // Whether a node is in set `inner` and not in set `outer`.
    bool holds(Int inner, Int outer, Int v) const { return contains(inner, v) && !contains(outer, v); }

    bool contains(Int set, Int v) const { return sets_.bits[set * width_ + (v >> 6)] >> (v & 63) & 1; }

    void add_up() {
        sums_.resize(s_);
        computing_.resize(multiply(s_, classes_));
        again_.resize(computing_.size());
        forbidden_.resize(computing_.size());
        for (Int at = 0; at < s_; ++at)
            for (Int e = sets_.start[at]; e < sets_.start[at + 1]; ++e) {
                const Int v = sets_.node[e], there = sets_.result[e];
                stop_.poll(classes_ + 7);
                for (Int c = 0; c < classes_; ++c) {
                    const Int from = at * classes_ + c, to = there * classes_ + c, cost = v * classes_ + c;
                    computing_[to] = add(computing_[from], costs_.computing[cost]);
                    again_[to] = add(again_[from], costs_.again[cost]);
                    forbidden_[to] = forbidden_[from] + costs_.forbidden[cost];
                }
                const Sums& from = sums_[at];
                sums_[there] = {add(from.fixed, costs_.fixed[v]), add(from.kept, costs_.kept[v]),
                                add(from.source, costs_.source[v]), add(from.gradient, costs_.gradient[v]),
                                add(from.least, costs_.least[v]), from.ahead + costs_.directions[2 * v],
                                from.behind + costs_.directions[2 * v + 1]};
            }
    }

    // Whether the unused devices may compute the nodes outside a set within the limit.
    bool hopeful(Int set, Int state) const {
        const Int left = sums_[s_ - 1].least - sums_[set].least;
        return static_cast<double>(left) <= costs_.room[state] * static_cast<double>(limit_ - 1) + 1;
    }

    // Finds the states of a set to continue from. Fewer devices at no larger period are better; they come first, because
    // more devices have a larger number.
    void find_live(Int origin) {
        live_.clear();
        for (Int q = 0; q < states_; ++q) {
            stop_.poll(2);
            const Int value = best(origin, q).value;
            if (value >= limit_ || !hopeful(origin, q)) continue;
            const auto better = [&](Int other) {
                stop_.poll(classes_);
                if (best(origin, other).value > value) return false;
                for (Int c = 0; c < classes_; ++c)
                    if (used(other, c) > used(q, c)) return false;
                return true;
            };
            if (std::none_of(live_.begin(), live_.end(), better)) live_.push_back(q);
        }
    }

    // Tries all stages that end at set `origin`, the smallest first.
    void grow_stages(Int origin) {
        moving_[origin] = {0, 0, 0, 0, origin};
        queue_.assign(1, origin);
        for (std::size_t head = 0; head < queue_.size(); ++head) {
            const Int at = queue_[head];
            if (at != origin && !close_stage(origin, at)) continue;
            for (Int e = sets_.start[at]; e < sets_.start[at + 1]; ++e) extend_stage(origin, at, sets_.node[e], sets_.result[e]);
        }
    }

    // Updates the states of set `at` with the stage between it and `origin`; returns whether larger stages are possible.
    bool close_stage(Int origin, Int at) {
        const Sums &low = sums_[origin], &high = sums_[at];
        const Moving& moving = moving_[at];
        const Int fixed = high.fixed - low.fixed, gradient = high.gradient - low.gradient;
        const Int kinds = (high.ahead > low.ahead) + (high.behind > low.behind);
        bool larger = false;
        for (Int c = 0; c < classes_; ++c) {
            const Int from = origin * classes_ + c, to = at * classes_ + c, computing = computing_[to] - computing_[from];
            const Int most = std::min(costs_.replicas, costs_.size[c]);
            stop_.poll(8);
            // What a stage computes, and what it sends to later stages, only grows with the stage. What backward tasks
            // send to earlier stages does not: a larger stage may contain the receiver.
            if (forbidden_[to] > forbidden_[from] || fixed > costs_.capacity[c]) continue;
            if (costs_.tracks.period(c, most, computing, moving.later, 0, 0) >= limit_) continue;
            larger = true;
            const Int busy = add(computing, multiply(kinds, costs_.launch[c]));
            for (Int r = 1; r <= most; ++r)
                for (Int again = 0; again <= costs_.recompute; ++again) {
                    const Int work = again ? add(busy, again_[to] - again_[from]) : busy;
                    const Int load = costs_.tracks.period(c, r, work, moving.sent, moving.received, gradient);
                    if (load < limit_) offer(origin, at, c, r, again, load);
                }
        }
        return larger;
    }

    // Updates the states of set `at` with a stage of this load on r devices of class c.
    void offer(Int origin, Int at, Int c, Int r, Int again, Int load) {
        const Sums &low = sums_[origin], &high = sums_[at];
        const Int fixed = high.fixed - low.fixed, kept = high.kept - low.kept, source = high.source - low.source;
        stop_.poll(4 * static_cast<Int>(live_.size()));
        for (const Int q : live_) {
            if (used(q, c) + r > costs_.size[c]) continue;
            const Int runs = costs_.in_flight ? costs_.in_flight : quotient_ceil(total_used_[q] + r, r);
            const Int each = again ? add(multiply(runs, moving_[at].entering), multiply(runs - 1, source)) : multiply(runs - 1, kept);
            const Int state = q + r * stride_[c], worst = std::max(load, best(origin, q).value);
            Best& there = best(at, state);
            if (add(fixed, each) > costs_.capacity[c] || worst >= std::min(limit_, there.value) || !hopeful(at, state)) continue;
            there = {worst, static_cast<std::int32_t>(origin), static_cast<std::int32_t>((r * classes_ + c) * 2 + again)};
            if (at == s_ - 1) limit_ = worst;
        }
    }

    // Extends the stage between sets `origin` and `at` by node v, to set `there`.
    void extend_stage(Int origin, Int at, Int v, Int there) {
        if (moving_[there].origin == origin) return;
        const Ints rivals = costs_.apart[v], items = costs_.incident[v];
        stop_.poll(4 + static_cast<Int>(rivals.size()));
        if (std::any_of(rivals.begin(), rivals.end(), [&](Int u) { return holds(at, origin, u); })) return;
        Moving& moving = moving_[there] = moving_[at];
        for (const Int x : items) {
            count_item(moving, at, origin, x, -1);
            count_item(moving, there, origin, x, 1);
        }
        queue_.push_back(there);
    }

    // Adds an item to what the stage between two sets sends, receives and stores, or subtracts it (sign -1).
    void count_item(Moving& moving, Int inner, Int outer, Int x, Int sign) {
        const Ints consumers = costs_.consumer[x], entering = costs_.entering[x];
        const auto inside = [&](Int v) { return holds(inner, outer, v); };
        stop_.poll(4 + static_cast<Int>(consumers.size() + entering.size()));
        if (inside(costs_.producer[x])) {
            const auto later = [&](Int v) { return contains(outer, v); };
            if (!std::all_of(consumers.begin(), consumers.end(), inside)) moving.sent = add(moving.sent, sign * costs_.ticks[x]);
            if (std::any_of(consumers.begin(), consumers.end(), later)) moving.later = add(moving.later, sign * costs_.ticks[x]);
            return;
        }
        if (std::any_of(consumers.begin(), consumers.end(), inside)) moving.received = add(moving.received, sign * costs_.ticks[x]);
        if (std::any_of(entering.begin(), entering.end(), inside)) moving.entering = add(moving.entering, sign * costs_.payload[x]);
    }

    ChosenStages chosen() {
        ChosenStages found;
        Int at = s_ - 1, state = 0;
        for (Int q = 0; q < states_; ++q)
            if (best(at, q).value < best(at, state).value) state = q;
        found.period = best(at, state).value;
        while (at > 0 && found.period < NEVER) {
            const Best& here = best(at, state);
            const Int label = here.move / 2 % classes_, devices = here.move / (2 * classes_);
            found.stages.push_back({here.before, label, devices, here.move % 2});
            at = here.before;
            state -= devices * stride_[label];
        }
        return found;
    }

    const NodeSets& sets_;
    const NodeCosts& costs_;
    Stop& stop_;
    Int limit_;  // the period to improve on
    const Int s_, width_, classes_, states_;
    std::vector<Int> stride_, used_, total_used_;      // (c,), (c, q), (q,)
    std::vector<Sums> sums_;                           // (s,)
    std::vector<Int> computing_, again_, forbidden_;   // (s, c)
    std::vector<Best> best_;                           // (s, q)
    std::vector<Moving> moving_;                       // (s,)
    std::vector<Int> live_, queue_;                    // states to continue from; sets that a stage reaches
};

}  // namespace

ChosenStages divide_sets(const NodeSets& sets, const NodeCosts& costs, Int below, Stop& stop) {
    ChosenStages found = SetDivision(sets, costs, below, stop).run();
    return found.period < below ? found : ChosenStages{};
}

}  // namespace engine
