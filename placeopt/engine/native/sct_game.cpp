// Counterfactual regret minimisation, and what turns its averages into feasible points and integral flows;
// placeopt.bounding.sct.game has the papers.
#include <cmath>

#include "sct.hpp"

namespace engine {

namespace {

// max(value, 0), exactly and without a branch.
inline double positive(double value) { return 0.5 * (value + std::fabs(value)); }

// Large games are bound by memory: each round reads every array once, in order.
class Play {
public:
    Play(const Board& board, GameState& state)
        : board_(board),
          state_(state),
          n_(static_cast<Int>(board.length.size())),
          target_(board.target.begin(), board.target.end()),
          value_(n_),
          arriving_(n_),
          busy_(n_) {
        for (Int i = 0; i < n_; ++i) source_.insert(source_.end(), board.start[i + 1] - board.start[i], static_cast<Index>(i));
        flow_.resize(source_.size());
        for (std::size_t x = 0; x < source_.size(); ++x) saved_.push_back(board.relief[x] * state.share[x]);
    }

    Int run(Int first, Int last, Stop& stop) {
        double weight = 0.0;  // of the rounds so far
        for (Int t = 1; t < first; ++t) weight += square(t);
        for (Int t = first; t <= last; ++t) {
            if (stop.over(2 * n_ + 8 * static_cast<Int>(flow_.size()))) return t - first;
            weight += square(t);
            const double part = square(t) / weight;
            choose_paths(t);
            send_flow(part);
            divide_shares(t == first);
            for (std::size_t x = 0; x < flow_.size(); ++x)
                state_.mean_share[x] += part * (state_.share[x] - state_.mean_share[x]);
        }
        return std::max(last - first + 1, Int{0});
    }

private:
    using Index = std::int32_t;

    static double square(Int t) { return static_cast<double>(t) * static_cast<double>(t); }

    // The path player's answer to the shares, from the last task on.
    void choose_paths(Int round) {
        const double t = static_cast<double>(round), power = t * std::sqrt(std::sqrt(t)), fading = power / (power + 1.0);
        for (Int i = n_; i-- > 0;) {
            const Int a = board_.start[i], b = board_.start[i + 1];
            if (b == a) value_[i] = board_.length[i];
            else if (b == a + 1) value_[i] = path(board_.length[i], a);
            else value_[i] = board_.length[i] + choose(a, b, fading);
        }
    }

    // The expected path through a lane after `before`.
    double path(double before, Int x) const { return before + value_[target_[x]] + board_.ticks[x] - saved_[x]; }

    // Regret matching for the lanes a..b of a task; returns their expected path.
    double choose(Int a, Int b, double fading) {
        double* const length = flow_.data();  // of the path through each lane; flows come later in the round
        double *const regret = state_.regret.data(), *const choice = state_.choice.data();
        double mean = 0.0;
        for (Int x = a; x < b; ++x) {
            length[x - a] = path(0.0, x);
            mean += choice[x] * length[x - a];
        }
        double total = 0.0, best = 0.0;
        for (Int x = a; x < b; ++x) {
            regret[x] = positive(regret[x] * fading + length[x - a] - mean);
            total += regret[x];
            best += regret[x] * length[x - a];
        }
        if (total > 0.0) {
            for (Int x = a; x < b; ++x) choice[x] = regret[x] / total;
            return best / total;
        }
        const double count = static_cast<double>(b - a);
        best = 0.0;
        for (Int x = a; x < b; ++x) {
            choice[x] = 1.0 / count;
            best += length[x - a];
        }
        return best / count;
    }

    // The flow of the path player, from the first task on, in a round that counts `part` of the whole.
    void send_flow(double part) {
        std::fill(arriving_.begin(), arriving_.end(), 0.0);
        if (n_ > 0) arriving_[0] = 1.0;
        for (std::size_t x = 0; x < flow_.size(); ++x) {
            const double sent = arriving_[source_[x]] * state_.choice[x];
            flow_[x] = sent;
            arriving_[target_[x]] += sent;
            state_.mean_flow[x] += part * (sent - state_.mean_flow[x]);
        }
    }

    // The answer of the shares. Those of tasks without flow stay as they are once `all` have answered.
    void divide_shares(bool all) {
        std::size_t count = 0;
        for (Int i = 0; i < n_; ++i) {  // without a branch, which would be mispredicted
            busy_[count] = i;
            count += all || arriving_[i] != 0.0;
        }
        for (const Int i : std::span(busy_).first(count)) {
            const Int in = board_.in_start[i], out = board_.out_start[i];
            match(board_.in_start[i + 1] - in, [lanes = board_.in_lane.data() + in](Int at) { return lanes[at]; });
            match(board_.out_end[i] - out, [out](Int at) { return out + at; });
        }
    }

    // Regret matching for shares that sum to one: those of lane(0)..lane(count - 1).
    template <class Lane>
    void match(Int count, Lane lane) {
        if (count <= 0) return;
        const double *const relief = board_.relief.data(), *const flow = flow_.data();
        double *const regret = state_.share_regret.data(), *const share = state_.share.data(), *const saved = saved_.data();
        double mean = 0.0;
        for (Int at = 0; at < count; ++at) {
            const Int x = lane(at);
            mean += saved[x] * flow[x];
        }
        double total = 0.0;
        for (Int at = 0; at < count; ++at) {
            const Int x = lane(at);
            regret[x] = positive(regret[x] + relief[x] * flow[x] - mean);
            total += regret[x];
        }
        for (Int at = 0; at < count; ++at) {
            const Int x = lane(at);
            share[x] = total > 0.0 ? regret[x] / total : 1.0 / static_cast<double>(count);
            saved[x] = relief[x] * share[x];
        }
    }

    const Board& board_;
    GameState& state_;
    const Int n_;
    std::vector<Index> source_, target_;  // (a,)
    std::vector<double> saved_;     // (a,) the reduction by the share
    std::vector<double> flow_;      // (a,)
    std::vector<double> value_;     // (n,) expected path from each task, its length included
    std::vector<double> arriving_;  // (n,) flow into each task
    std::vector<Int> busy_;         // scratch: (n,) tasks whose shares answer
};

}  // namespace

Int play_rounds(const Board& board, GameState& state, Int first, Int last, Stop& stop) {
    return Play(board, state).run(first, last, stop);
}

std::vector<Int> split_flow(Ints start, Ints target, Floats flow, Int whole) {
    std::vector<Int> parts(target.size()), arriving(start.size());
    arriving[0] = whole;
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        const Int a = start[i], b = start[i + 1];
        if (b == a) continue;
        double total = 0.0;
        Int widest = a, left = arriving[i];
        for (Int x = a; x < b; ++x) {
            total += flow[x];
            if (flow[x] > flow[widest]) widest = x;
        }
        for (Int x = a; x < b; ++x) {
            const double part = total > 0.0 ? static_cast<double>(arriving[i]) * (flow[x] / total) : 0.0;
            parts[x] = part < static_cast<double>(left) ? static_cast<Int>(part) : left;
            left -= parts[x];
        }
        parts[widest] += left;
        for (Int x = a; x < b; ++x) arriving[target[x]] += parts[x];
    }
    return parts;
}

namespace {

// The longest path through an edge, whole delay included.
double most(const Side& side, const std::vector<double>& value, Int x) {
    return value[side.target[x]] + side.fixed[x] + side.hidden[x];
}

// The least T such that the sum of weight (after + fixed + hidden - T) / hidden over the rivals a..b above T is at most 1, and
// that no edge is above T under the limits. Newton steps from below find it, one linear piece each.
double least_level(const Side& side, const std::vector<double>& value, Int a, Int b, Stop& stop) {
    double level = 0.0;
    for (Int x = a; x < b; ++x)
        level = std::max(level, value[side.target[x]] + side.fixed[x] + side.hidden[x] * (1.0 - side.limit[x]));
    for (;;) {
        stop.poll(2 + 4 * (b - a));
        double excess = -1.0, slope = 0.0;
        for (Int x = a; x < b; ++x) {
            if (!side.rival[x]) continue;
            const double over = most(side, value, x) - level;
            if (!(over > 0.0)) continue;
            excess += side.weight[x] * over / side.hidden[x];
            slope += side.weight[x] / side.hidden[x];
        }
        if (!(excess > 0.0) || !(level + excess / slope > level * (1.0 + 1e-15))) return level;
        level += excess / slope;
    }
}

}  // namespace

// Backwards along the order, so that the paths after each task are known.
Filled fill_shares(const Side& side, Stop& stop) {
    Filled found{std::vector<double>(side.target.size(), 1.0), std::vector<double>(side.length.size())};
    auto& [own, value] = found;
    for (Int i = static_cast<Int>(side.length.size()); i-- > 0;) {
        const Int a = side.start[i], b = side.start[i + 1];
        const double level = least_level(side, value, a, b, stop);
        double used = 0.0, count = 0.0;
        for (Int x = a; x < b; ++x) {
            if (!side.rival[x]) continue;
            own[x] = std::max(most(side, value, x) - level, 0.0) / side.hidden[x];
            used += side.weight[x] * own[x];
            count += side.weight[x];
        }
        // What remains is distributed evenly.
        for (Int x = a; x < b; ++x)
            if (side.rival[x]) own[x] = used < 1.0 ? own[x] + (1.0 - used) / count : own[x] / used;
        value[i] = side.length[i] + level;
    }
    return found;
}

}  // namespace engine
