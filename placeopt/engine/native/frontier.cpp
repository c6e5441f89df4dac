// A state is what the groups so far mean for the items that wait for consumers. Codes of an item:
//
//     0  outside the device, not received    1  outside, received    2 + c  inside, sent c times
//
// For each state and worth, a row has the least load of the sets that lead there.
#include "frontier.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace engine {

namespace {

using Load = std::int32_t;
using Word = std::uint64_t;
constexpr Load EMPTY = FRONTIER_LOADS;
constexpr Int BITS = 4;

// From a row of the step before: whether the group is inside, and which of its items, as bits, are sent once more than needed.
struct Link {
    Int row, load, gain;
    bool inside;
    Word more;
};

struct Row {
    Word key;
    Int first = 0;                   // worth of the first entry
    std::vector<Load> least;         // by worth
    std::vector<std::uint16_t> how;  // by worth: the link
    std::vector<Link> links;
};

class Sweep {
public:
    Sweep(const Frontier& frontier, Int limit, Stop& stop)
        : f_(frontier), limit_(static_cast<Load>(limit)), stop_(stop), made_(frontier.amount.size()), used_(frontier.amount.size()) {
        for (std::size_t j = 0; j < f_.ticks.size(); ++j) {
            made_[f_.producer[j]].push_back(j);
            left_.push_back(f_.start[j + 1] - f_.start[j]);
            for (Int k = f_.start[j]; k < f_.start[j + 1]; ++k) used_[f_.consumer[k]].push_back(j);
        }
        slot_.resize(left_.size());
    }

    Held run(Int sets) {
        steps_.push_back({Row{0, 0, {0}, {}, {}}});
        for (const Int g : f_.order) step(g);
        Held found;
        const Row& end = steps_.back().front();  // of the empty set at least
        for (Int i = static_cast<Int>(end.least.size()); i-- > 0;) {
            if (end.least[i] == EMPTY) continue;
            if (found.balance.empty()) found.most = std::max(end.first + i, Int{0});
            if (sets-- == 0) break;
            trace(end.first + i, found.balance);
        }
        return found;
    }

private:
    void step(Int g) {
        const std::vector<Row>& before = steps_.back();
        for (const Int j : made_[g]) {
            if (!free_) throw Wrong("order: more than " + std::to_string(FRONTIER_ITEMS) + " items wait for consumers");
            slot_[j] = BITS * std::countr_zero(free_);
            free_ &= free_ - 1;
        }
        for (const Int j : used_[g]) --left_[j];
        std::vector<Row> rows;
        std::unordered_map<Word, std::size_t> place;
        for (std::size_t r = 0; r < before.size(); ++r)
            for (const bool inside : {false, true}) {
                if (inside && f_.excluded[g]) continue;
                for (auto& [key, link] : links(g, before[r].key, static_cast<Int>(r), inside)) {
                    const auto [at, added] = place.try_emplace(key, rows.size());
                    if (added) rows.push_back({key, 0, {}, {}, {}});
                    rows[at->second].links.push_back(link);
                    if (rows[at->second].links.size() > UINT16_MAX) throw Wrong("order: too many states lead to one");
                }
            }
        for (const Int j : used_[g])
            if (left_[j] == 0) free_ |= Word{1} << (slot_[j] / BITS);
        for (Row& row : rows) fill(row, before);
        std::erase_if(rows, [](const Row& row) { return row.least.empty(); });
        steps_.push_back(std::move(rows));
        for (Row& row : steps_[steps_.size() - 2]) std::vector<Load>().swap(row.least);
    }

    // Where a state leads if the group is inside the device or not.
    std::vector<std::pair<Word, Link>> links(Int g, Word key, Int row, bool inside) const {
        std::vector<std::pair<Word, Link>> found{{key, {row, inside ? f_.amount[g] : 0, inside ? f_.worth[g] : 0, inside, 0}}};
        Word bit = 1;
        for (const Int j : used_[g]) {
            std::vector<std::pair<Word, Link>> next;
            for (const auto& [word, link] : found) {
                const Word code = word >> slot_[j] & (FRONTIER_CODES - 1), rest = word ^ code << slot_[j];
                const auto put = [&](Word now, Int gain, Word more) {
                    Link to = link;
                    if (now != code) to.load += f_.ticks[j];
                    to.gain += gain;
                    to.more |= more;
                    next.emplace_back(left_[j] == 0 ? rest : rest | now << slot_[j], to);
                };
                if (code == 0 && inside) put(1, -f_.gain[j], 0);
                else if (code == 2 && !inside) put(3, f_.gain[j], 0);
                else put(code, 0, 0);
                if (code > 2 && !inside && f_.gain[j] > 0 && static_cast<Int>(code) - 2 < f_.copies[j]) put(code + 1, f_.gain[j], bit);
            }
            found = std::move(next);
            bit <<= 1;
        }
        if (inside)
            for (auto& [word, link] : found)
                for (const Int j : made_[g]) word |= Word{2} << slot_[j];
        return found;
    }

    void fill(Row& row, const std::vector<Row>& before) {
        Int last = INT64_MIN;
        row.first = INT64_MAX;
        for (const Link& link : row.links) {
            const Row& from = before[link.row];
            row.first = std::min(row.first, from.first + link.gain);
            last = std::max(last, from.first + link.gain + static_cast<Int>(from.least.size()));
        }
        row.least.assign(last - row.first, EMPTY);
        row.how.assign(last - row.first, 0);
        for (std::size_t q = 0; q < row.links.size(); ++q) {
            const Link& link = row.links[q];
            const Row& from = before[link.row];
            const Int shift = from.first + link.gain - row.first, count = static_cast<Int>(from.least.size());
            Load* const least = row.least.data() + shift;
            std::uint16_t* const how = row.how.data() + shift;
            const Load load = static_cast<Load>(link.load), limit = limit_;
            const auto number = static_cast<std::uint16_t>(q);
            for (Int i = 0; i < count; ++i) {
                const Load value = from.least[i] + load;
                const bool better = value <= limit && value < least[i];
                least[i] = better ? value : least[i];
                how[i] = better ? number : how[i];
            }
            stop_.poll(count);
        }
        const auto holds = [](Load load) { return load != EMPTY; };
        const auto end = std::find_if(row.least.rbegin(), row.least.rend(), holds).base();
        const auto begin = std::find_if(row.least.begin(), end, holds);
        const Int skipped = begin - row.least.begin(), kept = end - begin;
        row.first += skipped;
        row.how = std::vector(row.how.begin() + skipped, row.how.begin() + skipped + kept);
        row.least = std::vector(begin, end);
    }

    // Appends the balance of the set behind an entry of the last row.
    void trace(Int worth, std::vector<Int>& balances) const {
        const std::size_t groups = f_.amount.size(), begin = balances.size();
        balances.resize(begin + groups + f_.ticks.size());
        Int* const member = balances.data() + begin;
        Int* const balance = member + groups;
        Int r = 0;
        for (std::size_t s = groups; s > 0; --s) {
            const Row& row = steps_[s][r];
            const Link& link = row.links[row.how[worth - row.first]];
            const Int g = f_.order[s - 1];
            member[g] = link.inside;
            for (std::size_t k = 0; k < used_[g].size(); ++k) balance[used_[g][k]] += link.more >> k & 1;
            worth -= link.gain;
            r = link.row;
        }
        for (std::size_t j = 0; j < f_.ticks.size(); ++j) {
            const Ints consumers = f_.consumer.subspan(f_.start[j], f_.start[j + 1] - f_.start[j]);
            const auto differs = [&](Int g) { return member[g] != member[f_.producer[j]]; };
            if (std::any_of(consumers.begin(), consumers.end(), differs)) balance[j] += member[f_.producer[j]] ? 1 : -1;
        }
    }

    const Frontier& f_;
    const Load limit_;
    Stop& stop_;
    std::vector<std::vector<Int>> made_, used_;  // the items of each group
    std::vector<Int> left_, slot_;               // by item: consumers to come, and its place in a word
    Word free_ = (Word{1} << FRONTIER_ITEMS) - 1;
    std::vector<std::vector<Row>> steps_;
};

}  // namespace

Held hold_most(const Frontier& frontier, Int limit, Int sets, Stop& stop) { return Sweep(frontier, limit, stop).run(sets); }

}  // namespace engine
