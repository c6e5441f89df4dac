// Random placements, and random tasks with earliest finish times: the baselines of GiPH.
#include "sampling.hpp"

namespace engine {

namespace {
constexpr Int MIXING = 4;  // changes per group between two placements of the random walk
}

Sampler::Sampler(const Problem& problem, const Groups& groups, Ints deadline, Ints memory, Int seed)
    : simulation(problem, memory), home(problem.g), room(problem.m), device(problem.n), best(problem.n), problem_(problem),
      groups_(groups), deadline_(deadline), option_start_(problem.g + 1), trial_(problem.g), random_(1 + seed % (MODULUS - 1)) {
    for (Int k = 0; k < problem.g; ++k) {
        for (Int d = 0; d < problem.m; ++d)
            if (groups.feasible[k * problem.m + d]) option_.push_back(d);
        option_start_[k + 1] = static_cast<Int>(option_.size());
    }
    draw(2);
    draw(2);  // small seeds give small first numbers
}

// Whether a group below `upto` that must be apart from group k is on device d.
bool Sampler::must_avoid(const std::vector<Int>& homes, Int k, Int d, Int upto) const {
    for (Int r = groups_.apart_start[k]; r < groups_.apart_start[k + 1]; ++r)
        if (groups_.apart[r] < upto && homes[groups_.apart[r]] == d) return true;
    return false;
}

bool Sampler::draw_home(Int tries) {
    const Int g = problem_.g;
    for (Int round = 0; round < tries; ++round) {
        room.assign(problem_.capacity.begin(), problem_.capacity.end());
        bool fine = true;
        for (Int k = 0; fine && k < g; ++k) {
            const Int d = trial_[k] = draw_option(k);
            room[d] = subtract(room[d], groups_.memory[k]);
            fine = room[d] >= 0 && !must_avoid(trial_, k, d, k);
        }
        if (fine) {
            home = trial_;
            return true;
        }
    }
    room.assign(problem_.capacity.begin(), problem_.capacity.end());
    for (Int k = 0; k < g; ++k) room[home[k]] = subtract(room[home[k]], groups_.memory[k]);
    return false;
}

void Sampler::mix_home(Int changes) {
    const Ints memory = groups_.memory;
    const Int g = problem_.g, m = problem_.m;
    for (Int change = 0; change < changes; ++change) {
        const Int k = draw(g), a = home[k];
        if (draw(2) == 0) {
            const Int d = draw_option(k);
            if (d == a || room[d] < memory[k] || must_avoid(home, k, d, g)) continue;
            home[k] = d;
            room[a] += memory[k];
            room[d] -= memory[k];
            continue;
        }
        const Int h = draw(g), b = home[h], gain = memory[k] - memory[h];
        if (a == b || room[b] < gain || room[a] < -gain) continue;
        if (!groups_.feasible[k * m + b] || !groups_.feasible[h * m + a]) continue;
        home[k] = b;
        home[h] = a;
        if (must_avoid(home, k, b, g) || must_avoid(home, h, a, g)) {
            home[k] = a;
            home[h] = b;
            continue;
        }
        room[a] += gain;
        room[b] -= gain;
    }
}

void Sampler::apply_home() {
    for (Int i = 0; i < problem_.n; ++i) device[i] = home[problem_.group[i]];
}

void Sampler::start_from(Ints homes, Ints left, Int moves, Stop& stop) {
    home.assign(homes.begin(), homes.end());
    room.assign(left.begin(), left.end());
    left_ = moves;
    apply_home();
    simulation.makespan(device, stop);
}

Int Sampler::finish(Int i, Int d) const {
    Int ready = problem_.release[i];
    for (Int r = problem_.in_start[i]; r < problem_.in_start[i + 1]; ++r) {
        const Int u = problem_.in_source[r], a = device[u];
        Int arrival = add(simulation.start[u], simulation.task_ticks[u]);
        if (a != d && problem_.group[u] != problem_.group[i])
            arrival = add(arrival, problem_.transfer(problem_.in_payload[r], a, d));
        ready = std::max(ready, arrival);
    }
    return add(ready, problem_.work(i, d));
}

bool Sampler::relocate() {
    const Int i = draw(problem_.n), k = problem_.group[i], a = device[i];
    Int chosen = a, least = finish(i, a);
    for (Int r = option_start_[k]; r < option_start_[k + 1]; ++r) {
        const Int d = option_[r];
        if (d == a || room[d] < groups_.memory[k] || must_avoid(home, k, d, problem_.g)) continue;
        const Int end = finish(i, d);
        if (end < least || (end == least && d < chosen)) {
            chosen = d;
            least = end;
        }
    }
    if (chosen == a) return false;
    home[k] = chosen;
    room[a] += groups_.memory[k];
    room[chosen] -= groups_.memory[k];
    apply_home();
    return true;
}

Int Sampler::sample(Int count, Int steps, Int tries, Stop& stop) {
    const Int n = problem_.n;
    for (Int tried = 0; tried < count; ++tried) {
        if (stop.over(8 * n)) return tried;
        if (left_ == 0) {
            left_ = steps;
            if (!draw_home(tries)) mix_home(MIXING * problem_.g);
            apply_home();
        } else {
            --left_;
            if (!relocate()) continue;
        }
        Int makespan = 0, lateness = 0;
        try {
            makespan = simulation.makespan(device, stop);
        } catch (const Stopped&) {
            return tried;
        }
        for (Int i = 0; i < n; ++i)
            lateness = std::max(lateness, add(simulation.start[i], simulation.task_ticks[i]) - deadline_[i]);
        if (!known || lateness < late || (lateness == late && makespan < span)) {
            late = lateness;
            span = makespan;
            best = device;
            known = true;
        }
    }
    return count;
}

}  // namespace engine
