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
    Heads(const ClassGraph& graph, Int most, Int budget, Ints release, Stop& stop)
        : graph_(graph),
          n_(static_cast<Int>(graph.order.size())),
          k_(static_cast<Int>(graph.capacity.size())),
          most_(most),
          budget_(budget),
          stop_(stop),
          head_(n_ * k_),
          lag_(k_ * k_),
          rate_(k_ * k_),
          about_(k_),
          best_(k_),
          row_(k_),
          farthest_(k_),
          members_(n_),
          seen_group_(graph.group_memory.size()) {
        for (Int v = 0; v < n_; ++v)
            for (Int c = 0; c < k_; ++c) head_[v * k_ + c] = graph.allowed[v * k_ + c] ? release[v] : NEVER_BOUND;
        for (Int link = 0; link < k_ * k_; ++link) {
            lag_[link] = graph.linked[link] ? static_cast<double>(graph.latency[link]) : std::numeric_limits<double>::infinity();
            rate_[link] = static_cast<double>(graph.num[link]) / static_cast<double>(graph.den[link]);
        }
        for (Int i = 0; i < n_; ++i) members_[graph.order[i]].rank = i;
        alike_ = k_ > 1;
        uniform_ = k_ > 1;
        for (Int a = 0; a < k_ && alike_; ++a)
            for (Int c = 0; c < k_; ++c) {
                const bool same = like(a * k_ + c, outside(a));
                if (c != a) alike_ = alike_ && same;
                else uniform_ = uniform_ && (same || !graph.linked[a * k_ + a]);
            }
        uniform_ = uniform_ && alike_;
        if (uniform_) ends_.resize(graph.producer.size());
        else remote_.assign(graph.producer.size() * k_, NEVER_BOUND);
    }

    std::vector<Int> run() {
        const Int each = alike_ ? 8 * k_ : k_ * (k_ + 4);
        for (const Int v : graph_.order) {
            // Heads that are not raised are release times, which are valid.
            if (stop_.over(each * (1 + graph_.start[v + 1] - graph_.start[v]))) break;
            Int* const start = &head_[v * k_];
            std::fill(farthest_.begin(), farthest_.end(), 0);
            for (Int e = graph_.start[v]; e < graph_.start[v + 1]; ++e) {
                const Int u = graph_.producer[e];
                const Int *arrival = arrivals(e), *before = &head_[u * k_], *work = &graph_.duration[u * k_];
                for (Int c = 0; c < k_; ++c) {
                    const Int own = before[c] < NEVER_BOUND ? before[c] + work[c] : NEVER_BOUND;
                    start[c] = std::max(start[c], std::min(arrival[c], own));
                    farthest_[c] = std::max(farthest_[c], arrival[c]);
                }
            }
            bool possible = false;
            for (Int c = 0; c < k_; ++c) {
                if (!graph_.allowed[v * k_ + c]) {
                    start[c] = NEVER_BOUND;
                    continue;
                }
                const Int t = raised(v, c, start[c]);
                start[c] = std::min(t, NEVER_BOUND);
                possible = possible || t < NEVER_BOUND;
            }
            for (Int c = 0; c < k_ && !possible; ++c)
                if (graph_.allowed[v * k_ + c]) start[c] = 0;
        }
        return std::move(head_);
    }

private:
    // The arrival of an edge on all classes where all links from a class are alike: `first`, from the best source, but
    // `second` on the class of that source, if it has no other device.
    struct Ends {
        Int first = NEVER_BOUND, second = NEVER_BOUND, source = NONE;
    };

    Int head(Int i, Int c) const { return head_[i * k_ + c]; }
    Int duration(Int i, Int c) const { return graph_.duration[i * k_ + c]; }
    Int remote(Int e, Int c) const {
        if (!uniform_) return remote_[e * k_ + c];
        return c == ends_[e].source ? ends_[e].second : ends_[e].first;
    }

    // A link from a class to another one.
    Int outside(Int a) const { return a * k_ + (a == 0); }
    bool like(Int link, Int other) const {
        return graph_.latency[link] == graph_.latency[other] && graph_.num[link] == graph_.num[other] &&
               graph_.den[link] == graph_.den[other];
    }

    // Computes the arrivals of edge e on other classes. The best source is found in doubles, and then its time is computed
    // exactly.
    const Int* arrivals(Int e) {
        const double size = static_cast<double>(graph_.payload[e]);
        if (uniform_) {
            if (!graph_.together[e]) ends_[e] = find_ends(e, size);
            std::fill(row_.begin(), row_.end(), ends_[e].first);
            if (ends_[e].source != NONE) row_[ends_[e].source] = ends_[e].second;
            return row_.data();
        }
        if (!graph_.together[e]) {
            if (alike_) find_alike(e, size);
            else find_each(e, size);
        }
        return &remote_[e * k_];
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

    // The two best sources where all links from a class to others are alike: one of them is the best of each other class.
    struct Sources {
        double about[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
        Int source[2] = {NONE, NONE};
        Int exact[2] = {NEVER_BOUND, NEVER_BOUND};
    };
    Sources two_sources(Int e, double size) const {
        const Int u = graph_.producer[e];
        Sources found;
        for (Int a = 0; a < k_; ++a) {
            if (head(u, a) >= NEVER_BOUND) continue;
            const double there = static_cast<double>(head(u, a) + duration(u, a)) + lag_[outside(a)] + size * rate_[outside(a)];
            if (there < found.about[0]) {
                found.about[1] = found.about[0];
                found.source[1] = found.source[0];
                found.about[0] = there;
                found.source[0] = a;
            } else if (there < found.about[1]) {
                found.about[1] = there;
                found.source[1] = a;
            }
        }
        for (const int rank : {0, 1})
            if (found.about[rank] < static_cast<double>(NEVER_BOUND))
                found.exact[rank] = rounded(found.about[rank], arrival(e, found.source[rank], found.source[rank] == 0 ? 1 : 0));
        return found;
    }

    Ends find_ends(Int e, double size) const {
        const Sources found = two_sources(e, size);
        const Int a = found.source[0];
        return {found.exact[0], a != NONE && graph_.linked[a * k_ + a] ? found.exact[0] : found.exact[1], a};
    }

    // The source may also be the class itself, if it has several devices.
    void find_alike(Int e, double size) {
        const Sources found = two_sources(e, size);
        const Int u = graph_.producer[e];
        for (Int c = 0; c < k_; ++c) {
            const int rank = c == found.source[0] ? 1 : 0;
            const Int link = c * k_ + c;
            const double here = head(u, c) < NEVER_BOUND
                                    ? static_cast<double>(head(u, c) + duration(u, c)) + lag_[link] + size * rate_[link]
                                    : std::numeric_limits<double>::infinity();
            const bool own = here < found.about[rank] || (here == found.about[rank] && c < found.source[rank]);
            if (!own) remote_[e * k_ + c] = found.exact[rank];
            else if (here < static_cast<double>(NEVER_BOUND)) remote_[e * k_ + c] = rounded(here, arrival(e, c, c));
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

    // L[v, c], by raising t until all conditions hold; the arrivals of all producers are in `farthest_`.
    Int raised(Int v, Int c, Int t) {
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
        if (farthest_[c] > t) return false;
        followed_ += graph_.start[v + 1] - graph_.start[v];
        return true;
    }

    // What is known of the set A(t): whether it fits into the device, the tick from which its members leave the device to
    // v, and the first tick at which it shrinks.
    struct Tied {
        bool fits = true;
        Int busy = 0, change = NEVER_BOUND;
    };

    // A task as a member of A(t); in one place of memory, since tasks are met at random.
    struct Member {
        Int seen = 0;   // stamp of the last A(t) that it was in
        Int after = 0;  // ticks from its start to t, along its consumers
        Int rank = 0;   // position in the order
    };

    // Follows A(t) from v.
    Tied follow(Int v, Int c, Int t) {
        Tied found;
        ++stamp_;
        seen_group_[graph_.group[v]] = stamp_;
        Int first = NEVER_BOUND, work = 0, held = graph_.group_memory[graph_.group[v]], steps = 0;
        bool loose = false;
        pending_.assign(1, v);  // members to follow; the last one has no pending consumers
        members_[v].after = 0;
        while (!pending_.empty() && steps < most_ && followed_ < budget_) {
            const Int u = pending_.back();
            pending_.pop_back();
            Int& after = members_[u].after;
            if (pending_.empty() && !loose) after = std::max(after, work);  // all other members follow u there
            bool tied = false;
            stop_.over(2 * (graph_.start[u + 1] - graph_.start[u]));  // counts; `run` ends
            for (Int e = graph_.start[u]; e < graph_.start[u + 1]; ++e) {
                ++steps;
                ++followed_;
                const Int arrival = remote(e, c);
                if (arrival <= t - after) continue;
                const Int w = graph_.producer[e];
                tied = true;
                found.change = std::min(found.change, arrival + after);
                if (graph_.apart[e] || head(w, c) == NEVER_BOUND) found.fits = false;
                const Int behind = after + duration(w, c);
                Member& member = members_[w];
                if (member.seen == stamp_) {
                    member.after = std::max(member.after, behind);
                    continue;
                }
                member.seen = stamp_;
                first = std::min(first, head(w, c));
                work += graph_.busy[w * k_ + c];
                found.busy = std::max(found.busy, first + work);
                member.after = behind;
                auto place = pending_.end();
                for (; place != pending_.begin() && members_[*(place - 1)].rank > member.rank; --place) ++followed_;
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
    std::vector<Int> remote_;            // (e, k), unless uniform
    std::vector<Ends> ends_;             // (e,), if uniform
    std::vector<Int> row_, farthest_;    // (k,) the arrivals of an edge, and the latest of all in-edges of a task
    std::vector<Member> members_;        // (n,)
    std::vector<Int> seen_group_;        // (g,)
    std::vector<Int> pending_;
    Int stamp_ = 0, followed_ = 0;
    bool alike_;                         // whether all links from each class to others are alike
    bool uniform_;                       // and those within the class, too
};

}  // namespace

std::vector<Int> earliest_heads(const ClassGraph& graph, Int most, Int budget, Ints release, Stop& stop) {
    return Heads(graph, most, budget, release, stop).run();
}

}  // namespace engine
