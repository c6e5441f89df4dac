// Destructive bounds; the names are those of placeopt.bounding.destructive.
#include "destructive.hpp"

namespace engine {

namespace {

// Pairs of tasks of two clusters that are compared at most; larger clusters count as compatible.
constexpr Int PAIRS = Int{1} << 16;
// Tasks of a cluster for which sets of tasks in an interval are examined at most.
constexpr Int SET = 1024;
// Tasks of a graph in which ancestors are stored at most: 2 MB.
constexpr Int ANCESTORS = 4096;
// Changes of all cases that are recorded at most: 64 MB.
constexpr Int TRAIL = Int{1} << 22;
// Edges that are probed in a case, unless they all are decided.
constexpr std::size_t PROBES = 30;
// An edge whose assumptions both change much divides best.
constexpr Int BALANCE = 16;

}  // namespace

Propagation::Propagation(const Problem& problem, const ClassTimes& times)
    : start(times.head.size()), latest(times.head.size()), cut(problem.e), problem_(problem), times_(times),
      k_(static_cast<Int>(times.capacity.size())), apart_start_(problem.n + 1), queued_(problem.n) {
    const Int n = problem.n, pairs = static_cast<Int>(times.separation.size()) / 2;
    for (const Int v : times.separation) ++apart_start_[v + 1];
    for (Int v = 0; v < n; ++v) apart_start_[v + 1] += apart_start_[v];
    apart_.resize(2 * pairs);
    std::vector<Int> end(apart_start_.begin(), apart_start_.end() - 1);
    for (Int pair = 0; pair < pairs; ++pair) {
        const Int i = times.separation[2 * pair], j = times.separation[2 * pair + 1];
        apart_[end[i]++] = j;
        apart_[end[j]++] = i;
    }

    groups_ = {std::vector<Int>(n), std::vector<Int>(n), std::vector<Int>(n), std::vector<Int>(n)};
    std::vector<Int> first(problem.g, NONE), last(problem.g, NONE);
    Int bytes = 0;
    for (Int v = 0; v < n; ++v) {
        const Int group = problem.group[v];
        if (first[group] == NONE) first[group] = v;
        else groups_.next[last[group]] = v;
        last[group] = v;
        const Int f = groups_.first[v] = first[group];
        groups_.next[v] = f;
        ++groups_.size[f];
        groups_.held[f] += times.memory[v];
        bytes = add(bytes, times.memory[v]);
    }
    for (Int c = 0; c < k_; ++c) {
        Int work = 0;
        for (Int v = 0; v < n; ++v) work = add(work, ticks(v, c));
    }
    effect_.resize(problem.e);
    if (n <= ANCESTORS) find_ancestors();
    reset(0);
}

void Propagation::find_ancestors() {
    const Problem& p = problem_;
    words_ = (p.n + 63) / 64;
    before_.resize(p.n * words_);
    for (const Int v : p.order)
        for (Int at = p.in_start[v]; at < p.in_start[v + 1]; ++at) {
            const Int u = p.edge_source[p.in_edge[at]];
            for (Int word = 0; word < words_; ++word) before_[v * words_ + word] |= before_[u * words_ + word];
            before_[v * words_ + u / 64] |= std::uint64_t{1} << (u % 64);
        }
}

bool Propagation::change(Int& cell, Int value) {
    if (recording_) {
        if (static_cast<Int>(trail_.size()) >= room_) return false;
        trail_.push_back({&cell, cell});
    }
    cell = value;
    return true;
}

void Propagation::enqueue(Int v) {
    if (queued_[v]) return;
    queued_[v] = true;
    queue_.push_back(v);
}

void Propagation::raise_start(Int v, Int c, Int t) {
    if (t > start_on(v, c) && change(start_on(v, c), std::min(t, NEVER_BOUND))) enqueue(v);
}

void Propagation::lower_latest(Int v, Int c, Int t) {
    t = std::max(t, Int{-1});
    if (t < latest_on(v, c) && change(latest_on(v, c), t)) enqueue(v);
}

void Propagation::close(Int v, Int c) {
    stop_->poll(size_[cluster[v]]);
    all_members(v, [&](Int x) {
        raise_start(x, c, NEVER_BOUND);
        return true;
    });
}

bool Propagation::disjoint(Int i, Int j, Int c) const {
    const Int at = i * k_ + c, other = j * k_ + c, p = times_.duration[at], q = times_.duration[other];
    return p == 0 || q == 0 || start[at] + p <= latest[other] || start[other] + q <= latest[at];
}

bool Propagation::parted(Int i, Int from) const {
    const Problem& p = problem_;
    for (Int at = apart_start_[i]; at < apart_start_[i + 1]; ++at)
        if (cluster[apart_[at]] == from) return true;
    for (Int e = p.out_start[i]; e < p.out_start[i + 1]; ++e)
        if (cut[e] && cluster[p.edge_target[e]] == from) return true;
    for (Int at = p.in_start[i]; at < p.in_start[i + 1]; ++at)
        if (const Int e = p.in_edge[at]; cut[e] && cluster[p.edge_source[e]] == from) return true;
    return false;
}

bool Propagation::compatible(Int u, Int w) {
    if (size_[cluster[u]] > size_[cluster[w]]) std::swap(u, w);
    const Int a = cluster[u], b = cluster[w];
    count(size_[a]);
    if (size_[a] * size_[b] > PAIRS) return true;
    const bool apart = !all_members(u, [&](Int i) {
        stop_->poll(problem_.out_start[i + 1] - problem_.out_start[i] + problem_.in_start[i + 1] - problem_.in_start[i]);
        return !parted(i, b);
    });
    if (apart) return false;
    for (Int c = 0; c < k_; ++c) {
        if (closed(u, c) || closed(w, c) || held_[a] + held_[b] > times_.capacity[c]) continue;
        const bool fits = all_members(u, [&](Int i) {
            return all_members(w, [&](Int j) {
                count(1);
                return disjoint(i, j, c);
            });
        });
        if (fits) return true;
    }
    return false;
}

void Propagation::merge(Int u, Int w) {
    if (size_[cluster[u]] < size_[cluster[w]]) std::swap(u, w);
    const Int a = cluster[u], b = cluster[w], cells = (k_ + 1) * (size_[a] + size_[b]);
    if (recording_ && room_ - static_cast<Int>(trail_.size()) < cells + 4) return;
    stop_->poll(cells);
    change(size_[a], size_[a] + size_[b]);
    change(held_[a], held_[a] + held_[b]);
    all_members(w, [&](Int x) { return change(cluster[x], a); });
    const Int after = next_[u];
    change(next_[u], next_[w]);
    change(next_[w], after);
    // A class that is closed for a task of one cluster, is closed for all.
    for (Int c = 0; c < k_; ++c) {
        if (!closed(u, c) && !closed(w, c) && held_[a] <= times_.capacity[c]) continue;
        all_members(u, [&](Int x) { return closed(x, c) || change(start_on(x, c), NEVER_BOUND); });
    }
    all_members(u, [&](Int x) {
        enqueue(x);
        return true;
    });
}

void Propagation::separate(Int e) {
    if (!change(cut[e], 1)) return;
    enqueue(problem_.edge_source[e]);
    enqueue(problem_.edge_target[e]);
}

void Propagation::order_members(Int v) {
    const Int members = size_[cluster[v]];
    for (Int c = 0; c < k_; ++c) {
        const Int p = ticks(v, c);
        if (p == 0) continue;
        earlier_.clear();
        later_.clear();
        for (Int j = next_[v]; j != v && !closed(v, c); j = next_[j]) {
            const Int q = ticks(j, c);
            count(1);
            if (!disjoint(v, j, c)) {
                close(v, c);
            } else if (q > 0 && (start_on(j, c) + q > latest_on(v, c) || descends(j, v))) {
                raise_start(j, c, start_on(v, c) + p);
                later_.emplace_back(latest_on(j, c) + q, q);
            } else if (q > 0 && (start_on(v, c) + p > latest_on(j, c) || descends(v, j))) {
                lower_latest(j, c, latest_on(v, c) - q);
                earlier_.emplace_back(-start_on(j, c), q);
            }
        }
        if (closed(v, c)) continue;
        // All that start after some tick, and precede v, delay it; likewise backwards.
        std::sort(earlier_.begin(), earlier_.end());
        std::sort(later_.begin(), later_.end());
        Int before = 0, after = p;
        for (const auto& [start, q] : earlier_) raise_start(v, c, (before += q) - start);
        for (const auto& [end, q] : later_) lower_latest(v, c, end - (after += q));
        if (members >= 3 && members <= SET && !closed(v, c) && overfull(v, c)) close(v, c);
    }
}

bool Propagation::overfull(Int v, Int c) {
    const Int begin = start_on(v, c);
    return !all_members(v, [&](Int j) {
        const Int end = latest_on(j, c) + ticks(j, c);
        Int work = 0;
        all_members(v, [&](Int x) {
            if (start_on(x, c) >= begin && latest_on(x, c) + ticks(x, c) <= end) work += ticks(x, c);
            return true;
        });
        count(size_[cluster[v]]);
        return work <= end - begin || end < begin;
    });
}

Int Propagation::arrival(Int e, Int c) const {
    const Int u = problem_.edge_source[e];
    Int earliest = INT64_MAX;
    for (Int a = 0; a < k_; ++a) {
        const Int end = closed(u, a) ? NEVER_BOUND : start[u * k_ + a] + ticks(u, a);
        earliest = std::min(earliest, end + moving(e, a, c));
    }
    return earliest;
}

bool Propagation::relate(Int e) {
    const Int u = problem_.edge_source[e], w = problem_.edge_target[e];
    count(k_ * k_);
    const bool one = cluster[u] == cluster[w], apart = cut[e];
    if (one && apart) return false;
    bool late = true;  // whether the data of u comes too late from another device
    for (Int c = 0; c < k_; ++c) {
        if (closed(w, c)) continue;
        Int t = one ? NEVER_BOUND : std::min(arrival(e, c), NEVER_BOUND);
        late = late && t > latest_on(w, c);
        if (!apart) t = std::min(t, start_on(u, c) + ticks(u, c));
        raise_start(w, c, t);
    }
    for (Int a = 0; a < k_; ++a) {
        if (closed(u, a)) continue;
        Int t = -1;
        for (Int c = 0; c < k_ && !one; ++c)
            if (!closed(w, c)) t = std::max(t, latest_on(w, c) - moving(e, a, c));
        if (!apart && !closed(w, a)) t = std::max(t, latest_on(w, a));
        lower_latest(u, a, t - ticks(u, a));
    }
    if (one || apart) return one || !late;
    if (!late) return true;
    if (!compatible(u, w)) return false;
    merge(u, w);
    return true;
}

bool Propagation::examine(Int v) {
    const Problem& p = problem_;
    for (Int c = 0; c < k_; ++c)
        if (!closed(v, c) && start_on(v, c) > latest_on(v, c)) close(v, c);
    if (next_[v] != v) order_members(v);
    for (Int e = p.out_start[v]; e < p.out_start[v + 1]; ++e)
        if (!relate(e)) return false;
    for (Int at = p.in_start[v]; at < p.in_start[v + 1]; ++at)
        if (!relate(p.in_edge[at])) return false;
    const auto part = [&](Int e) {
        if (!decided(e) && !compatible(p.edge_source[e], p.edge_target[e])) separate(e);
    };
    for (Int e = p.out_start[v]; e < p.out_start[v + 1]; ++e) part(e);
    for (Int at = p.in_start[v]; at < p.in_start[v + 1]; ++at) part(p.in_edge[at]);
    bool runs = false;
    for (Int c = 0; c < k_; ++c) runs = runs || !closed(v, c);
    return runs;
}

bool Propagation::propagate(Int limit) {
    steps_ = 0;
    bool possible = true;
    while (!queue_.empty()) {
        const Int v = queue_.front();
        queue_.pop_front();
        queued_[v] = false;
        stop_->poll(1);
        if (possible && steps_ <= limit) possible = examine(v);
    }
    return possible;
}

bool Propagation::assume(Int e, bool apart) {
    const Int u = problem_.edge_source[e], w = problem_.edge_target[e];
    if (apart) separate(e);
    else if (compatible(u, w)) merge(u, w);
    else return false;
    return true;
}

void Propagation::undo(Int changes) {
    for (; static_cast<Int>(trail_.size()) > changes; trail_.pop_back()) *trail_.back().cell = trail_.back().old;
}

Int Propagation::consequences(Int e, bool apart) {
    const bool outer = recording_;
    const Int before = static_cast<Int>(trail_.size());
    recording_ = true;
    room_ = before + limits_.changes;
    const bool possible = assume(e, apart) && propagate(limits_.probe);
    const Int changes = static_cast<Int>(trail_.size()) - before;
    undo(before);
    recording_ = outer;
    room_ = TRAIL;
    return possible ? changes : NONE;
}

Propagation::Probe Propagation::probe(Int e) {
    const Int apart = consequences(e, true), together = apart == NONE ? NONE : consequences(e, false);
    if (apart != NONE && together != NONE) {
        effect_[e] = BALANCE * std::min(apart, together) + std::max(apart, together);
        return Probe::undecided;
    }
    return assume(e, apart != NONE) && propagate(limits_.whole) ? Probe::decided : Probe::refuted;
}

std::vector<Int> Propagation::undecided() {
    std::vector<Int> edges, slack(problem_.e);
    for (Int e = 0; e < problem_.e; ++e) {
        if (decided(e)) continue;
        count(k_ * k_);
        edges.push_back(e);
        const Int w = problem_.edge_target[e];
        slack[e] = INT64_MIN;
        for (Int c = 0; c < k_; ++c) slack[e] = std::max(slack[e], closed(w, c) ? -1 : latest_on(w, c) - arrival(e, c));
    }
    std::sort(edges.begin(), edges.end(), [&](Int e, Int f) {
        stop_->poll(5);
        return slack[e] != slack[f] ? slack[e] < slack[f] : e < f;
    });
    return edges;
}

void Propagation::reset(Int makespan) {
    start.assign(times_.head.begin(), times_.head.end());
    for (std::size_t at = 0; at < start.size(); ++at)
        latest[at] = start[at] >= NEVER_BOUND ? -1 : makespan - times_.tail[at] - times_.duration[at];
    std::fill(cut.begin(), cut.end(), 0);
    cluster = groups_.first;
    next_ = groups_.next;
    size_ = groups_.size;
    held_ = groups_.held;
    queue_.assign(problem_.order.begin(), problem_.order.end());
    std::fill(queued_.begin(), queued_.end(), true);
    trail_.clear();
    room_ = TRAIL;
    recording_ = false;
}

bool Propagation::refuted(Int most) {
    Int chosen = NONE;
    for (bool progress = true; progress;) {
        progress = false;
        chosen = NONE;
        std::vector<Int> edges = undecided();
        if (recording_ && edges.size() > PROBES) edges.resize(PROBES);
        for (const Int e : edges) {
            if (decided(e)) continue;
            const Probe found = probe(e);
            if (found == Probe::refuted) return true;
            progress = progress || found == Probe::decided;
        }
        for (const Int e : edges)
            if (!decided(e) && (chosen == NONE || effect_[e] > effect_[chosen])) chosen = e;
        progress = progress && (!recording_ || chosen == NONE);
    }
    if (chosen == NONE || cases >= most) return false;
    const bool outer = recording_;
    const Int before = static_cast<Int>(trail_.size());
    bool all = true;
    for (const bool apart : {true, false}) {
        ++cases;
        recording_ = true;
        all = !assume(chosen, apart) || !propagate(limits_.whole) || refuted(most);
        undo(before);
        recording_ = outer;
        if (!all) break;
    }
    return all;
}

bool Propagation::refutes(Int makespan, Int most, const Limits& limits, Stop& stop) {
    limits_ = limits;
    stop_ = &stop;
    reset(makespan);
    cases = 1;
    return !propagate(limits.whole) || (most > 0 && refuted(most));
}

}  // namespace engine
