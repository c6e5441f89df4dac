#include "chronological.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace engine {

namespace {

template <class Body>
void each(uint64_t set, const Body& body) {
    for (; set; set &= set - 1) body(static_cast<Int>(std::countr_zero(set)));
}

void append_number(std::string& key, Int value) {
    auto rest = static_cast<uint64_t>(value);
    for (; rest >= 128; rest >>= 7) key.push_back(static_cast<char>((rest & 127) | 128));
    key.push_back(static_cast<char>(rest));
}

}  // namespace

Chronological::Chronological(const IdenticalDevices& given, Int states)
    : begin(given.duration.size()), device(given.duration.size()), n_(static_cast<Int>(given.duration.size())), m_(given.devices),
      duration_(given.duration.begin(), given.duration.end()), start_(given.start.begin(), given.start.end()),
      target_(given.target.begin(), given.target.end()), transfer_(given.transfer.begin(), given.transfer.end()), before_(n_),
      parents_(n_), order_(topological_order(given.start, given.target)), free_(m_), arrival_(n_ * m_), head_(n_), states_(states) {
    for (Int u = 0; u < n_; ++u)
        for (Int e = start_[u]; e < start_[u + 1]; ++e) parents_[target_[e]] |= Set{1} << u;
    before_ = parents_;
    for (const Int ticks : duration_) unit_ = std::gcd(unit_, ticks);
    unit_ = std::max<Int>(unit_, 1);
    find_tails();
    find_twins();
    by_deadline_ = order_;
    std::stable_sort(by_deadline_.begin(), by_deadline_.end(),
                     [&](Int a, Int b) { return tail_[a] - duration_[a] > tail_[b] - duration_[b]; });
}

// A successor either runs on the device of the task, one after the other, or has to wait for its transfer.
void Chronological::find_tails() {
    tail_.assign(n_, 0);
    std::vector<Set> below(n_);
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
        const Int u = *at;
        std::vector<std::pair<Int, Int>> child;  // ticks behind each successor's own end, and the edge
        Int low = 0, high = 0, work = 0;
        for (Int e = start_[u]; e < start_[u + 1]; ++e) {
            const Int v = target_[e];
            below[u] |= below[v] | Set{1} << v;
            child.emplace_back(tail_[v] - duration_[v], e);
            low = std::max(low, tail_[v]);
            high = std::max(high, tail_[v] + transfer_[e]);
        }
        each(below[u], [&](Int v) { work += duration_[v]; });
        low = std::max(low, (work + m_ - 1) / m_);
        std::sort(child.rbegin(), child.rend());
        const auto enough = [&](Int ticks) {
            Int busy = 0;
            for (const auto& [behind, e] : child) {
                if (transfer_[e] + tail_[target_[e]] <= ticks) continue;
                busy += duration_[target_[e]];
                if (busy + behind > ticks) return false;
            }
            return true;
        };
        while (low < high) {
            const Int middle = low + (high - low) / 2;
            if (enough(middle)) high = middle;
            else low = middle + 1;
        }
        tail_[u] = duration_[u] + low;
    }
}

// Twins have equal predecessors, and equal trees of tasks that depend on nothing else.
void Chronological::find_twins() {
    using Shape = std::vector<Int>;
    std::map<Shape, Int> known;
    std::vector<Int> shape(n_);
    std::vector<Shape> above(n_);
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
        const Int u = *at;
        std::vector<Shape> parts;
        for (Int e = start_[u]; e < start_[u + 1]; ++e) {
            const Int v = target_[e];
            const bool alone = std::popcount(parents_[v]) == 1;
            parts.push_back({alone, alone ? shape[v] : v, transfer_[e]});
        }
        std::sort(parts.begin(), parts.end());
        Shape whole{duration_[u]};
        for (const Shape& part : parts) whole.insert(whole.end(), part.begin(), part.end());
        shape[u] = known.emplace(whole, static_cast<Int>(known.size())).first->second;
    }
    for (Int u = 0; u < n_; ++u)
        for (Int e = start_[u]; e < start_[u + 1]; ++e) above[target_[e]].insert(above[target_[e]].end(), {u, transfer_[e]});
    std::map<std::pair<Int, Shape>, Int> last;
    for (Int v = 0; v < n_; ++v) {
        const auto [found, fresh] = last.try_emplace({shape[v], above[v]}, v);
        if (!fresh) before_[v] |= Set{1} << found->second;
        found->second = v;
    }
}

Outcome Chronological::search(Int makespan, Int nodes, Stop& stop) {
    makespan_ = makespan;
    nodes_ = visited + nodes;
    stop_ = &stop;
    left_ = n_ == 64 ? ~Set{0} : (Set{1} << n_) - 1;
    std::fill(free_.begin(), free_.end(), 0);
    std::fill(arrival_.begin(), arrival_.end(), 0);
    return descend(0);
}

Outcome Chronological::descend(Int last) {
    if (!left_) return Outcome::FOUND;
    if (visited >= nodes_ || stop_->over(100 * m_ + 10 * n_ * m_)) return Outcome::LIMIT;
    ++visited;
    if (hopeless(last)) return Outcome::NONE;
    std::string state = key();
    const auto known = refuted_.find(state);
    if (known != refuted_.end() && known->second <= last) return Outcome::NONE;
    std::vector<Int> saved;
    for (const Choice& choice : choices(last)) {
        const auto [v, p, at] = choice;
        const Int was = free_[p], end = at + duration_[v];
        saved.clear();
        for (Int e = start_[v]; e < start_[v + 1]; ++e) {
            Int* row = &arrival_[target_[e] * m_];
            saved.insert(saved.end(), row, row + m_);
            for (Int q = 0; q < m_; ++q) row[q] = std::max(row[q], q == p ? end : end + transfer_[e]);
        }
        left_ &= ~(Set{1} << v);
        free_[p] = end;
        begin[v] = at;
        device[v] = p;
        const Outcome outcome = descend(at);
        free_[p] = was;
        left_ |= Set{1} << v;
        for (Int e = start_[v + 1] - 1; e >= start_[v]; --e)
            std::copy_n(&saved[(e - start_[v]) * m_], m_, &arrival_[target_[e] * m_]);
        if (outcome != Outcome::NONE) return outcome;
    }
    if (known != refuted_.end()) {
        // The map may have grown since.
        Int& earliest = refuted_[state];
        earliest = std::min(earliest, last);
    } else if (static_cast<Int>(refuted_.size()) < states_) refuted_.emplace(std::move(state), last);
    return Outcome::NONE;
}

std::vector<Chronological::Choice> Chronological::choices(Int last) const {
    std::vector<Choice> found;
    std::vector<Int> distinct;
    for (Int p = 0; p < m_; ++p)
        if (std::none_of(distinct.begin(), distinct.end(), [&](Int q) { return same_device(p, q); })) distinct.push_back(p);
    each(left_, [&](Int v) {
        if (before_[v] & left_) return;
        for (const Int p : distinct) {
            const Choice choice{v, p, clipped(v, p)};
            if (choice.begin >= last && choice.begin + tail_[v] <= makespan_ && !leaves_room(choice)) found.push_back(choice);
        }
    });
    std::stable_sort(found.begin(), found.end(), [&](const Choice& a, const Choice& b) {
        return std::pair(a.begin, -tail_[a.task]) < std::pair(b.begin, -tail_[b.task]);
    });
    return found;
}

bool Chronological::same_device(Int p, Int q) const {
    bool same = free_[p] == free_[q];
    each(left_, [&](Int v) { same = same && clipped(v, p) == clipped(v, q); });
    return same;
}

// Whether a task can run in the gap before the choice, and so early that its data is nowhere later than if it ran after it.
bool Chronological::leaves_room(const Choice& choice) const {
    bool found = false;
    each(left_ & ~(Set{1} << choice.task), [&](Int w) {
        if (found || parents_[w] & left_) return;
        const Int end = clipped(w, choice.device) + duration_[w];
        if (duration_[w] == 0 || end > choice.begin) return;
        for (Int e = start_[w]; e < start_[w + 1]; ++e)
            if (end + transfer_[e] > choice.begin + duration_[w]) return;
        found = true;
    });
    return found;
}

// Whether a task, or the tasks that only one device can run in time, must be late.
bool Chronological::hopeless(Int last) {
    std::vector<Int> busy(m_, -1);
    for (const Int v : order_) {
        if (!(left_ >> v & 1)) continue;
        Int least = INT64_MAX;
        for (Int p = 0; p < m_; ++p) least = std::min(least, clipped(v, p));
        head_[v] = std::max(least, last);
        each(parents_[v] & left_, [&](Int u) { head_[v] = std::max(head_[v], head_[u] + duration_[u]); });
        if (head_[v] + tail_[v] > makespan_) return true;
    }
    for (const Int v : by_deadline_) {
        if (!(left_ >> v & 1)) continue;
        Int only = -1, open = 0;
        for (Int p = 0; p < m_; ++p)
            if (std::max(clipped(v, p), head_[v]) + tail_[v] <= makespan_) {
                only = p;
                ++open;
            }
        if (open == 0) return true;
        if (open > 1) continue;
        busy[only] = (busy[only] < 0 ? std::max(free_[only], last) : busy[only]) + duration_[v];
        if (busy[only] + tail_[v] - duration_[v] > makespan_) return true;
    }
    return overfull(last);
}

// Whether the devices cannot share the work that is left: each takes a sum of durations that fits until the makespan.
bool Chronological::unshared(Ints open) {
    Int work = 0, room = 0;
    each(left_, [&](Int v) { work += duration_[v]; });
    const auto length = static_cast<std::size_t>(std::min(makespan_ / unit_, MOST_UNITS)) + 1;
    sums_.assign((length + 63) / 64, 0);
    sums_[0] = 1;
    each(left_, [&](Int v) {
        const auto ticks = static_cast<std::size_t>(duration_[v] / unit_), words = ticks / 64, bits = ticks % 64;
        for (std::size_t w = sums_.size(); w-- > words;) {
            Set moved = sums_[w - words] << bits;
            if (bits && w > words) moved |= sums_[w - words - 1] >> (64 - bits);
            sums_[w] |= moved;
        }
    });
    for (const Int from : open) {
        Int units = std::max<Int>(makespan_ - from, 0) / unit_;
        if (units <= MOST_UNITS)
            while (!(sums_[units / 64] >> (units % 64) & 1)) --units;
        room += units * unit_;
    }
    return work > room;
}

// Whether tasks that must run within an interval need more time than the devices have in it.
bool Chronological::overfull(Int last) {
    std::vector<Int> open(m_, INT64_MAX), heads;
    each(left_, [&](Int v) {
        heads.push_back(head_[v]);
        for (Int p = 0; p < m_; ++p) open[p] = std::min(open[p], std::max(head_[v], clipped(v, p)));
    });
    for (Int p = 0; p < m_; ++p) open[p] = std::max(open[p], last);
    if (unshared(open)) return true;
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    for (const Int from : heads) {
        Int work = 0;
        for (const Int v : by_deadline_) {
            if (!(left_ >> v & 1) || head_[v] < from) continue;
            work += duration_[v];
            const Int until = makespan_ - tail_[v] + duration_[v];
            Int room = 0;
            for (Int p = 0; p < m_; ++p) room += std::max<Int>(until - std::max(from, open[p]), 0);
            if (work > room) return true;
        }
    }
    return false;
}

// What the future depends on besides the last start: the tasks that are left, and when each device can run them.
std::string Chronological::key() const {
    std::vector<std::string> columns(m_);
    for (Int p = 0; p < m_; ++p) {
        append_number(columns[p], free_[p]);
        each(left_, [&](Int v) { append_number(columns[p], clipped(v, p) - free_[p]); });
    }
    std::sort(columns.begin(), columns.end());
    std::string found(reinterpret_cast<const char*>(&left_), sizeof left_);
    for (const std::string& column : columns) found += column;
    return found;
}

}  // namespace engine
