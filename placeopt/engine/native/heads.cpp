// Heads and tails: how early a task can start, and how much must follow it. placeopt.bounding.quick.paths has the
// definitions, the claim and its proof; the names here are those of that page.
#include <cmath>
#include <limits>

#include "quick_bounds.hpp"

namespace engine {

namespace {

// Number of times that the start of a task on a class is raised at most.
constexpr int ROUNDS = 64;

class Heads {
public:
    Heads(const ClassGraph& graph, Int most, Int budget, std::vector<Int> head, Stop& stop)
        : graph_(graph),
          n_(static_cast<Int>(graph.order.size())),
          k_(static_cast<Int>(graph.capacity.size())),
          most_(most),
          budget_(budget),
          stop_(stop),
          head_(std::move(head)),
          lag_(k_ * k_),
          rate_(k_ * k_),
          about_(k_),
          best_(k_),
          remote_(graph.producer.size() * k_, NEVER_BOUND),
          seen_(n_),
          seen_group_(graph.group_memory.size()),
          after_(n_),
          rank_(n_) {
        for (Int link = 0; link < k_ * k_; ++link) {
            lag_[link] = graph.linked[link] ? static_cast<double>(graph.latency[link]) : std::numeric_limits<double>::infinity();
            rate_[link] = static_cast<double>(graph.num[link]) / static_cast<double>(graph.den[link]);
        }
        for (Int i = 0; i < n_; ++i) rank_[graph.order[i]] = i;
        alike_ = k_ > 1;
        for (Int a = 0; a < k_ && alike_; ++a) {
            const Int row = a * k_, any = row + (a == 0);  // a link to another class
            for (Int c = 0; c < k_; ++c)
                alike_ = alike_ && (c == a || (lag_[row + c] == lag_[any] && rate_[row + c] == rate_[any] &&
                                               graph.num[row + c] == graph.num[any] && graph.den[row + c] == graph.den[any]));
        }
    }

    std::vector<Int> run() {
        for (const Int v : graph_.order) {
            // Heads that are not raised are release times, which are valid.
            if (stop_.over(k_ * (k_ + 4) * (1 + graph_.start[v + 1] - graph_.start[v]))) break;
            for (Int at = graph_.start[v]; at < graph_.start[v + 1]; ++at)
                if (const Int e = graph_.edge[at]; !graph_.together[e]) find_arrivals(e);
            bool possible = false;
            for (Int c = 0; c < k_; ++c) {
                if (!graph_.allowed[v * k_ + c]) continue;
                const Int t = raised(v, c);
                head_[v * k_ + c] = std::min(t, NEVER_BOUND);
                possible = possible || t < NEVER_BOUND;
            }
            for (Int c = 0; c < k_ && !possible; ++c)
                if (graph_.allowed[v * k_ + c]) head_[v * k_ + c] = 0;
        }
        return std::move(head_);
    }

private:
    Int head(Int i, Int c) const { return head_[i * k_ + c]; }
    Int duration(Int i, Int c) const { return graph_.duration[i * k_ + c]; }
    Int remote(Int e, Int c) const { return remote_[e * k_ + c]; }

    // Computes the arrivals of edge e on other classes. The best source is found in doubles, and then its time is computed
    // exactly.
    void find_arrivals(Int e) {
        const double size = static_cast<double>(graph_.payload[e]);
        if (alike_) find_alike(e, size);
        else find_each(e, size);
    }

    void find_each(Int e, double size) {
        const Int u = graph_.producer[e];
        std::fill(about_.begin(), about_.end(), std::numeric_limits<double>::infinity());
        for (Int a = 0; a < k_; ++a) {
            if (head(u, a) >= NEVER_BOUND) continue;
            const double end = static_cast<double>(head(u, a) + duration(u, a)), source = static_cast<double>(a);
            const double *lag = &lag_[a * k_], *rate = &rate_[a * k_];
            for (Int c = 0; c < k_; ++c) {
                const double arrival = end + lag[c] + size * rate[c];
                const bool better = arrival < about_[c];
                about_[c] = better ? arrival : about_[c];
                best_[c] = better ? source : best_[c];
            }
        }
        for (Int c = 0; c < k_; ++c) {
            if (!(about_[c] < static_cast<double>(NEVER_BOUND))) continue;
            const Int a = static_cast<Int>(best_[c]);
            remote_[e * k_ + c] = rounded(about_[c], arrival(e, a, c));
        }
    }

    // The same where all links from a class to others are alike: one of the two best sources is the best of each class, or
    // the class itself, if it has several devices.
    void find_alike(Int e, double size) {
        const Int u = graph_.producer[e];
        constexpr double never = std::numeric_limits<double>::infinity();
        Int sources[2] = {NONE, NONE};
        double about[2] = {never, never};
        for (Int a = 0; a < k_; ++a) {
            about_[a] = never;
            if (head(u, a) >= NEVER_BOUND) continue;
            const double end = static_cast<double>(head(u, a) + duration(u, a));
            const Int row = a * k_, any = row + (a == 0), own = row + a;
            const double there = end + lag_[any] + size * rate_[any];
            about_[a] = end + lag_[own] + size * rate_[own];
            if (there < about[0]) {
                about[1] = about[0];
                sources[1] = sources[0];
                about[0] = there;
                sources[0] = a;
            } else if (there < about[1]) {
                about[1] = there;
                sources[1] = a;
            }
        }
        Int exact[2] = {NEVER_BOUND, NEVER_BOUND};
        for (const int rank : {0, 1})
            if (about[rank] < static_cast<double>(NEVER_BOUND))
                exact[rank] = rounded(about[rank], arrival(e, sources[rank], sources[rank] == 0 ? 1 : 0));
        for (Int c = 0; c < k_; ++c) {
            const int rank = c == sources[0] ? 1 : 0;
            const bool own = about_[c] < about[rank] || (about_[c] == about[rank] && c < sources[rank]);
            if (!own) remote_[e * k_ + c] = exact[rank];
            else if (about_[c] < static_cast<double>(NEVER_BOUND)) remote_[e * k_ + c] = rounded(about_[c], arrival(e, c, c));
        }
    }

    Int arrival(Int e, Int a, Int c) const {
        const Int u = graph_.producer[e], link = a * k_ + c;
        const Int ticks = add(graph_.latency[link], ratio_ceil(graph_.payload[e], graph_.num[link], graph_.den[link]));
        return add(head(u, a) + duration(u, a), ticks);
    }

    // If rounding to doubles may hide a source that is earlier by a tick, there is assumed to be one.
    static Int rounded(double about, Int t) {
        const double error = about * 2e-15;
        return static_cast<double>(t) - about > 1 - error ? t - 1 - static_cast<Int>(error) : t;
    }

    // L[v, c], by raising t until all conditions hold.
    Int raised(Int v, Int c) {
        Int t = head(v, c);
        for (Int at = graph_.start[v]; at < graph_.start[v + 1]; ++at) {
            const Int e = graph_.edge[at], u = graph_.producer[e];
            const Int own = head(u, c) < NEVER_BOUND ? head(u, c) + duration(u, c) : NEVER_BOUND;
            t = std::max(t, std::min(remote(e, c), own));
        }
        for (int round = 0; round < ROUNDS && !settled(v, c, t); ++round) {
            const Tied tied = follow(v, c, t);
            if (tied.fits && tied.busy <= t) break;
            t = tied.fits ? std::min(tied.change, tied.busy) : tied.change;
            if (t >= NEVER_BOUND) break;
        }
        return t;
    }

    // Whether A(t) has no members, as for most tasks, or is not followed any more, and v fits into the device.
    bool settled(Int v, Int c, Int t) {
        if (graph_.group_memory[graph_.group[v]] > graph_.capacity[c]) return false;
        if (followed_ >= budget_) return true;
        const Int first = graph_.start[v], last = graph_.start[v + 1];
        for (Int at = first; at < last; ++at)
            if (remote(graph_.edge[at], c) > t) return false;
        followed_ += last - first;
        return true;
    }

    // What is known of the set A(t): whether it fits into the device, the tick from which its members leave the device to
    // v, and the first tick at which it shrinks.
    struct Tied {
        bool fits = true;
        Int busy = 0, change = NEVER_BOUND;
    };

    // Follows A(t) from v.
    Tied follow(Int v, Int c, Int t) {
        Tied found;
        ++stamp_;
        seen_group_[graph_.group[v]] = stamp_;
        Int first = NEVER_BOUND, work = 0, held = graph_.group_memory[graph_.group[v]], steps = 0;
        bool loose = false;
        pending_.assign(1, v);  // members to follow; the last one has no pending consumers
        after_[v] = 0;
        while (!pending_.empty() && steps < most_ && followed_ < budget_) {
            const Int u = pending_.back();
            pending_.pop_back();
            if (pending_.empty() && !loose) after_[u] = std::max(after_[u], work);  // all other members follow u there
            bool tied = false;
            stop_.over(2 * (graph_.start[u + 1] - graph_.start[u]));  // counts; `run` ends
            for (Int at = graph_.start[u]; at < graph_.start[u + 1]; ++at) {
                const Int e = graph_.edge[at];
                ++steps;
                ++followed_;
                if (remote(e, c) <= t - after_[u]) continue;
                const Int w = graph_.producer[e];
                tied = true;
                found.change = std::min(found.change, remote(e, c) + after_[u]);
                if (graph_.apart[e] || head(w, c) == NEVER_BOUND) found.fits = false;
                const Int behind = after_[u] + duration(w, c);
                if (seen_[w] == stamp_) {
                    after_[w] = std::max(after_[w], behind);
                    continue;
                }
                seen_[w] = stamp_;
                first = std::min(first, head(w, c));
                work += graph_.busy[w * k_ + c];
                found.busy = std::max(found.busy, first + work);
                after_[w] = behind;
                auto place = pending_.end();
                for (; place != pending_.begin() && rank_[*(place - 1)] > rank_[w]; --place) ++followed_;
                pending_.insert(place, w);
                Int& seen = seen_group_[graph_.group[w]];
                if (seen != stamp_) {
                    seen = stamp_;
                    held = add(held, graph_.group_memory[graph_.group[w]]);
                }
            }
            loose = loose || !tied;
        }
        found.fits = found.fits && held <= graph_.capacity[c];
        return found;
    }

    const ClassGraph& graph_;
    const Int n_, k_, most_, budget_;
    Stop& stop_;
    std::vector<Int> head_;
    std::vector<double> lag_, rate_;     // (k, k) latency, infinite without a link, and ticks of a byte
    std::vector<double> about_, best_;   // (k,) scratch; doubles, so that the loop over them is vectorised
    std::vector<Int> remote_;            // (e, k)
    std::vector<Int> seen_;              // (n,) stamp of the last A(t) that a task was in
    std::vector<Int> seen_group_;        // (g,)
    std::vector<Int> after_;             // (n,) ticks from the start of a member of A(t) to t, along its consumers
    std::vector<Int> rank_;              // (n,) position in the order
    std::vector<Int> pending_;
    Int stamp_ = 0, followed_ = 0;
    bool alike_;                         // whether all links from each class to others are alike
};

}  // namespace

std::vector<Int> earliest_heads(const ClassGraph& graph, Int most, Int budget, std::vector<Int> head, Stop& stop) {
    return Heads(graph, most, budget, std::move(head), stop).run();
}

}  // namespace engine
