// Random placements of groups, and moves of random tasks; placeopt_solvers.baselines._sampling has the sources.
#pragma once

#include "memory.hpp"
#include "simulation.hpp"

namespace engine {

class Sampler {
public:
    // `deadline` (n,); `memory` (n,) bytes of each task.
    Sampler(const Problem& problem, const Groups& groups, Ints deadline, Ints memory, Int seed);

    // Draws each group's device from its own until a placement keeps memory and separation, `tries` times at most; returns
    // whether one did. The result is uniform among the placements that keep them.
    bool draw_home(Int tries);

    // Changes `home` at random: a group moves, or two groups exchange their devices, if all rules are kept. Each change is as
    // likely as its inverse. In the long run all reachable placements are therefore equally likely (N. Metropolis et al.
    // 1953, doi:10.1063/1.1699114).
    void mix_home(Int changes);

    // Tries placements and keeps the best: by lateness, then by makespan, first in first out. Each drawn placement is
    // followed by `steps` moves; a call continues where the last one ended. With `tries` = 0, placements come from changes of
    // `home` only. Returns how many were tried: `count`, or fewer if stopped.
    Int sample(Int count, Int steps, Int tries, Stop& stop);

    // Continues with `moves` moves from a placement (g,) that leaves this `room` (m,).
    void start_from(Ints homes, Ints left, Int moves, Stop& stop);

    // The tick at which task i would end on device d if it started with its last input. Members of its group move with it.
    Int finish(Int i, Int d) const;
    // Moves a random task, with its group, to the device where it ends first; returns whether the device changes.
    bool relocate();

    Simulation simulation;       // of `device`
    std::vector<Int> home, room; // (g,), (m,) a placement that keeps all rules, and the bytes that it leaves
    std::vector<Int> device;     // (n,) the current placement
    std::vector<Int> best;       // (n,) the best placement, if `known`
    Int late = 0, span = 0;      // its lateness and makespan in ticks
    bool known = false;

private:
    Int draw(Int below) {  // the upper digits of the random number; below < 2^31
        random_ = next_random(random_);
        return random_ * below / MODULUS;
    }
    Int draw_option(Int k) { return option_[option_start_[k] + draw(option_start_[k + 1] - option_start_[k])]; }
    bool must_avoid(const std::vector<Int>& homes, Int k, Int d, Int upto) const;
    void apply_home();

    const Problem& problem_;
    const Groups& groups_;
    Ints deadline_;
    std::vector<Int> option_start_, option_;  // the devices of each group, as CSR
    std::vector<Int> trial_;                  // (g,) a placement that is being drawn
    Int random_;
    Int left_ = 0;                            // moves left before the next draw
};

}  // namespace engine
