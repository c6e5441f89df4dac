// Homes of groups by clusters (DSC, LC) and by parts of a partition (METIS); placeopt_solvers.clustering._clusters and
// .metis describe them.
#include "clustering.hpp"

namespace engine {

namespace {

template <class T>
class Mapper {
public:
    Mapper(T& timeline, const Mapping& mapping, Stop& stop)
        : timeline_(timeline),
          line_(timeline.line),
          problem_(timeline.problem),
          groups_(timeline.groups),
          mapping_(mapping),
          stop_(stop),
          load_(problem_.m),
          ticks_(problem_.m) {
        for (Int k = 0; k < problem_.g; ++k)
            if (const Int d = line_.home[k]; d >= 0) load_[d] = add(load_[d], work(k, d));
    }

    Mapped run() {
        Mapped found;
        for (Int at = 0; at < static_cast<Int>(mapping_.turn.size()); ++at) {
            const auto members = free_members(mapping_.turn[at]);
            if (members.empty()) continue;
            stop_.poll(8 * problem_.m * static_cast<Int>(members.size()));
            Int best = device_for_all(members, mapping_.turn[at], at);
            if (best >= 0) {
                for (const Int k : members) line_.assign_group(k, best);
                load_[best] = add(load_[best], ticks_[best]);
                continue;
            }
            found.splits += members.size() > 1;
            for (const Int k : members) {
                if (best < 0 || !timeline_.can_host(k, best)) {
                    best = choose(at, [&](Int d) { return work(k, d); }, [&](Int d) { return timeline_.can_host(k, d); });
                    if (best < 0) {
                        found.stuck = k;
                        return found;
                    }
                }
                line_.assign_group(k, best);
                load_[best] = add(load_[best], work(k, best));
            }
        }
        return found;
    }

private:
    Int work(Int k, Int d) const { return mapping_.work[k * problem_.m + d]; }

    std::vector<Int> free_members(Int c) const {
        std::vector<Int> found;
        for (Int at = mapping_.start[c]; at < mapping_.start[c + 1]; ++at)
            if (line_.home[mapping_.members[at]] < 0) found.push_back(mapping_.members[at]);
        return found;
    }

    // The device that the mapping chooses for the cluster in turn `at`, of those with `can`; NONE if there is none.
    template <class Ticks, class Can>
    Int choose(Int at, Ticks&& ticks, Can&& can) {
        const Int m = problem_.m;
        Int best = NONE, least = NEVER;
        for (Int step = 0; step < m; ++step) {
            const Int d = mapping_.wrap ? (at + step) % m : step;
            const Int worth = mapping_.wrap ? step : add(load_[d], ticks(d));
            if (worth < least && can(d)) {
                best = d;
                least = worth;
            }
        }
        return best;
    }

    // The device for a whole cluster, NONE if there is none. Fills `ticks_`.
    Int device_for_all(const std::vector<Int>& members, Int c, Int at) {
        Int memory = 0;
        bool whole = true;
        std::fill(ticks_.begin(), ticks_.end(), 0);
        for (const Int k : members) {
            memory = add(memory, groups_.memory[k]);
            for (Int d = 0; d < problem_.m; ++d) {
                const bool able = groups_.feasible[k * problem_.m + d] && ticks_[d] >= 0;
                ticks_[d] = able ? add(ticks_[d], work(k, d)) : NONE;
            }
            for (Int r = groups_.apart_start[k]; r < groups_.apart_start[k + 1]; ++r) {
                const Int rival = groups_.apart[r], home = line_.home[rival];
                if (home >= 0) ticks_[home] = NONE;
                else if (mapping_.cluster[rival] == c) whole = false;
            }
        }
        if (!whole) return NONE;
        return choose(at, [&](Int d) { return std::max(ticks_[d], Int{0}); },
                      [&](Int d) { return ticks_[d] >= 0 && fits_whole(members, memory, d); });
    }

    // Whether device d has room for the groups, `memory` in all, and budgets leave enough.
    bool fits_whole(const std::vector<Int>& members, Int memory, Int d) {
        const Int room = subtract(line_.room[d], memory);
        if (room < 0) return false;
        if (groups_.budgets.any()) {
            for (const Int k : members) line_.spend(k, d, 1);
            const bool enough = line_.solvent();
            for (const Int k : members) line_.spend(k, d, -1);
            if (!enough) return false;
        }
        if (!groups_.live.on) return true;
        Profile profile = line_.profile(d);
        for (const Int k : members) profile.count(groups_.live, k, 1);
        const bool fits = profile.peak() <= room;
        for (const Int k : members) profile.count(groups_.live, k, -1);
        return fits;
    }

    T& timeline_;
    Line& line_;
    const Problem& problem_;
    const Groups& groups_;
    const Mapping& mapping_;
    Stop& stop_;
    std::vector<Int> load_;   // (m,) ticks of each device
    std::vector<Int> ticks_;  // (m,) ticks of a cluster on each device, NONE if that cannot take it
};

}  // namespace

std::vector<Int> greedy_matching(Ints source, Ints target, Int n) {
    std::vector<bool> taken(n, false);
    std::vector<Int> chosen;
    for (std::size_t e = 0; e < source.size(); ++e) {
        if (taken[source[e]] || taken[target[e]]) continue;
        taken[source[e]] = taken[target[e]] = true;
        chosen.push_back(static_cast<Int>(e));
    }
    return chosen;
}

Mapped map_clusters(Line& line, const Mapping& mapping, Stop& stop) {
    return with_rules(line, [&]<class T>(T& timeline) { return Mapper<T>(timeline, mapping, stop).run(); });
}

Int keep_parts(Line& line, Ints sequence, Ints wanted, Ints start, Ints neighbours, Ints weight, Ints work, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Int m = line.problem.m;
        std::vector<Int> load(m), pull(m);
        for (const Int k : sequence) {
            stop.poll(20);
            if (line.home[k] < 0 && timeline.can_host(k, wanted[k])) line.assign_group(k, wanted[k]);
            if (const Int d = line.home[k]; d >= 0) load[d] = add(load[d], work[k * m + d]);
        }
        for (const Int k : sequence) {
            if (line.home[k] >= 0) continue;
            stop.poll(2 * (m + start[k + 1] - start[k]));
            std::fill(pull.begin(), pull.end(), 0);
            for (Int at = start[k]; at < start[k + 1]; ++at)
                if (const Int home = line.home[neighbours[at]]; home >= 0) pull[home] = add(pull[home], weight[at]);
            Int best = NONE, most = NONE, least = NEVER;
            for (Int d = 0; d < m; ++d) {
                const Int there = add(load[d], work[k * m + d]);
                if ((pull[d] > most || (pull[d] == most && there < least)) && timeline.can_host(k, d)) {
                    best = d;
                    most = pull[d];
                    least = there;
                }
            }
            if (best < 0) return k;
            line.assign_group(k, best);
            load[best] = least;
        }
        return NONE;
    });
}

}  // namespace engine
