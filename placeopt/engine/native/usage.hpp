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

    // A tick, the step that holds it, and the step that holds the last tick of a task that starts then.
    struct Spot {
        Int tick;
        std::size_t low, high;
    };

    // The first tick from `tick` on at which what an entry uses is there for `ticks` ticks. A task of no duration uses
    // nothing. `gate(tick)` moves a tick on to where the device is open, and is asked again after each wait.
    template <class Gate>
    Spot earliest(Int entry, Int tick, Int ticks, Gate&& gate) const {
        tick = gate(tick);
        if (ticks == 0 || !any() || uses_->kind[entry] == PackedUses::NOTHING) return {tick, 0, 0};
        if (uses_->kind[entry] == PackedUses::TOO_MUCH) throw Wrong("resources: a task uses more than there is");
        while (true) {
            const Spot found = uses_->words == 1 ? free_from<true>(entry, tick, ticks) : free_from<false>(entry, tick, ticks);
            if (found.tick == tick) return found;
            tick = gate(found.tick);
            if (tick == found.tick) return found;
        }
    }

    // Counts what an entry uses for `ticks` ticks from a spot on that `earliest` has just found for it.
    void book(Int entry, const Spot& spot, Int ticks) {
        if (ticks == 0 || !any() || uses_->kind[entry] == PackedUses::NOTHING) return;
        change(entry, spot.low, spot.tick, spot.high, spot.tick + ticks, 1);
    }

    // Counts what an entry uses from `begin` to `end` (sign 1), or takes it away (-1).
    //
    // Neighbouring steps always differ, so the steps depend only on what is counted, not on the order.
    void count(Int entry, Int begin, Int end, Int sign) {
        if (begin == end || !any() || uses_->kind[entry] == PackedUses::NOTHING) return;
        change(entry, find(begin), begin, find(end - 1), end, sign);
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
    // The step that holds a tick; most ticks are near the last steps.
    std::size_t find(Int tick) const {
        std::size_t low = begin_.size() - 1;
        for (int tried = 0; tried < 8; ++tried, --low)
            if (begin_[low] <= tick) return low;  // the first step begins at 0
        std::size_t high = low + 1;
        for (std::size_t width = 8; begin_[low] > tick; width *= 4) {
            high = low;
            low = low > width ? low - width : 0;
        }
        while (high - low > 1) {
            const std::size_t middle = (low + high) / 2;
            (begin_[middle] <= tick ? low : high) = middle;
        }
        return low;
    }
    // Adds what an entry uses to the steps from tick `begin`, in step `low`, to tick `end`, where the tick before is in step
    // `high`; or with sign -1 takes it away.
    void change(Int entry, std::size_t low, Int begin, std::size_t high, Int end, Int sign) {
        if (uses_->words == 1) change<true>(entry, low, begin, high, end, sign);
        else change<false>(entry, low, begin, high, end, sign);
    }
    template <bool single>
    void change(Int entry, std::size_t low, Int begin, std::size_t high, Int end, Int sign) {
        const std::size_t words = single ? 1 : static_cast<std::size_t>(uses_->words), count = begin_.size();
        const bool opens = begin_[low] != begin, closes = high + 1 == count || begin_[high + 1] != end;
        const std::size_t more = std::size_t{opens} + std::size_t{closes};
        if (more > 0) {
            begin_.resize(count + more);
            used_.resize((count + more) * words);
            for (std::size_t at = count; at-- > high + 1;) copy_step(at, at + more, words);
            if (closes) {
                copy_step(high, high + more, words);
                begin_[high + more] = end;
            }
            if (opens) {
                for (std::size_t at = high + 1; at-- > low;) copy_step(at, at + 1, words);
                begin_[++low] = begin;
                ++high;
            }
        }
        const Word* amount = uses_->amount.data() + static_cast<std::size_t>(entry) * words;
        const Word flip = sign > 0 ? Word{0} : ~Word{0};  // x ^ ~0 - ~0 = -x
        for (std::size_t at = low; at <= high; ++at)
            for (std::size_t w = 0; w < words; ++w) used_[at * words + w] += (amount[w] ^ flip) - flip;
        if (!closes) join(high + 1, words);
        if (!opens) join(low, words);
    }
    // Overwrites step `to`. Most changes are near the last step, so that loops over single steps are faster than others.
    void copy_step(std::size_t from, std::size_t to, std::size_t words) {
        begin_[to] = begin_[from];
        for (std::size_t w = 0; w < words; ++w) used_[to * words + w] = used_[from * words + w];
    }
    // Removes a step that uses as much as the one before.
    void join(std::size_t step, std::size_t words) {
        const std::size_t at = step * words;
        if (step == 0) return;
        for (std::size_t w = at; w < at + words; ++w)
            if (used_[w] != used_[w - words]) return;
        begin_.erase(begin_.begin() + static_cast<std::ptrdiff_t>(step));
        used_.erase(used_.begin() + static_cast<std::ptrdiff_t>(at), used_.begin() + static_cast<std::ptrdiff_t>(at + words));
    }
    // The first spot from `tick` on from which what an entry uses is there for `ticks` ticks. `single`: there is one word.
    template <bool single>
    Spot free_from(Int entry, Int tick, Int ticks) const {
        const Int words = single ? 1 : uses_->words;
        const Word *most = uses_->most.data() + entry * words, *guard = uses_->guard.data();
        const auto free = [&](std::size_t at) {
            const Word* used = used_.data() + static_cast<Int>(at) * words;
            for (Int w = 0; w < words; ++w)
                if (((most[w] - used[w]) & guard[w]) != guard[w]) return false;
            return true;
        };
        Int end = add(tick, ticks);
        std::size_t low = find(tick), step = low;
        for (; step < begin_.size() && (step == low || begin_[step] < end); ++step) {
            if (free(step)) continue;
            do ++step;
            while (!free(step));  // nothing is used in the last step
            low = step;
            tick = begin_[step];
            end = add(tick, ticks);
        }
        return {tick, low, step - 1};
    }

    std::shared_ptr<const PackedUses> uses_;
    std::vector<Int> begin_;   // the ticks at which steps begin, from 0 on
    std::vector<Word> used_;   // (steps, words) what is in use from there until the next step; nothing in the last
};

}  // namespace engine
