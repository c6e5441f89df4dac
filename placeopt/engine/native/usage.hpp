// What running tasks use of renewable resources over time, and the earliest tick at which a further task may run.
#pragma once

#include <algorithm>
#include <vector>

#include "problem.hpp"

namespace engine {

class Usage {
public:
    explicit Usage(const Resources& resources) : resources_(resources), steps_(resources.capacity.size()) { clear(); }

    bool any() const { return resources_.any(); }

    void clear() {
        for (auto& steps : steps_) steps.assign(1, {0, 0});
    }

    // The first tick from `tick` on at which what an entry uses is there for `ticks` ticks. A task of no duration uses
    // nothing. `gate(tick)` moves a tick on to where the device is open, and is asked again after each wait.
    template <class Gate>
    Int earliest(Int entry, Int tick, Int ticks, Gate&& gate) const {
        tick = gate(tick);
        if (ticks == 0 || !any()) return tick;
        for (Int k = resources_.row[entry]; k < resources_.row[entry + 1];) {
            const Int moved = free_from(k, tick, ticks);
            if (moved == tick) {
                ++k;
            } else {
                tick = gate(moved);
                k = resources_.row[entry];
            }
        }
        return tick;
    }

    // Counts what an entry uses from `begin` to `end` (sign 1), or takes it away (-1).
    void count(Int entry, Int begin, Int end, Int sign) {
        if (begin == end || !any()) return;
        for (Int k = resources_.row[entry]; k < resources_.row[entry + 1]; ++k) {
            const Int r = resources_.resource[k];
            if (!resources_.renewable[r]) continue;
            auto& steps = steps_[r];
            const auto low = split(steps, begin);
            const auto high = split(steps, end);
            for (auto at = low; at < high; ++at) steps[at].used += sign * resources_.amount[k];
            join(steps, high);
            join(steps, low);
        }
    }

private:
    // From `begin` until the next step, `used` units are in use.
    struct Step {
        Int begin, used;
    };
    using Steps = std::vector<Step>;

    // The step that holds a tick.
    static std::size_t at(const Steps& steps, Int tick) {
        if (tick >= steps.back().begin) return steps.size() - 1;
        const auto next = std::upper_bound(steps.begin(), steps.end(), tick, [](Int t, const Step& step) { return t < step.begin; });
        return static_cast<std::size_t>(next - steps.begin()) - 1;
    }
    // The step that begins at a tick, which it makes where there is none.
    static std::size_t split(Steps& steps, Int tick) {
        const std::size_t found = at(steps, tick);
        if (steps[found].begin == tick) return found;
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(found) + 1, {tick, steps[found].used});
        return found + 1;
    }
    // Removes a step that uses as much as the one before.
    static void join(Steps& steps, std::size_t step) {
        if (step > 0 && steps[step].used == steps[step - 1].used) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
    }
    // The first tick from `tick` on from which use k of its entry is there for `ticks` ticks.
    Int free_from(Int k, Int tick, Int ticks) const {
        const Int r = resources_.resource[k];
        if (!resources_.renewable[r]) return tick;
        const Int most = resources_.capacity[r] - resources_.amount[k];
        if (most < 0) throw Wrong("resources: a task uses more than there is");
        const Steps& steps = steps_[r];
        const Int until = add(tick, ticks);
        std::size_t step = at(steps, tick);
        Int end = until;
        for (; step < steps.size() && steps[step].begin < end; ++step) {
            if (steps[step].used <= most) continue;
            do ++step;
            while (steps[step].used > most);  // the last step uses nothing
            tick = steps[step].begin;
            end = add(tick, ticks);
        }
        return tick;
    }

    const Resources& resources_;
    std::vector<Steps> steps_;  // of each resource, by time; the last one uses nothing
};

}  // namespace engine
