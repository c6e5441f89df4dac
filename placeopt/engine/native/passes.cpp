#include "passes.hpp"

namespace engine {

namespace {

// Shares are thousandths.
constexpr Int WHOLE = 1000;
// Passes without gain after which the search returns to the best schedule.
constexpr Int RESTART = 6;

std::vector<Int> transposed(Ints matrix, Int m) {
    std::vector<Int> found(matrix.size());
    for (Int a = 0; a < m; ++a)
        for (Int b = 0; b < m; ++b) found[b * m + a] = matrix[a * m + b];
    return found;
}

}  // namespace

Reversed::Reversed(const Problem& problem)
    : latency_(transposed(problem.latency, problem.m)),
      num_(transposed(problem.num, problem.m)),
      den_(transposed(problem.den, problem.m)),
      view_(problem) {
    view_.in_start = problem.out_start;
    view_.out_start = problem.in_start;
    view_.in_source.assign(problem.edge_target.begin(), problem.edge_target.end());
    view_.in_payload.assign(problem.payload.begin(), problem.payload.end());
    view_.latency = latency_;
    view_.num = num_;
    view_.den = den_;
    view_.classify_links();
}

Passes::Passes(const Problem& problem, const Groups& groups, Ints head, Ints behind, Ints device, Ints tail, Int span, Int seed)
    : reversed_(problem),
      groups_(groups),
      forth_{problem, head, behind, Line(problem, groups, true, false)},
      back_{reversed_.view(), behind, head, Line(reversed_.view(), groups, true, false)},
      best_(span),
      random_(seed),
      sequence_(problem.n),
      kept_device_(device.begin(), device.end()),
      kept_end_(tail.begin(), tail.end()),
      device_(problem.n),
      start_(problem.n) {
    back_.line.device = kept_device_;
    back_.line.end = kept_end_;
}

void Passes::run(Int passes, Int noise, Int aim, Stop& stop) {
    for (; passes > 0; --passes) {
        const bool forth = !last_forth_;
        random_ = next_random(random_);
        const Int level = made_ > 1 ? noise * (random_ % WHOLE) / WHOLE : 0;
        ++made_;
        Side &here = forth ? forth_ : back_, &there = forth ? back_ : forth_;
        sort_tasks(there, forth);
        if (made_ == 1) check_sequence(here.problem);
        const Int value = place_again(here, there, ratio_floor(best_, aim, WHOLE), level, stop);
        last_forth_ = forth;
        ++since_;
        const Line& line = here.line;
        if (value < best_) {
            best_ = value;
            kept_forth_ = forth;
            since_ = 0;
            kept_device_ = device_ = line.device;
            kept_end_ = line.end;
            for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = forth ? line.start[i] : value - line.end[i];
        } else if (value == NEVER || since_ % RESTART == 0) {
            last_forth_ = kept_forth_;
            Line& kept = kept_forth_ ? forth_.line : back_.line;
            kept.device = kept_device_;
            kept.end = kept_end_;
        }
        if (value == NEVER && stop.over(0)) return;
    }
}

// The tasks by decreasing end in the last schedule of the other direction, ties by the topological order or against it.
void Passes::sort_tasks(const Side& there, bool forth) {
    const Int n = forth_.problem.n;
    std::vector<std::pair<Int, Int>> keys(n);  // with positions in the order
    for (Int at = 0; at < n; ++at) keys[at] = {-there.line.end[forth_.problem.order[at]], forth ? at : -at};
    std::sort(keys.begin(), keys.end());
    for (Int at = 0; at < n; ++at) sequence_[at] = forth_.problem.order[forth ? keys[at].second : -keys[at].second];
}

// The tails that the caller states decide the sequence of the first pass; those of later ones come from schedules.
void Passes::check_sequence(const Problem& problem) const {
    std::vector<bool> placed(problem.n, false);
    for (const Int i : sequence_) {
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r)
            if (const Int u = problem.in_source[r]; !placed[u])
                throw Wrong("tail: that of task " + std::to_string(i) + " is larger than that of its producer " +
                            std::to_string(u) + "; expected the tails of a schedule");
        placed[i] = true;
    }
}

// Places the tasks of `sequence_` in turn; returns the makespan, or NEVER if a task finds no device or the loop is stopped.
//
// `there` has the last schedule of the other direction: the tick from which a task could start there is the number of
// ticks that follow it here.
Int Passes::place_again(Side& here, Side& there, Int aim, Int noise, Stop& stop) {
    here.line.clear();
    Timeline<Rules{}> timeline(here.line), other(there.line);
    const Problem& problem = here.problem;
    const Int m = problem.m;
    Int span = 0;
    for (const Int i : sequence_) {
        if (stop.over(m * (6 + problem.in_start[i + 1] - problem.in_start[i] + problem.out_start[i + 1] - problem.out_start[i])))
            return NEVER;
        const Int k = problem.group[i], home = here.line.home[k];
        timeline.compute_ready(i);
        other.compute_ready(i);
        Int best = NONE, best_worth = NEVER, best_end = NEVER;
        Slot best_slot{0, NONE};
        for (Int d = 0; d < m; ++d) {
            if (home >= 0 && d != home) continue;
            const Int ticks = problem.work(i, d), ready = std::max(here.line.ready[d], here.before[i * m + d]);
            Int after = std::max(there.line.ready[d], here.behind[i * m + d]), end = add(ready, ticks);
            Int worth = std::max(add(end, after), aim);
            if (worth > best_worth || (worth == best_worth && end >= best_end)) continue;
            if (home < 0 && !timeline.can_host(k, d)) continue;
            const Slot slot = timeline.earliest(i, d, ready);
            end = slot.start + ticks;
            if (noise > 0) {
                random_ = next_random(random_);
                after = add(after, ratio_floor(ticks, noise * (random_ % WHOLE), WHOLE * WHOLE));
            }
            worth = std::max(add(end, after), aim);
            if (worth < best_worth || (worth == best_worth && end < best_end)) {
                best = d;
                best_worth = worth;
                best_end = end;
                best_slot = slot;
            }
        }
        if (best < 0) return NEVER;
        timeline.occupy(i, best, best_slot);
        span = std::max(span, add(best_end, here.behind[i * m + best]));
    }
    return span;
}

namespace {

Int moving(const Problem& problem, Ints device, Int e) {
    const Int a = device[problem.edge_source[e]], b = device[problem.edge_target[e]];
    return a == b ? 0 : problem.transfer(problem.payload[e], a, b);
}

}  // namespace

std::vector<Int> earliest_starts(const Problem& problem, Ints sequence, Ints device) {
    std::vector<Int> start(problem.n), free(problem.m);
    for (const Int i : sequence) {
        const Int d = device[i];
        Int begin = std::max(free[d], problem.release[i]);
        for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
            const Int u = problem.in_source[r];
            begin = std::max(begin, add(start[u] + problem.work(u, device[u]), moving(problem, device, problem.in_edge[r])));
        }
        start[i] = begin;
        free[d] = add(begin, problem.work(i, d));
    }
    return start;
}

std::vector<Int> tails(const Problem& problem, Ints sequence, Ints device) {
    std::vector<Int> tail(problem.n), behind(problem.m);
    for (std::size_t at = sequence.size(); at-- > 0;) {
        const Int i = sequence[at], d = device[i];
        Int after = behind[d];
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
            after = std::max(after, add(moving(problem, device, e), tail[problem.edge_target[e]]));
        tail[i] = behind[d] = add(problem.work(i, d), after);
    }
    return tail;
}

std::vector<Int> latest_starts(const Problem& problem, Ints sequence, Ints device, Ints deadline) {
    std::vector<Int> latest(problem.n, INT64_MAX), due(problem.m, INT64_MAX);
    for (std::size_t at = sequence.size(); at-- > 0;) {
        const Int i = sequence[at], d = device[i];
        Int end = std::min(deadline[i], due[d]);
        for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e)
            if (const Int next = latest[problem.edge_target[e]]; next != INT64_MAX)
                end = std::min(end, subtract(next, moving(problem, device, e)));
        if (end != INT64_MAX) latest[i] = subtract(end, problem.work(i, d));
        due[d] = latest[i];
    }
    return latest;
}

}  // namespace engine
