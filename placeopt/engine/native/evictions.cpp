// Homes by live memory: evictions that make room for a group, and packings of all groups by memory alone.
#include "live_memory.hpp"

namespace engine {

namespace {

// Groups that one call evicts at most: each costs a pass over all groups.
constexpr std::size_t MOST_EVICTIONS = 1000;

template <class T>
class Evictions {
public:
    Evictions(T& timeline, const std::vector<bool>& movable, Stop& stop)
        : timeline_(timeline), line_(timeline.line), groups_(timeline.groups), movable_(movable), stop_(stop) {}

    bool make_room(Int k) {
        const Int m = timeline_.problem.m;
        std::vector<Int> missing(m, NEVER);
        for (Int d = 0; d < m; ++d) {
            if (!groups_.feasible[k * m + d]) continue;
            line_.assign_group(k, d);
            missing[d] = subtract(line_.profile(d).peak(), line_.room[d]);
            line_.release_group(k);
        }
        for (Int tried = 0; tried < m; ++tried) {
            const auto best = std::min_element(missing.begin(), missing.end());
            if (*best >= NEVER) break;
            if (clear_device(k, best - missing.begin())) return true;
            *best = NEVER;
        }
        return false;
    }

    Int pack(Ints turn, bool stay) {
        const Int m = timeline_.problem.m;
        Int last = NONE;
        for (const Int k : turn) {
            if (line_.home[k] >= 0) continue;
            stop_.poll(20 * m);
            Int best = stay && last >= 0 && timeline_.can_host(k, last) ? last : NONE;
            if (best < 0) {
                Int most = 0;
                for (Int d = 0; d < m; ++d) {
                    if (!timeline_.can_host(k, d)) continue;
                    const Int room = room_for(k, d);
                    if (best < 0 || room > most) {
                        best = d;
                        most = room;
                    }
                }
            }
            if (best >= 0) line_.assign_group(k, best);
            else if (!make_room(k)) return k;
            last = line_.home[k];
        }
        return NONE;
    }

private:
    struct Move {
        Int group, source;
    };

    // What group k holds at a leaf, without its resident bytes.
    Int bytes_at(Int k, Int leaf) const {
        const Live& live = groups_.live;
        Int total = 0;
        for (Int r = live.row[k]; r < live.row[k + 1]; ++r) {
            if (live.first[r] <= leaf && leaf <= live.last[r]) total = add(total, live.output[r]);
            if (live.first[r] == leaf) total = add(total, live.scratch[r]);
        }
        return total;
    }

    // The least bytes that device d has left while group k holds memory.
    Int room_for(Int k, Int d) {
        const Live& live = groups_.live;
        Int most = 0;
        for (Int r = live.row[k]; r < live.row[k + 1]; ++r)
            most = std::max(most, line_.profile(d).most(live.first[r], live.last[r]));
        return subtract(line_.room[d], most);
    }

    // The device other than d with the least room that can take group k; NONE if there is none.
    Int other_device(Int k, Int d) {
        stop_.poll(20 * timeline_.problem.m);
        Int best = NONE, least = NEVER;
        for (Int b = 0; b < timeline_.problem.m; ++b) {
            if (b == d || !timeline_.can_host(k, b)) continue;
            const Int room = room_for(k, b);
            if (best < 0 || room < least) {
                best = b;
                least = room;
            }
        }
        return best;
    }

    bool evict(Int k) {
        if (!movable_[k] || moves_.size() == MOST_EVICTIONS) return false;
        const Int d = line_.home[k], b = other_device(k, d);
        if (b < 0) return false;
        line_.release_group(k);
        line_.assign_group(k, b);
        moves_.push_back({k, d});
        return true;
    }

    // The group to evict from device d, which is too full, for group k; NONE if no other can move.
    Int best_to_evict(Int k, Int d) {
        const Int leaf = line_.profile(d).fullest(), missing = subtract(line_.profile(d).peak(), line_.room[d]);
        Int best = NONE, size = 0;
        for (Int other = 0; other < timeline_.problem.g; ++other) {
            stop_.poll(2);
            if (line_.home[other] != d || other == k || !movable_[other]) continue;
            const Int own = add(bytes_at(other, leaf), groups_.memory[other]);
            if (own == 0) continue;
            // The smallest that leaves enough room, or the largest if none does.
            const bool better = best < 0 || (size >= missing ? missing <= own && own < size : own > size);
            if (better && other_device(other, d) >= 0) {
                best = other;
                size = own;
            }
        }
        return best;
    }

    // Assigns group k to device d after evictions; if that fails, everything is as before.
    bool clear_device(Int k, Int d) {
        moves_.clear();
        bool done = true;
        for (Int r = groups_.apart_start[k]; r < groups_.apart_start[k + 1] && done; ++r)
            if (line_.home[groups_.apart[r]] == d) done = evict(groups_.apart[r]);
        if (done) {
            line_.assign_group(k, d);
            done = line_.solvent();  // evictions make room, but do not save what budgets lack
            while (done && line_.profile(d).peak() > line_.room[d]) {
                const Int other = best_to_evict(k, d);
                done = other >= 0 && evict(other);
            }
            if (!done) line_.release_group(k);
        }
        if (!done) {
            for (; !moves_.empty(); moves_.pop_back()) {
                line_.release_group(moves_.back().group);
                line_.assign_group(moves_.back().group, moves_.back().source);
            }
        }
        return done;
    }

    T& timeline_;
    Line& line_;
    const Groups& groups_;
    const std::vector<bool>& movable_;
    Stop& stop_;
    std::vector<Move> moves_;  // of the present call of clear_device
};

}  // namespace

bool make_room(Line& line, const std::vector<bool>& movable, Int k, Stop& stop) {
    return with_rules(line, [&](auto& timeline) { return Evictions(timeline, movable, stop).make_room(k); });
}

Int pack_groups(Line& line, const std::vector<bool>& movable, Ints turn, bool stay, Stop& stop) {
    return with_rules(line, [&](auto& timeline) { return Evictions(timeline, movable, stop).pack(turn, stay); });
}

std::vector<Int> missing_bytes(Line& line, Int k) {
    std::vector<Int> missing(line.problem.m);
    for (Int d = 0; d < line.problem.m; ++d) {
        line.assign_group(k, d);
        missing[d] = std::max(subtract(line.profile(d).peak(), line.room[d]), Int{0});
        line.release_group(k);
    }
    return missing;
}

}  // namespace engine
