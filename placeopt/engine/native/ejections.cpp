// Lower heights by ejections: a buffer that is too high is placed below the goal, and what lies there is taken out and placed again.
//
// The plan has holes instead of overlaps, as colorings have in PartialCol (I. Bloechliger, N. Zufferey, A graph coloring heuristic using
// partial solutions and a reactive tabu scheme, Computers & Operations Research 35, 2008, doi:10.1016/j.cor.2006.05.014): a buffer that
// was placed stays for some moves. Here, buffers have weights, which grow when they take others out. The heaviest is placed first, where it
// takes out the least weight. What has less than half of its weight does not count: it is placed later.
#include <algorithm>

#include "allocation.hpp"

namespace engine {

namespace {

constexpr Int TENURE = 3, SPREAD = 10;  // a buffer stays for TENURE to TENURE + SPREAD moves
// After this number of moves for a goal, the next one is half as far from the best height. It begins with the best offsets.
constexpr Int MOST_MOVES = 30'000;

class Ejections {
public:
    Ejections(const Buffers& buffers, Ints offset, Int seed)
        : buffers_(buffers), allowed_(buffers), over_(neighbours(buffers)), offset_(offset.begin(), offset.end()),
          random_(seed % (MODULUS - 1) + 1) {
        const Int n = buffers.count(), height = top();
        // What is large and shares time with many is hard to place.
        for (Int b = 0; b < n; ++b)
            weight_.push_back(16 + buffers.size[b] / (height / 1024 + 1) * static_cast<Int>(over_[b].size()));
        first_weight_ = weight_;
        stays_.assign(n, 0), out_at_.assign(n, NONE);
    }

    std::vector<Int> run(Int target, Int most, Stop& stop) {
        std::vector<Int> best = offset_;
        Int height = top(), goal = height, step = height - target, tried = 0;
        for (moves_ = 0; moves_ < most; ++moves_, ++tried) {
            if (out_.empty() || tried >= MOST_MOVES) {
                if (out_.empty()) {
                    best = offset_, height = top(), step *= 2;
                } else {
                    offset_ = best, weight_ = first_weight_, step /= 2;
                    while (!out_.empty()) take_in(out_.back());
                }
                if (height <= target) break;
                step = std::max<Int>(1, std::min(step, (height - target) * 3 / 10));
                goal = height - step, tried = 0;
                for (Int b = 0; b < buffers_.count(); ++b)
                    if (buffers_.fixed[b] < 0 && offset_[b] + buffers_.size[b] > goal) take_out(b);
                if (out_.empty()) break;
            }
            const Int b = *std::max_element(out_.begin(), out_.end(), [&](Int a, Int c) { return weight_[a] < weight_[c]; });
            if (!place(b, goal) || stop.over(50 * static_cast<Int>(over_[b].size()) + 50)) break;
        }
        return best;
    }

private:
    struct Border {
        Int at, weight;
        bool operator<(const Border& other) const { return at < other.at; }
    };
    const Buffers& buffers_;
    Allowed allowed_;
    const std::vector<std::vector<std::int32_t>> over_;
    std::vector<Int> offset_, weight_, first_weight_;
    std::vector<Int> out_, out_at_;  // buffers without an offset, and where each is in this list
    std::vector<Int> stays_;         // the first move that may take a buffer out
    std::vector<Border> begins_, ends_;
    std::vector<Int> tries_;
    Int random_, moves_ = 0;

    Int top() const {
        Int found = 0;
        for (Int b = 0; b < buffers_.count(); ++b) found = std::max(found, offset_[b] + buffers_.size[b]);
        return found;
    }
    bool placed(Int b) const { return out_at_[b] < 0; }
    void take_out(Int b) {
        out_at_[b] = static_cast<Int>(out_.size());
        out_.push_back(b);
    }
    void take_in(Int b) {
        out_[out_at_[b]] = out_.back(), out_at_[out_.back()] = out_at_[b];
        out_.pop_back(), out_at_[b] = NONE;
    }

    // Places b at the lowest of the offsets where it takes out the least weight; false if no offset is below the goal.
    bool place(Int b, Int goal) {
        const Int size = buffers_.size[b], heavy = NEVER / (2 * buffers_.count());
        begins_.clear(), ends_.clear(), tries_.clear();
        const auto attempt = [&](Int at) {
            if (at >= 0 && at + size <= goal) tries_.push_back(at);
        };
        attempt(allowed_.settle(b, 0)), attempt(allowed_.before(b, goal - size + 1));
        for (const Int d : over_[b]) {
            if (!placed(d) || weight_[d] < weight_[b] / 2) continue;
            const Int end = offset_[d] + buffers_.size[d], weight = stays_[d] > moves_ ? heavy : weight_[d];
            begins_.push_back({offset_[d], weight}), ends_.push_back({end, weight});
            attempt(allowed_.settle(b, end)), attempt(allowed_.before(b, offset_[d] - size + 1));
        }
        std::sort(begins_.begin(), begins_.end()), std::sort(ends_.begin(), ends_.end()), std::sort(tries_.begin(), tries_.end());
        auto begin = begins_.begin(), end = ends_.begin();
        Int weight = 0, least = NEVER, at = NONE;
        for (const Int x : tries_) {
            for (; begin != begins_.end() && begin->at < x + size; ++begin) weight += begin->weight;
            for (; end != ends_.end() && end->at <= x; ++end) weight -= end->weight;
            if (weight < least) least = weight, at = x;
        }
        if (at < 0) return false;
        take_in(b);
        offset_[b] = at;
        for (const Int d : over_[b])
            if (placed(d) && offset_[d] < at + size && at < offset_[d] + buffers_.size[d]) take_out(d);
        if (least == 0) return true;
        random_ = next_random(random_);
        stays_[b] = moves_ + TENURE + random_ % SPREAD;
        weight_[b] = std::min(weight_[b] + weight_[b] / 2, heavy / 2);
        return true;
    }
};

}  // namespace

std::vector<Int> lower_height(const Buffers& buffers, Ints offset, Int target, Int seed, Int most, Stop& stop) {
    return Ejections(buffers, offset, seed).run(target, most, stop);
}

}  // namespace engine
