// Offsets within a capacity, by a search over canonical allocations (M. D. Moffitt, MiniMalloc: A lightweight memory allocator for
// hardware-accelerated machine learning, ASPLOS 2023, doi:10.1145/3623278.3624752), with conflicts that skip decisions.
//
//   canonical   in any allocation, buffers can sink until each rests on another one, on a given one or on the bottom. In the order of
//               offsets, the next buffer lies at its `low`: the least offset above all overlapping buffers before it.
//   dominance   a buffer that begins above the end of another one that could be next needs not be next
//   lifted      a buffer that was tried as next, and failed, lies on one that is not placed yet
//   sections    above the lowest buffer that is not placed yet, all that are not placed fit below the capacity in each section
//   parts       once no buffer is live at a border of sections, both sides are independent
//   conflicts   a failure states the placed buffers `fixed` that cause it, and the others `free` that do not fit above them. Where the
//               buffer placed last is not among its causes, no other choice for it helps (P. Prosser, Hybrid algorithms for the
//               constraint satisfaction problem, Computational Intelligence 9, 1993, doi:10.1111/j.1467-8640.1993.tb00310.x).
//
// Conflicts are new here, and so is the bound of lifted buffers. A conflict claims: with the buffers `fixed` where they are, no
// offsets from `low` by `fixed` up hold the buffers `free`.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "allocation.hpp"

namespace engine {

namespace {

using Word = std::uint64_t;

class Set {
public:
    explicit Set(Int n = 0) : words_((n + 63) / 64) {}
    void put(Int b) { words_[b >> 6] |= Word{1} << (b & 63); }
    void drop(Int b) { words_[b >> 6] &= ~(Word{1} << (b & 63)); }
    bool operator==(const Set&) const = default;
    bool has(Int b) const { return words_[b >> 6] >> (b & 63) & 1; }
    // Whether an entry is new.
    bool join(const Set& other) {
        Word added = 0;
        for (std::size_t k = 0; k < words_.size(); ++k) added |= other.words_[k] & ~words_[k], words_[k] |= other.words_[k];
        return added != 0;
    }
    template <class Each>
    void each(Each&& visit) const {
        for (std::size_t k = 0; k < words_.size(); ++k)
            for (Word left = words_[k]; left != 0; left &= left - 1) visit(static_cast<Int>(k) * 64 + std::countr_zero(left));
    }

private:
    std::vector<Word> words_;
};

struct Conflict {
    Set fixed, free;
    explicit Conflict(Int n = 0) : fixed(n), free(n) {}
    bool join(const Conflict& other) {
        fixed.join(other.fixed);
        return free.join(other.free);
    }
};

class Search {
public:
    Search(const Buffers& buffers, Ints order, Int capacity, Int most, Stop& stop)
        : buffers_(buffers), allowed_(buffers), capacity_(capacity), most_(most), stop_(stop), n_(buffers.count()),
          over_(neighbours(buffers)) {
        Int sections = 0;
        for (const Int s : buffers.last) sections = std::max(sections, s);
        waiting_.resize(sections), spare_.resize(sections), given_.resize(sections);
        for (Int width = 1; width <= sections; width *= 2) lowest_.emplace_back(sections);
        rank_.resize(n_), low_.resize(n_), once_.resize(n_), twice_.resize(n_), level_.resize(n_), taken_.resize(n_);
        failed_.assign(n_, NONE), offset.assign(n_, NONE), placed_.assign(n_, 0);
        for (Int k = 0; k < n_; ++k) rank_[order[k]] = k;
        std::vector<Int> items;
        for (Int b = 0; b < n_; ++b) {
            taken_[b] = buffers.taken(b);
            if (buffers.fixed[b] >= 0) {
                offset[b] = buffers.fixed[b];
                sound_ = sound_ && offset[b] + buffers.size[b] <= capacity;
                for (Int s = buffers.first[b]; s < buffers.last[b]; ++s) given_[s].push_back(b);
                continue;
            }
            items.push_back(b);
            low_[b] = allowed_.settle(b, 0);
            for (Int s = buffers.first[b]; s < buffers.last[b]; ++s) {
                waiting_[s] += taken_[b];
                spare_[s] = std::max(spare_[s], taken_[b] - buffers.size[b]);
            }
        }
        std::stable_sort(items.begin(), items.end(), [&](Int a, Int b) { return buffers.first[a] < buffers.first[b]; });
        next_.assign(n_ + 1, n_), previous_.assign(n_ + 1, n_);
        for (const Int b : items) link(b, previous_[n_], n_);
        items_ = static_cast<Int>(items.size());
    }

    Fitted run() {
        Conflict none(n_);
        bool fits = sound_;
        if (fits) fits = run_parts({next_[n_], items_}, none);
        Fitted found;
        found.fit = fits ? Fit::FOUND : ended_ ? Fit::LIMIT : Fit::REFUTED;
        found.nodes = nodes_;
        found.offset = std::move(offset);
        return found;
    }

private:
    // Neighbours in the list of buffers that are not placed.
    struct Run {
        Int begin, count;
    };
    template <class Each>
    void each(const Run& run, Each&& visit) const {
        Int b = run.begin;
        for (Int k = 0; k < run.count; ++k, b = next_[b]) visit(b);
    }
    void link(Int b, Int previous, Int next) {
        previous_[b] = previous, next_[b] = next;
        next_[previous] = previous_[next] = b;
    }

    const Buffers& buffers_;
    Allowed allowed_;
    Int capacity_, most_;
    Stop& stop_;
    Int n_, items_ = 0, nodes_ = 0;
    bool sound_ = true, ended_ = false;
    std::vector<Int> rank_, taken_;
    std::vector<Int> next_, previous_;  // a list, which n_ closes, of the buffers that are not placed
    std::vector<Int> sequence_;         // those that are placed, in this order
    std::vector<Int> waiting_, spare_;       // of each section: bytes of buffers that are not placed; the most that rounding adds to one
    std::vector<std::vector<Int>> given_;    // of each section: buffers with given offsets
    std::vector<Int> low_;                   // least offset by what is placed
    std::vector<Int> once_, twice_;          // the same by support of lifted buffers
    std::vector<std::vector<Int>> lowest_;   // the least of them for 1, 2, 4, ... sections from each one on
    std::vector<Int> failed_;                // conflict of a buffer that failed at its low; NONE for others
    std::vector<Int> level_;                 // when a buffer was placed
    std::vector<char> placed_;
    const std::vector<std::vector<std::int32_t>> over_;  // buffers that share time with each
    std::vector<std::pair<Int*, Int>> changes_;
    std::vector<Conflict> conflicts_;

public:
    std::vector<Int> offset;

private:
    void set(Int& place, Int value) {
        changes_.emplace_back(&place, place);
        place = value;
    }
    void undo(std::size_t changes, std::size_t placed) {
        for (; changes_.size() > changes; changes_.pop_back()) *changes_.back().first = changes_.back().second;
        for (; sequence_.size() > placed; sequence_.pop_back()) {
            const Int b = sequence_.back();
            placed_[b] = 0;
            link(b, previous_[b], next_[b]);
        }
    }
    Int above(Int b) const { return offset[b] + taken_[b]; }

    // Adds a cause of low(x) >= f: the buffer placed first that suffices.
    void add_cause(Conflict& conflict, Int x, Int f) {
        const Int below = allowed_.before(x, f);
        if (below < 0) return;
        Int best = NONE;
        for (const Int p : over_[x]) {
            if (!placed_[p] || above(p) <= below) continue;
            if (conflict.fixed.has(p)) return;
            if (best < 0 || level_[p] < level_[best]) best = p;
        }
        if (best < 0) throw std::logic_error("a least offset without a cause");
        conflict.fixed.put(best);
    }
    // Adds causes of the least offset of x by `rounds` of support being at least f.
    void add_causes(Conflict& conflict, Int x, Int f, int rounds) {
        if (low_[x] >= f) return add_cause(conflict, x, f);
        if (rounds == 2 && once_[x] >= f) rounds = 1;
        if (rounds == 0 || failed_[x] < 0) throw std::logic_error("a lifted offset without a cause");
        conflict.join(conflicts_[failed_[x]]);
        const Int below = allowed_.before(x, f);
        for (const Int d : over_[x])
            if (!placed_[d] && below >= taken_[d]) add_causes(conflict, d, below + 1 - taken_[d], rounds - 1);
    }
    // Sets the least offsets by support.
    void support(const Run& items) {
        std::vector<Int> lifted;
        each(items, [&](Int b) {
            once_[b] = twice_[b] = low_[b];
            if (failed_[b] >= 0) lifted.push_back(b);
        });
        lift(lifted, low_, once_);
        for (const Int b : lifted) twice_[b] = once_[b];
        lift(lifted, once_, twice_);
    }
    void lift(const std::vector<Int>& lifted, const std::vector<Int>& from, std::vector<Int>& to) {
        for (const Int b : lifted) {
            Int lowest = NEVER / 2;
            for (const Int d : over_[b])
                if (!placed_[d]) lowest = std::min(lowest, from[d] + taken_[d]);
            if (lowest > to[b]) to[b] = allowed_.settle(b, lowest);
        }
    }

    // Whether the items cannot fit, by one of the bounds; then with the conflict whose causes were placed first.
    bool refuted(const Run& items, Conflict& conflict) {
        support(items);
        Int begin = NEVER, end = 0, above_all = NONE;
        each(items, [&](Int b) {
            begin = std::min(begin, buffers_.first[b]), end = std::max(end, buffers_.last[b]);
            if (twice_[b] + buffers_.size[b] > capacity_ && above_all < 0) above_all = b;
        });
        if (above_all >= 0) {
            conflict = Conflict(n_);
            conflict.free.put(above_all);
            add_causes(conflict, above_all, capacity_ - buffers_.size[above_all] + 1, 2);
            return true;
        }
        find_floors(items, begin, end);
        const std::vector<Int>& floors = lowest_[0];
        bool found = false;
        Int newest = NEVER, floor = NONE, total = NONE;
        for (Int s = begin; s < end; ++s) {
            if (waiting_[s] == 0) continue;
            Int required = waiting_[s] - spare_[s];
            for (const Int g : given_[s]) required += std::max(Int{0}, offset[g] + buffers_.size[g] - std::max(offset[g], floors[s]));
            if (floors[s] + required <= capacity_) continue;
            if (floor == floors[s] && total == required) continue;  // most often the same buffers
            floor = floors[s], total = required;
            Conflict here(n_);
            const Int f = given_[s].empty() ? capacity_ - required + 1 : floor;
            each(items, [&](Int b) {
                if (s < buffers_.first[b] || s >= buffers_.last[b]) return;
                here.free.put(b);
                if (f > 0) add_causes(here, b, f, 2);
            });
            Int last = NONE;
            here.fixed.each([&](Int b) { last = std::max(last, level_[b]); });
            if (!found || last < newest) conflict = std::move(here), newest = last;
            found = true;
        }
        return found;
    }
    // Sets lowest_[0]: an item counts for two overlapping ranges of 2^k sections, which count for their halves.
    void find_floors(const Run& items, Int begin, Int end) {
        Int top = 0;
        while (Int{2} << top <= end - begin) ++top;
        for (Int k = 0; k <= top; ++k) std::fill(lowest_[k].begin() + begin, lowest_[k].begin() + end, NEVER / 2);
        each(items, [&](Int b) {
            const Int first = buffers_.first[b], last = buffers_.last[b];
            const Int k = std::bit_width(static_cast<Word>(last - first)) - 1;
            for (const Int s : {first, last - (Int{1} << k)}) lowest_[k][s] = std::min(lowest_[k][s], twice_[b]);
        });
        for (Int k = top; k > 0; --k) {
            const Int half = Int{1} << (k - 1);
            for (Int s = begin; s + 2 * half <= end; ++s) {
                lowest_[k - 1][s] = std::min(lowest_[k - 1][s], lowest_[k][s]);
                lowest_[k - 1][s + half] = std::min(lowest_[k - 1][s + half], lowest_[k][s]);
            }
        }
    }

    // Places all items, part by part, or states a conflict.
    bool run_parts(const Run& items, Conflict& conflict) {
        std::vector<Run> parts;
        Int end = 0;
        each(items, [&](Int b) {
            if (parts.empty() || buffers_.first[b] >= end) {
                parts.push_back({b, 0});
                end = 0;
            }
            end = std::max(end, buffers_.last[b]);
            ++parts.back().count;
        });
        if (parts.size() > 1) {
            for (const Run& part : parts)
                if (refuted(part, conflict)) return false;
            std::stable_sort(parts.begin(), parts.end(), [](const Run& a, const Run& b) { return a.count < b.count; });
        }
        return std::all_of(parts.begin(), parts.end(), [&](const Run& part) { return place(part, conflict); });
    }

    // Places all items, or states a conflict; `ended_` if neither was possible.
    bool place(const Run& items, Conflict& conflict) {
        if (++nodes_ > most_ || stop_.over(20 * items.count)) ended_ = true;
        if (ended_ || refuted(items, conflict)) return false;
        Int top = NEVER;
        each(items, [&](Int b) {
            if (failed_[b] < 0) top = std::min(top, low_[b] + taken_[b]);
        });
        std::vector<Int> candidates;
        each(items, [&](Int b) {
            if (failed_[b] < 0 && low_[b] < top) candidates.push_back(b);
        });
        const auto later = [&](Int a, Int b) { return low_[a] != low_[b] ? low_[a] > low_[b] : rank_[a] > rank_[b]; };
        const std::size_t changes = changes_.size(), placed = sequence_.size(), kept = conflicts_.size();
        Conflict all(n_);
        for (std::size_t tried = 0; !candidates.empty(); ++tried) {
            // Most often, only the first is tried: a heap is made for the second.
            if (tried == 0) std::iter_swap(std::max_element(candidates.begin(), candidates.end(), later), candidates.end() - 1);
            if (tried == 1) std::make_heap(candidates.begin(), candidates.end(), later);
            if (tried > 0) std::pop_heap(candidates.begin(), candidates.end(), later);
            const Int b = candidates.back();
            candidates.pop_back();
            const std::size_t before = changes_.size();
            put(b);
            Conflict found(n_);
            const Run rest{b == items.begin ? next_[b] : items.begin, items.count - 1};
            if (run_parts(rest, found)) return true;
            undo(before, placed);
            if (ended_) return false;
            if (!found.fixed.has(b)) {
                undo(changes, placed);
                conflicts_.resize(kept);
                conflict = std::move(found);
                return false;
            }
            found.fixed.drop(b);
            found.free.put(b);
            add_cause(found, b, low_[b]);
            add_above(found, items, b);
            all.join(found);
            conflicts_.push_back(std::move(found));
            set(failed_[b], static_cast<Int>(conflicts_.size()) - 1);
        }
        // The lowest of `free` is one of those tried, or begins at `top` or above: then the one that ends at `top` could sink.
        for (bool again = true; again;) {
            again = false;
            each(items, [&](Int d) {
                if (!all.free.has(d)) return;
                if (failed_[d] < 0) add_cause(all, d, top);
                else if (all.join(conflicts_[failed_[d]])) again = true;
            });
        }
        undo(changes, placed);
        conflicts_.resize(kept);
        conflict = std::move(all);
        return false;
    }

    void put(Int b) {
        placed_[b] = 1;
        offset[b] = low_[b];
        level_[b] = static_cast<Int>(sequence_.size());
        sequence_.push_back(b);
        next_[previous_[b]] = next_[b], previous_[next_[b]] = previous_[b];
        for (Int s = buffers_.first[b]; s < buffers_.last[b]; ++s) set(waiting_[s], waiting_[s] - taken_[b]);
        for (const Int d : over_[b]) {
            if (placed_[d] || low_[d] >= above(b)) continue;
            set(low_[d], allowed_.settle(d, above(b)));
            if (failed_[d] >= 0) set(failed_[d], NONE);
        }
    }

    // Adds causes for all overlapping buffers of `free` to lie above b at its low: none of them ends below.
    void add_above(Conflict& conflict, const Run& items, Int b) {
        support(items);
        for (Set before(n_); before != conflict.free;) {
            before = conflict.free;
            for (const Int d : over_[b]) {
                const Int f = low_[b] - taken_[d] + 1;
                if (placed_[d] || f <= 0 || !before.has(d)) continue;
                if (twice_[d] >= f) {
                    add_causes(conflict, d, f, 2);
                    continue;
                }
                // By more rounds of support: all that failed, and where others begin.
                each(items, [&](Int x) {
                    if (failed_[x] >= 0) conflict.join(conflicts_[failed_[x]]);
                    add_cause(conflict, x, std::min(low_[x], low_[b]));
                });
            }
        }
    }
};

}  // namespace

Fitted fit_buffers(const Buffers& buffers, Ints order, Int capacity, Int most, Stop& stop) {
    return Search(buffers, order, capacity, most, stop).run();
}

}  // namespace engine
