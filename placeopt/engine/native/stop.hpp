// Whether a loop must end: a time limit, the caller's `should_stop`, or a signal such as Ctrl-C.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>

#include "arithmetic.hpp"

namespace engine {

// A loop ended before its result was complete. The binding raises it as placeopt.engine.Stopped.
struct Stopped : std::runtime_error {
    Stopped() : std::runtime_error("stopped before the result was complete") {}
};

// Loops call `poll` or `over` in every iteration, with the elementary steps of the iteration, about 1 ns each. The clock is read
// every 20 us or so, and Python is asked every 10 ms, which takes its lock.
class Stop {
public:
    using Clock = std::chrono::steady_clock;
    // Asks Python: runs handlers of signals, which may throw, and returns the caller's `should_stop`.
    using Ask = std::function<bool()>;

    explicit Stop(Ask ask = {}, std::optional<double> seconds = {}) : ask_(std::move(ask)), asked_(Clock::now()) {
        // A century stands for no limit: later deadlines would overflow the clock.
        constexpr double century = 3e9;
        if (seconds && *seconds < century)
            deadline_ = asked_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
    }

    // Throws Stopped if the loop must end: for loops whose result is then incomplete.
    void poll(Int steps) {
        if (over(steps)) throw Stopped();
    }

    // Whether the loop must end: for loops that then return what they have.
    bool over(Int steps) {
        left_ -= steps;
        return left_ <= 0 && check();
    }

private:
    static constexpr Int STEPS = 20'000;
    static constexpr std::chrono::milliseconds PAUSE{10};

    bool check() {
        left_ = STEPS;
        const auto now = Clock::now();
        if (deadline_ && now >= *deadline_) return true;
        if (!ask_ || now - asked_ < PAUSE) return false;
        asked_ = now;
        return ask_();
    }

    Ask ask_;
    Clock::time_point asked_;
    std::optional<Clock::time_point> deadline_;
    Int left_ = STEPS;
};

}  // namespace engine
