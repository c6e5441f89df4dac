#include <cmath>

#include "local_search.hpp"

namespace engine {

namespace {

// Moves between two computations of what follows each task.
constexpr Int AHEAD = 16;
// Accepted moves, and rounds of tabu search, between two computations of the critical path.
constexpr Int REFRESH = 64, TABU_REFRESH = 16;

constexpr double INFINITE = std::numeric_limits<double>::infinity();

}  // namespace

Int LocalSearch::walk(Ints shares, Int begin, Int end, Int rounds, double hot, double cold, double enough, Stop& stop) {
    Int evaluated = 0;
    if (begin == 0) accepted_ = 0;
    for (Int at = begin; at < end; ++at) {
        if (stop.over(200 + problem_.n)) break;
        if (at % AHEAD == 0 && problem_.timed && known_ > 0) look_ahead();
        const double fixed = fixed_;
        const Int first = propose_random(shares);
        if (first >= problem_.n) continue;
        double limit = cost;
        if (hot == INFINITE) {
            limit = hot;
        } else if (hot > 0) {
            const double temperature = hot * std::pow(cold / hot, static_cast<double>(at) / static_cast<double>(rounds));
            limit -= temperature * std::log(1.0 - static_cast<double>(draw(Int{1} << 24)) / static_cast<double>(1 << 24));
        }
        const double value = decode(first, limit);
        ++evaluated;
        if (value > limit) {
            undo();
            fixed_ = fixed;
            continue;
        }
        cost = value;
        accept();
        const double worth = value - guide;
        if (penalty == 0.0 && worth < held) {
            keep_best(worth);
            if (worth <= enough) break;
        }
        if (accepted_ % REFRESH == 0 && problem_.timed) find_critical();
        ++accepted_;
    }
    return evaluated;
}

// Whether the last proposal moves a group or shifts a task that must not be moved.
bool LocalSearch::forbidden(const std::vector<Int>& until, const std::vector<Int>& still, Int now) const {
    for (const Moved& move : moved_)
        if (until[move.group * problem_.m + home[move.group]] > now) return true;
    return put_ >= 0 && still[order[put_]] > now;
}

// The candidates of a round are a sample of moves, because the neighbourhood of a state with thousands of tasks is too
// large. For some rounds, a group must not return to the device that it left, and a shifted task must not be shifted again.
// A forbidden move is allowed if it leads to a new best state (aspiration).
Int LocalSearch::tabu(Ints shares, Int begin, Int rounds, Int candidates, Int tenure, double enough, Stop& stop) {
    until_.resize(problem_.g * problem_.m);
    still_.resize(problem_.n);
    Int evaluated = 0;
    for (Int now = begin; now < begin + rounds; ++now) {
        if (problem_.timed && known_ > 0) look_ahead();
        double best = INFINITE;
        Int chosen = 0;
        const double fixed = fixed_;
        for (Int tried = 0; tried < candidates; ++tried) {
            if (stop.over(200 + problem_.n)) return evaluated;
            const Int seed = random_, first = propose_random(shares);
            if (first >= problem_.n) continue;
            const double value = decode(first, best);
            ++evaluated;
            if (value < best && (!forbidden(until_, still_, now) || (penalty == 0.0 && value - guide < held))) {
                best = value;
                chosen = seed;
            }
            if (value < INFINITE) rewind(first);
            undo();
            fixed_ = fixed;
        }
        if (chosen == 0) continue;
        const Int after = random_;
        random_ = chosen;
        const Int first = propose_random(shares);  // the same move, for the same random numbers
        random_ = after;
        cost = decode(first, INFINITE);
        accept();
        const Int end = now + 1 + tenure + draw(tenure + 1);
        for (const Moved& move : moved_) until_[move.group * problem_.m + move.origin] = end;
        if (put_ >= 0) still_[order[put_]] = end;
        const double worth = cost - guide;
        if (penalty == 0.0 && worth < held) {
            keep_best(worth);
            if (worth <= enough) break;
        }
        if (now % TABU_REFRESH == 0 && problem_.timed) find_critical();
    }
    return evaluated;
}

}  // namespace engine
