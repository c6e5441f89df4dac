// The benefit of placing a task on a device, and greedy on all pairs of tasks and devices.
//
// For task j on device i with placed_i ticks of work (A. Carbonari, N. Kodirov, M. Golub 2017, section 2.2):
//
//     freeRatio = 2 - (c_ij + placed_i + fetched + swapped) / cap_i
//     pf        = 1 + number of placed tasks that are parallel to j and on other devices
//
// Let B_i be the sum of the benefits on device i, and F the sum of g(B_i) over the devices. Placing j on i
//
//     increases f by g(B_i + freeRatio pf) - g(B_i)              inside: equation 2, f = F
//     sets f to (F + g(B_i + freeRatio) - g(B_i)) pf             outside: equation 5
//
// placeopt.submodular.placement.model states the extensions and departures.
#include "submodular.hpp"

#include <cmath>

namespace engine {

namespace {
constexpr double INFINITE = std::numeric_limits<double>::infinity();
}

Placement::Placement(const PlacementRules& rules, Ints homes)
    : topology(*rules.problem, rules.key), home(homes.begin(), homes.end()), used(rules.problem->m), benefit(rules.problem->m),
      placed(rules.problem->m), held(rules.problem->m), fetched(rules.problem->m * rules.memory.size()), rules_(&rules),
      origin_(rules.problem->n, NONE), target_(rules.problem->n, NONE), stamped_(rules.memory.size()) {
    const Int g = static_cast<Int>(home.size());
    for (Int k = 0; k < g; ++k)
        if (home[k] >= 0) used[home[k]] = add(used[home[k]], rules.memory[k]);
    if (!rules.communication) return;
    for (Int k = 0; k < g; ++k)
        if (home[k] >= 0) locate_group(k, home[k]);
}

// g(x) of device i for x >= 0, and x for x < 0, so that bad placements can still be compared.
double Placement::concave(Int i, double x) const {
    if (x < 0.0) return x;
    switch (static_cast<Curve>(rules_->curve[i])) {
        case Curve::root: return std::sqrt(x);
        case Curve::logarithm: return std::log1p(x);
        default: break;
    }
    double height = 0.0, low = 0.0;
    for (Int k = i * rules_->pieces; k < (i + 1) * rules_->pieces; ++k) {
        const double high = rules_->piece_end[k];
        height += (std::min(x, high) - low) * rules_->piece_slope[k];
        if (x <= high) break;
        low = high;
    }
    return height;
}

bool Placement::can_host(Int u, Int i) const {
    if (rules_->cost[i * rules_->problem->n + u] == INFINITE) return false;
    const Int k = rules_->problem->group[u];
    if (home[k] >= 0) return home[k] == i;
    if (rules_->fullness != Fullness::unlimited && rules_->memory[k] > rules_->problem->capacity[i] - used[i]) return false;
    for (Int a = rules_->apart_start[k]; a < rules_->apart_start[k + 1]; ++a)
        if (home[rules_->apart[a]] == i) return false;
    return true;
}

// The time in ticks that task u takes on device i: its duration, and swapping of the bytes of its group.
double Placement::device_ticks(Int u, Int i) const {
    double ticks = rules_->cost[i * rules_->problem->n + u];
    const Int k = rules_->problem->group[u];
    if (rules_->tiers == 0 || home[k] >= 0) return ticks;
    const Int begin = used[i], end = add(used[i], rules_->memory[k]);
    double swapped = 0.0;
    Int low = 0;
    for (Int t = i * rules_->tiers; t < (i + 1) * rules_->tiers; ++t) {
        const Int high = rules_->tier_end[t], overlap = std::min(end, high) - std::max(begin, low);
        if (overlap > 0) swapped += static_cast<double>(overlap) * rules_->tier_ticks[t];
        low = high;
    }
    return ticks + swapped;
}

// At most 2, less than 1 if the time capacity is exceeded.
double Placement::free_ratio(Int u, Int i) const {
    double ticks = device_ticks(u, i);
    if (rules_->load) ticks += placed[i];
    if (rules_->communication) ticks += static_cast<double>(fetched[i * static_cast<Int>(home.size()) + rules_->problem->group[u]]);
    return 2.0 - ticks / rules_->cap[i];
}

// pf of task u on device i: 1 if the device has no time to run the task in parallel.
Int Placement::parallelism_factor(Int u, Int i, double ratio) const {
    if (!rules_->parallelism || ratio < 1.0) return 1;
    return 1 + topology.total[u] - topology.parallel[i * rules_->problem->n + u];
}

// The factor of a gain for the fill level of device i with task u.
double Placement::fullness_factor(Int u, Int i) const {
    const Int k = rules_->problem->group[u], capacity = rules_->problem->capacity[i];
    const Int bytes = home[k] < 0 ? add(used[i], rules_->memory[k]) : used[i];
    if (bytes > capacity) return rules_->fullness == Fullness::unlimited ? 1.0 - rules_->balance : 0.0;
    const double share = capacity > 0 ? static_cast<double>(bytes) / static_cast<double>(capacity) : 0.0;
    double left = 1.0 - rules_->balance * share;
    if (rules_->fullness == Fullness::linear && share > rules_->knee) left *= (1.0 - share) / (1.0 - rules_->knee);
    return left;
}

// The increase of F by a benefit of task u on device i.
double Placement::sum_gain(Int u, Int i, double gained) const {
    double more = concave(i, benefit[i] + gained) - concave(i, benefit[i]);
    if (more > 0.0 && (rules_->fullness != Fullness::unlimited || rules_->balance > 0.0)) more *= fullness_factor(u, i);
    return more;
}

double Placement::gain(Int u, Int i) const {
    if (rules_->cost[i * rules_->problem->n + u] == INFINITE) return -INFINITE;
    const double ratio = free_ratio(u, i), pf = static_cast<double>(parallelism_factor(u, i, ratio));
    if (rules_->inside) return sum_gain(u, i, ratio * pf);
    return (sum + sum_gain(u, i, ratio)) * pf - product;
}

// Moves the assumed other end of an edge of group k from one device to another; NONE: unknown. `outward`: the group produces the
// data.
void Placement::move_endpoint(Int k, Int payload, Int old, Int now, bool outward) {
    const Int g = static_cast<Int>(home.size());
    const auto ticks = [&](Int i, Int other) {
        return outward ? rules_->problem->transfer(payload, i, other) : rules_->problem->transfer(payload, other, i);
    };
    for (Int i = 0; i < rules_->problem->m; ++i) {
        Int& total = fetched[i * g + k];
        if (now >= 0 && now != i) total = add(total, ticks(i, now));
        if (old >= 0 && old != i) total = subtract(total, ticks(i, old));
    }
    if (old >= 0 && !stamped_[k]) {  // otherwise no transfer is saved
        stamped_[k] = true;
        changed.push_back(k);
    }
}

// Assumes task v, and the unplaced tasks that follow it along largest transfers, on device d: the origin of outputs, or with
// `outward` the target of inputs.
//
// An unplaced producer is assumed on the device of its group, or else where its largest input comes from, recursively. An
// unplaced consumer is assumed where its largest output goes.
void Placement::locate_along(Int v, Int d, bool outward) {
    const Problem& problem = *rules_->problem;
    const Ints start = outward ? problem.in_start : problem.out_start;
    const Ints end = outward ? Ints(problem.in_source) : problem.edge_target;
    const Ints payload = outward ? Ints(problem.in_payload) : problem.payload;
    const Ints largest = outward ? rules_->largest_output : rules_->largest_input;
    std::vector<Int>& located = outward ? target_ : origin_;
    stack_.assign(1, v);
    while (!stack_.empty()) {
        const Int w = stack_.back();
        stack_.pop_back();
        for (Int k = start[w]; k < start[w + 1]; ++k) {
            const Int u = end[k], group = problem.group[u];
            if (topology.device[u] >= 0) continue;
            if (group != problem.group[w]) move_endpoint(group, payload[k], located[w], d, outward);
            if (largest[u] == k && home[group] < 0) stack_.push_back(u);
        }
        located[w] = d;
    }
}

// Updates the transfers of other groups after task v was placed on, or is assumed on, device d.
void Placement::locate_task(Int v, Int d) {
    if (origin_[v] == d && target_[v] == d) return;
    locate_along(v, d, false);
    locate_along(v, d, true);
}

// Assumes the unplaced tasks of group k on device d.
void Placement::locate_group(Int k, Int d) {
    for (Int a = rules_->member_start[k]; a < rules_->member_start[k + 1]; ++a)
        if (topology.device[rules_->member[a]] < 0) locate_task(rules_->member[a], d);
}

void Placement::place(Int u, Int i) {
    const double ratio = free_ratio(u, i), pf = static_cast<double>(parallelism_factor(u, i, ratio));
    const double gained = rules_->inside ? ratio * pf : ratio;
    sum += sum_gain(u, i, gained);
    product = sum * pf;
    benefit[i] += gained;
    placed[i] += device_ticks(u, i);
    ++held[i];
    if (rules_->parallelism) topology.place(u, i);
    else topology.device[u] = i;
    if (rules_->communication) {
        for (const Int k : changed) stamped_[k] = false;
        changed.clear();
        locate_task(u, i);
    }
    const Int k = rules_->problem->group[u];
    if (home[k] >= 0) return;
    home[k] = i;
    used[i] = add(used[i], rules_->memory[k]);
    if (rules_->communication) locate_group(k, i);
}

void Placement::occupy(Int u, Int i) {
    topology.device[u] = i;
    const Int k = rules_->problem->group[u];
    if (home[k] >= 0) return;
    home[k] = i;
    used[i] = add(used[i], rules_->memory[k]);
}

// The open tasks, and upper bounds of the scores of devices.
class Greedy {
public:
    Greedy(Placement& placement, Ints kind)
        : state_(placement), rules_(*placement.rules_), kind_(kind), n_(rules_.problem->n), m_(rules_.problem->m), bound_(m_, INFINITE),
          pf_(m_, static_cast<double>(n_)), highest_(m_), score_bound_(m_), best_(m_), chosen_(m_, NONE), done_(m_), reserved_(m_),
          empty_(m_, NONE) {
        for (const Int d : placement.home)
            if (d >= 0) reserved_[d] = true;
        for (Int u = 0; u < n_; ++u) open_.push_back(u);
    }

    Rounds run(bool lazy, Stop& stop) {
        Rounds rounds;
        for (Int number = 0; number < n_; ++number) {
            begin_round(number);
            double score = -INFINITE;
            Int u = NONE, d = NONE;
            for (Int tried = 0; tried < m_; ++tried) {
                Int i = NONE;
                for (Int k = 0; k < m_; ++k)
                    if (!done_[k] && (i < 0 || score_bound_[k] > score_bound_[i])) i = k;
                if (i < 0 || (lazy && score_bound_[i] < score)) break;
                if (stop.over(m_ + 10 * static_cast<Int>(open_.size()))) {
                    rounds.stopped = true;
                    return rounds;
                }
                evaluate_device(i, rounds);
                const Int v = chosen_[i];
                if (v >= 0 && (best_[i] > score || (best_[i] == score && (v < u || (v == u && i < d))))) {
                    score = best_[i];
                    u = v;
                    d = i;
                }
            }
            if (u < 0) return rounds;
            const double value = state_.sum, before = state_.benefit[d];
            state_.place(u, d);
            raise_bounds(d, value, before);
            rounds.task.push_back(u);
            rounds.device.push_back(d);
            rounds.value.push_back(state_.value());
            if (4 * (n_ - number - 1) < 3 * static_cast<Int>(open_.size()))
                std::erase_if(open_, [&](Int each) { return state_.topology.device[each] >= 0; });
        }
        return rounds;
    }

private:
    static constexpr double SLACK = 1e-9;  // relative amount by which bounds are raised against rounding
    static constexpr Int MANY = 4;         // single tasks are recomputed if they are fewer than 1/MANY of the open ones

    // Finds the best pair on device i; pairs that cannot be better than the best one so far are skipped before `can_host`.
    void evaluate_device(Int i, Rounds& rounds) {
        const bool plain = rules_.fullness != Fullness::linear && rules_.balance <= 0.0;
        Int chosen = NONE, best_pf = 0, most_pf = 1;
        double best = -INFINITE, best_ratio = -INFINITE, bound = -INFINITE;
        const double highest = state_.concave(i, state_.benefit[i] + 2.0) - state_.concave(i, state_.benefit[i]);
        for (const Int u : open_) {
            if (state_.topology.device[u] >= 0) continue;
            ++rounds.evaluations;
            const double ratio = state_.free_ratio(u, i);
            const Int pf = state_.parallelism_factor(u, i, ratio);
            const double factor = static_cast<double>(pf);
            most_pf = std::max(most_pf, pf);
            double worth = 0.0, score = 0.0;
            if (rules_.inside) {
                worth = ratio * factor;
                if ((plain && worth <= bound) || !state_.can_host(u, i)) continue;
                score = state_.sum_gain(u, i, worth);
            } else {
                const bool beaten = (pf == best_pf && ratio <= best_ratio) || (state_.sum + highest) * factor <= best;
                if ((plain && beaten) || !state_.can_host(u, i)) continue;
                worth = score = (state_.sum + state_.sum_gain(u, i, ratio)) * factor;
            }
            bound = std::max(bound, worth);
            if (score > best) {
                chosen = u;
                best = score;
                best_ratio = ratio;
                best_pf = pf;
            }
        }
        chosen_[i] = chosen;
        best_[i] = best;
        bound_[i] = bound;
        pf_[i] = static_cast<double>(most_pf);
        done_[i] = true;
    }

    // An upper bound on the score of all pairs on device i.
    double score_bound_of(Int i) const {
        double bound = bound_[i];
        if (std::isinf(bound)) return bound;
        if (rules_.inside) bound = state_.concave(i, state_.benefit[i] + bound) - state_.concave(i, state_.benefit[i]);
        return bound + SLACK * std::abs(bound);
    }

    // Skips empty devices that are equivalent to an earlier one.
    void begin_round(Int number) {
        for (Int i = 0; i < m_; ++i) {
            chosen_[i] = NONE;
            done_[i] = false;
            if (state_.held[i] == 0 && !reserved_[i]) {
                done_[i] = empty_[kind_[i]] == number;
                empty_[kind_[i]] = number;
            }
            score_bound_[i] = score_bound_of(i);
        }
    }

    // Raises the bounds of all devices to the current score of task u.
    void raise_bounds_for_task(Int u) {
        for (Int i = 0; i < m_; ++i) {
            if (bound_[i] == -INFINITE || rules_.cost[i * n_ + u] == INFINITE) continue;
            const double ratio = state_.free_ratio(u, i), pf = static_cast<double>(state_.parallelism_factor(u, i, ratio));
            pf_[i] = std::max(pf_[i], pf);
            if (rules_.inside) bound_[i] = std::max(bound_[i], ratio * pf);
            else if ((state_.sum + highest_[i]) * pf > bound_[i])
                bound_[i] = std::max(bound_[i], (state_.sum + state_.sum_gain(u, i, ratio)) * pf);
        }
    }

    // Raises the bounds of scores that the last placement, on device d, may have increased. `value` and `before` are F and B_d
    // before it.
    void raise_bounds(Int d, double value, double before) {
        const Topology& topology = state_.topology;
        const bool few = MANY * static_cast<Int>(topology.gained.size()) < static_cast<Int>(open_.size());
        Int events = 0;
        for (const Int each : topology.raised) events += each;
        for (Int i = 0; i < m_; ++i) {
            highest_[i] = state_.concave(i, state_.benefit[i] + 2.0) - state_.concave(i, state_.benefit[i]);
            if (bound_[i] == -INFINITE) continue;
            if (!rules_.inside) bound_[i] += std::max(state_.sum - value, 0.0) * pf_[i];
            if (!few) {
                const double more = static_cast<double>(events - topology.raised[i]);
                pf_[i] += more;
                bound_[i] += more * (rules_.inside ? 2.0 : state_.sum + highest_[i]);
            }
        }
        if (few)
            for (const Int u : topology.gained) raise_bounds_for_task(u);
        for (const Int k : state_.changed)
            for (Int a = rules_.member_start[k]; a < rules_.member_start[k + 1]; ++a)
                if (topology.device[rules_.member[a]] < 0) raise_bounds_for_task(rules_.member[a]);
        // Where g is not concave (below zero) or swapping may have become cheaper, any score may have increased.
        for (Int i = 0; i < m_; ++i) {
            const bool here = i == d && (before < 0.0 || state_.benefit[d] < before || rules_.tiers > 0);
            if (here || (!rules_.inside && state_.sum < 0.0)) {
                bound_[i] = INFINITE;
                pf_[i] = static_cast<double>(n_);
            }
        }
    }

    Placement& state_;
    const PlacementRules& rules_;
    Ints kind_;
    const Int n_, m_;
    std::vector<Int> open_;                  // the unplaced tasks by index, and possibly some placed ones
    std::vector<double> bound_;              // (m,) upper bound on freeRatio pf (inside) or the score (outside) of all pairs there
    std::vector<double> pf_;                 // (m,) upper bound on pf of all tasks there
    std::vector<double> highest_;            // (m,) upper bound on the increase of F by any task there
    std::vector<double> score_bound_, best_; // (m,) upper bound on the score, and the best score, of all pairs in this round
    std::vector<Int> chosen_;                // (m,) the task of the best pair, NONE without one
    std::vector<char> done_, reserved_;      // (m,) whether evaluated or skipped in this round; whether groups have it from the start
    std::vector<Int> empty_;                 // (m,) last round with an empty device of each kind
};

Rounds place_all(Placement& placement, Ints kind, bool lazy, Stop& stop) { return Greedy(placement, kind).run(lazy, stop); }

}  // namespace engine
