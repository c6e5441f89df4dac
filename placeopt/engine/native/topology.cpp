// The partial topology of a growing placement.
#include "submodular.hpp"

#include <bit>

namespace engine {

Topology::Topology(const Problem& problem, Ints key)
    : device(problem.n, NONE), parallel(problem.n * problem.m), total(problem.n), raised(problem.m), problem_(&problem), key_(key),
      position_(problem.n), digest_(problem.n), fresh_(problem.n), depends_(problem.n), slot_(problem.n, NONE),
      waiting_(problem.n), after_(problem.n), before_(problem.n), risen_(problem.n), marked_(problem.n), bits_(problem.n), row_(1) {
    const Int n = problem.n;
    first_.assign(std::bit_ceil(static_cast<std::uint64_t>(std::max(2 * n, Int{2}))), NONE);
    for (Int i = 0; i < n; ++i) {
        position_[problem.order[i]] = i;
        waiting_[i] = problem.out_start[i + 1] - problem.out_start[i];
    }
    for (Int i = n; i-- > 0;) insert(i);
}

// Adds task u to the bucket of its hash.
void Topology::insert(Int u) {
    Int& head = bucket(digest_[u]);
    after_[u] = head;
    before_[u] = NONE;
    if (head >= 0) before_[head] = u;
    head = u;
}

void Topology::remove(Int u) {
    const Int before = before_[u], after = after_[u];
    (before >= 0 ? after_[before] : bucket(digest_[u])) = after;
    if (after >= 0) before_[after] = before;
}

// Counts a task on d as parallel (change 1), or no longer parallel (-1), to the unplaced tasks with this hash. Its ancestors,
// which the last `mark_ancestors` marked with this bit, are excluded.
void Topology::count_parallel(Int digest, Int d, Int change, Int bit) {
    bool met = false;
    for (Int u = bucket(digest); u >= 0; u = after_[u]) {
        if (digest_[u] != digest || (marked_[u] == stamp_ && (bits_[u] >> bit & 1))) continue;
        parallel[d * problem_->n + u] += static_cast<std::int32_t>(change);
        total[u] += change;
        met = true;
        if (change > 0 && risen_[u] != placed_) {
            risen_[u] = placed_;
            gained.push_back(u);
        }
    }
    if (met && change > 0) ++raised[d];
}

// The earliest position of the unplaced tasks with this hash; n if there are none.
Int Topology::earliest_of(Int digest) {
    Int earliest = problem_->n;
    for (Int u = bucket(digest); u >= 0; u = after_[u])
        if (digest_[u] == digest) earliest = std::min(earliest, position_[u]);
    return earliest;
}

void Topology::mark(Int task, std::uint64_t reached) {
    if (marked_[task] != stamp_) {
        marked_[task] = stamp_;
        bits_[task] = 0;
    }
    bits_[task] |= reached;
}

// Marks the ancestors of the placed tasks of `queue_` that reach them through unplaced tasks, one bit for each. The search ends
// at the earliest position.
void Topology::mark_ancestors(Int earliest) {
    ++stamp_;
    Int at = -1;
    for (std::size_t k = 0; k < queue_.size(); ++k) {
        at = std::max(at, position_[queue_[k]]);
        for (Int r = problem_->in_start[queue_[k]]; r < problem_->in_start[queue_[k] + 1]; ++r)
            mark(problem_->in_source[r], std::uint64_t{1} << k);
    }
    while (at > earliest) {
        const Int u = problem_->order[--at];
        if (marked_[u] != stamp_ || device[u] >= 0) continue;
        for (Int r = problem_->in_start[u]; r < problem_->in_start[u + 1]; ++r) mark(problem_->in_source[r], bits_[u]);
    }
}

// Counts the placed tasks of `moved_` as parallel (change 1), or no longer parallel (-1), to unplaced tasks.
void Topology::recount_moved(Int change) {
    const Int n = problem_->n;
    Int earliest = n;
    queue_.clear();
    for (std::size_t k = 0; k < moved_.size(); ++k) {
        const Int p = moved_[k];
        if (device[p] >= 0) {
            if (const Int position = earliest_of(digest_[p]); position < n) {
                earliest = std::min(earliest, position);
                queue_.push_back(p);
            }
        }
        if (queue_.size() == BITS || (k + 1 == moved_.size() && !queue_.empty())) {
            mark_ancestors(earliest);
            for (std::size_t t = 0; t < queue_.size(); ++t)
                count_parallel(digest_[queue_[t]], device[queue_[t]], change, static_cast<Int>(t));
            queue_.clear();
            earliest = n;
        }
    }
}

// Removes the dependencies that w, a dependent of v, has through v only; returns whether there are any.
bool Topology::drop_lost(Int v, Int w) {
    ++compared;
    std::uint64_t rest = 0;
    for (Int k = 0; k < words_; ++k) rest |= row_[k] = word(w, k) & word(v, k);
    for (Int r = problem_->in_start[w]; r < problem_->in_start[w + 1]; ++r) {
        if (rest == 0) return false;
        const Int q = problem_->in_source[r];
        if (device[q] >= 0) {
            if (slot_[q] >= 0) row_[slot_[q] / BITS] &= ~(std::uint64_t{1} << slot_[q] % BITS);
        } else if (q != v) {
            rest = 0;
            for (Int k = 0; k < words_; ++k) rest |= row_[k] &= ~word(q, k);
        }
    }
    bool lossy = false;
    for (Int k = 0; k < words_; ++k) {
        word(w, k) &= ~row_[k];
        for (std::uint64_t lost = row_[k]; lost != 0; lost &= lost - 1) {
            lossy = true;
            fresh_[w] ^= key_[owner_[k * BITS + std::countr_zero(lost)]];
        }
    }
    return lossy;
}

// Finds the dependents of v in topological order (`moved_`), and updates their dependencies (`fresh_`).
void Topology::update_dependents(Int v) {
    stamp_ += 2;
    const Int stamp = stamp_;  // stamp - 1: dependent of v; stamp: moreover, a producer is v or lost something
    const Int slot = slot_[v];
    Int highest = position_[v];
    bool seen = false;
    for (Int k = 0; k < words_; ++k) seen = seen || word(v, k) != 0;
    moved_.clear();
    for (Int at = position_[v]; at <= highest; ++at) {
        const Int u = problem_->order[at];
        bool lossy = seen;
        if (u != v) {
            if (marked_[u] < stamp - 1) continue;
            moved_.push_back(u);
            fresh_[u] = digest_[u] ^ key_[v];
            lossy = marked_[u] == stamp && drop_lost(v, u);
            if (slot >= 0) word(u, slot / BITS) |= std::uint64_t{1} << slot % BITS;
            if (device[u] >= 0) continue;
        }
        for (Int e = problem_->out_start[u]; e < problem_->out_start[u + 1]; ++e) {
            const Int s = problem_->edge_target[e];
            marked_[s] = std::max(marked_[s], lossy ? stamp : stamp - 1);
            highest = std::max(highest, position_[s]);
        }
    }
}

// Doubles the columns of `depends_`.
void Topology::widen() {
    std::vector<std::uint64_t> wider(2 * depends_.size());
    for (Int i = 0; i < problem_->n; ++i) std::copy_n(&depends_[i * stride_], stride_, &wider[2 * i * stride_]);
    depends_ = std::move(wider);
    stride_ *= 2;
    row_.resize(stride_);
}

// Assigns a bit to a task, as long as unplaced tasks may depend on it.
void Topology::take_slot(Int v) {
    Int slot = static_cast<Int>(owner_.size());
    if (!free_.empty()) {
        slot = free_.back();
        free_.pop_back();
    } else {
        owner_.push_back(v);
        words_ = slot / BITS + 1;
        if (words_ > stride_) widen();
    }
    slot_[v] = slot;
    owner_[slot] = v;
}

// Releases the bit of x, all of whose consumers are placed: no other task can depend on it.
void Topology::drop_slot(Int x) {
    const Int slot = slot_[x];
    for (Int e = problem_->out_start[x]; e < problem_->out_start[x + 1]; ++e)
        word(problem_->edge_target[e], slot / BITS) &= ~(std::uint64_t{1} << slot % BITS);
    slot_[x] = NONE;
    free_.push_back(slot);
}

void Topology::place(Int v, Int d) {
    ++placed_;
    gained.clear();
    std::fill(raised.begin(), raised.end(), 0);
    remove(v);
    if (const Int earliest = earliest_of(digest_[v]); earliest < problem_->n) {
        queue_.assign(1, v);
        mark_ancestors(earliest);
        count_parallel(digest_[v], d, 1, 0);
    }
    if (waiting_[v] > 0) take_slot(v);
    update_dependents(v);
    recount_moved(-1);
    device[v] = d;
    for (const Int w : moved_) {
        if (device[w] >= 0) {
            digest_[w] = fresh_[w];
            continue;
        }
        remove(w);
        digest_[w] = fresh_[w];
        insert(w);
        if (total[w] > 0) {
            total[w] = 0;
            for (Int i = 0; i < problem_->m; ++i) parallel[i * problem_->n + w] = 0;
        }
    }
    recount_moved(1);
    for (Int r = problem_->in_start[v]; r < problem_->in_start[v + 1]; ++r) {
        const Int q = problem_->in_source[r];
        if (--waiting_[q] == 0 && device[q] >= 0) drop_slot(q);
    }
}

}  // namespace engine
