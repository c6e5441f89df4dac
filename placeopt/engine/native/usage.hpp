// What running tasks use of renewable resources over time, and the earliest tick at which a further task may run.
//
// The amounts of all resources stand side by side in a few words, each in a field with one bit more than its capacity
// needs. With that bit set, one subtraction per word tells whether each amount is there: a field that lacks something
// borrows its bit. (L. Lamport: Multiple byte processing with full-word instructions, CACM 18, 1975,
// doi:10.1145/360933.360994.)
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "problem.hpp"

namespace engine {

using Word = std::uint64_t;

// The uses of all entries in words.
struct PackedUses {
    Int words = 0;
    std::vector<Word> guard;              // (words,) the bits that are borrowed
    std::vector<Word> amount, most;       // (entries, words): what is used; what others may use at most, with the guards
    std::vector<char> kind;               // (entries,) see Kind
    std::vector<Int> word, shift, field;  // (r,) where each renewable resource is; its field, not shifted
    enum Kind : char { NOTHING, SOMETHING, TOO_MUCH };

    explicit PackedUses(const Resources& resources) {
        if (!resources.any()) return;
        const Int count = static_cast<Int>(resources.capacity.size()), entries = static_cast<Int>(resources.row.size()) - 1;
        word.resize(count);
        shift.resize(count);
        field.resize(count);
        Int taken = 64;
        for (Int r = 0; r < count; ++r) {
            if (!resources.renewable[r]) continue;
            const Int bits = std::bit_width(static_cast<Word>(resources.capacity[r])) + 1;
            if (taken + bits > 64) {
                guard.push_back(0);
                taken = 0;
            }
            word[r] = static_cast<Int>(guard.size()) - 1;
            shift[r] = taken;
            field[r] = (Int{1} << (bits - 1)) - 1;
            taken += bits;
            guard.back() |= Word{1} << (taken - 1);
        }
        words = static_cast<Int>(guard.size());
        amount.assign(entries * words, 0);
        most.assign(entries * words, 0);
        kind.assign(entries, NOTHING);
        for (Int k = 0; k < entries; ++k) {
            Word* limits = most.data() + k * words;
            for (Int r = 0; r < count; ++r)
                if (resources.renewable[r]) limits[word[r]] |= static_cast<Word>(resources.capacity[r]) << shift[r];
            for (Int w = 0; w < words; ++w) limits[w] |= guard[w];
            for (Int at = resources.row[k]; at < resources.row[k + 1]; ++at) {
                const Int r = resources.resource[at];
                if (!resources.renewable[r]) continue;
                if (resources.amount[at] > resources.capacity[r]) {
                    kind[k] = TOO_MUCH;
                } else {
                    const Word used = static_cast<Word>(resources.amount[at]) << shift[r];
                    amount[k * words + word[r]] += used;
                    limits[word[r]] -= used;
                    if (kind[k] == NOTHING) kind[k] = SOMETHING;
                }
            }
        }
    }
};

class Usage {
public:
    explicit Usage(const Resources& resources) : uses_(std::make_shared<PackedUses>(resources)) { clear(); }

    // Whether tasks use any renewable resource.
    bool any() const { return uses_->words > 0; }

    void clear() {
        begin_.assign(1, 0);
        used_.assign(uses_->words, 0);
    }

    // Continues with the steps of another usage of the same resources.
    void copy_steps(const Usage& other) {
        begin_.assign(other.begin_.begin(), other.begin_.end());
        used_.assign(other.used_.begin(), other.used_.end());
    }
    void swap_steps(Usage& other) {
        begin_.swap(other.begin_);
        used_.swap(other.used_);
    }
    // Whether as much is used as in another usage of the same resources at all ticks from `tick` on.
    bool same_from(Int tick, const Usage& other) const {
        const std::size_t here = find(tick), there = other.find(tick), count = begin_.size() - here;
        return count == other.begin_.size() - there &&
               std::equal(begin_.begin() + here + 1, begin_.end(), other.begin_.begin() + there + 1) &&
               std::equal(used_.begin() + here * uses_->words, used_.end(), other.used_.begin() + there * uses_->words);
    }

    // The first tick from `tick` on at which what an entry uses is there for `ticks` ticks. A task of no duration uses
    // nothing. `gate(tick)` moves a tick on to where the device is open, and is asked again after each wait.
    template <class Gate>
    Int earliest(Int entry, Int tick, Int ticks, Gate&& gate) const {
        tick = gate(tick);
        if (ticks == 0 || !any() || uses_->kind[entry] == PackedUses::NOTHING) return tick;
        if (uses_->kind[entry] == PackedUses::TOO_MUCH) throw Wrong("resources: a task uses more than there is");
        while (true) {
            const Int moved = free_from(entry, tick, ticks);
            if (moved == tick) return tick;
            tick = gate(moved);
            if (tick == moved) return tick;
        }
    }

    // Counts what an entry uses from `begin` to `end` (sign 1), or takes it away (-1).
    //
    // Neighbouring steps always differ, so the steps depend only on what is counted, not on the order.
    void count(Int entry, Int begin, Int end, Int sign) {
        if (begin == end || !any() || uses_->kind[entry] == PackedUses::NOTHING) return;
        const Int words = uses_->words;
        const std::size_t low = split(find(begin), begin), high = split(find(end), end);
        const Word* amount = uses_->amount.data() + entry * words;
        for (std::size_t at = low; at < high; ++at)
            for (Int w = 0; w < words; ++w) used_[at * words + w] += sign > 0 ? amount[w] : Word{0} - amount[w];
        join(high);
        join(low);
    }

    // The ticks from which another amount of resource r is in use, and these amounts.
    void list(Int r, std::vector<Int>& ticks, std::vector<Int>& amounts) const {
        for (std::size_t at = 0; at < begin_.size(); ++at) {
            const Word used = used_[at * uses_->words + uses_->word[r]] >> uses_->shift[r];
            const Int amount = static_cast<Int>(used & static_cast<Word>(uses_->field[r]));
            if (!amounts.empty() && amounts.back() == amount) continue;
            ticks.push_back(begin_[at]);
            amounts.push_back(amount);
        }
    }

    // Whether two entries use one resource, at least one of each word.
    bool compete(Int a, Int b) const {
        if (!any() || uses_->kind[a] == PackedUses::NOTHING || uses_->kind[b] == PackedUses::NOTHING) return false;
        for (std::size_t r = 0; r < uses_->field.size(); ++r) {
            const Word field = static_cast<Word>(uses_->field[r]) << uses_->shift[r];
            const auto uses = [&](Int k) { return (uses_->amount[k * uses_->words + uses_->word[r]] & field) != 0; };
            if (uses(a) && uses(b)) return true;
        }
        return false;
    }

private:
    // The step that holds a tick.
    std::size_t find(Int tick) const {
        if (tick >= begin_.back()) return begin_.size() - 1;
        return static_cast<std::size_t>(std::upper_bound(begin_.begin(), begin_.end(), tick) - begin_.begin()) - 1;
    }
    // The step that begins at a tick, which it makes of the one that holds it.
    std::size_t split(std::size_t step, Int tick) {
        if (begin_[step] == tick) return step;
        const auto words = static_cast<std::ptrdiff_t>(uses_->words), at = static_cast<std::ptrdiff_t>(step) * words;
        begin_.insert(begin_.begin() + static_cast<std::ptrdiff_t>(step) + 1, tick);
        used_.insert(used_.begin() + at + words, words, 0);
        std::copy_n(used_.begin() + at, words, used_.begin() + at + words);
        return step + 1;
    }
    // Removes a step that uses as much as the one before.
    void join(std::size_t step) {
        const auto words = static_cast<std::ptrdiff_t>(uses_->words), at = static_cast<std::ptrdiff_t>(step) * words;
        if (step == 0 || !std::equal(used_.begin() + at, used_.begin() + at + words, used_.begin() + at - words)) return;
        begin_.erase(begin_.begin() + static_cast<std::ptrdiff_t>(step));
        used_.erase(used_.begin() + at, used_.begin() + at + words);
    }
    // The first tick from `tick` on from which what an entry uses is there for `ticks` ticks.
    Int free_from(Int entry, Int tick, Int ticks) const {
        const Int words = uses_->words;
        const Word *most = uses_->most.data() + entry * words, *guard = uses_->guard.data();
        if (words == 1) return free_from(tick, ticks, [&](std::size_t at) { return ((*most - used_[at]) & *guard) == *guard; });
        return free_from(tick, ticks, [&](std::size_t at) {
            const Word* used = used_.data() + at * words;
            for (Int w = 0; w < words; ++w)
                if (((most[w] - used[w]) & guard[w]) != guard[w]) return false;
            return true;
        });
    }
    template <class Free>
    Int free_from(Int tick, Int ticks, Free&& free) const {
        Int end = add(tick, ticks);
        for (std::size_t step = find(tick); step < begin_.size() && begin_[step] < end; ++step) {
            if (free(step)) continue;
            do ++step;
            while (!free(step));  // nothing is used in the last step
            tick = begin_[step];
            end = add(tick, ticks);
        }
        return tick;
    }

    std::shared_ptr<const PackedUses> uses_;
    std::vector<Int> begin_;   // the ticks at which steps begin, from 0 on
    std::vector<Word> used_;   // (steps, words) what is in use from there until the next step; nothing in the last
};

}  // namespace engine
