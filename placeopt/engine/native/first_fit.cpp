// First fit in several orders, for buffers with known lifetimes.
#include <algorithm>
#include <numeric>

#include "allocation.hpp"

namespace engine {

Allowed::Allowed(const Buffers& buffers) : buffers_(buffers), ranges_(buffers.count()) {
    for (Int f = 0; f < buffers.count(); ++f) {
        if (buffers.fixed[f] < 0) continue;
        for (Int b = 0; b < buffers.count(); ++b)
            if (buffers.fixed[b] < 0 && buffers.overlap(b, f))
                ranges_[b].push_back({buffers.fixed[f] - buffers.size[b] + 1, buffers.fixed[f] + buffers.size[f]});
    }
    for (auto& ranges : ranges_) {
        std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
        std::size_t kept = 0;
        for (std::size_t k = 1; k < ranges.size(); ++k) {
            if (ranges[k].begin <= ranges[kept].end) ranges[kept].end = std::max(ranges[kept].end, ranges[k].end);
            else ranges[++kept] = ranges[k];
        }
        if (!ranges.empty()) ranges.resize(kept + 1);
    }
}

Int Allowed::settle(Int b, Int offset) const {
    const Int a = buffers_.alignment[b];
    Int found = (offset + a - 1) / a * a;
    for (const Range& range : ranges_[b])
        if (found >= range.begin && found < range.end) found = (range.end + a - 1) / a * a;
    return found;
}

Int Allowed::before(Int b, Int offset) const {
    if (offset <= 0) return -1;
    const Int a = buffers_.alignment[b];
    Int found = (offset - 1) / a * a;
    for (std::size_t k = ranges_[b].size(); k-- > 0;) {
        const Range& range = ranges_[b][k];
        if (found < range.begin || found >= range.end) continue;
        if (range.begin <= 0) return -1;
        found = (range.begin - 1) / a * a;
    }
    return found;
}

std::vector<std::vector<std::int32_t>> neighbours(const Buffers& buffers) {
    std::vector<std::int32_t> items;
    for (Int b = 0; b < buffers.count(); ++b)
        if (buffers.fixed[b] < 0) items.push_back(static_cast<std::int32_t>(b));
    std::stable_sort(items.begin(), items.end(), [&](Int a, Int b) { return buffers.first[a] < buffers.first[b]; });
    std::vector<std::vector<std::int32_t>> found(buffers.count());
    for (std::size_t i = 0; i < items.size(); ++i)
        for (std::size_t j = i + 1; j < items.size() && buffers.first[items[j]] < buffers.last[items[i]]; ++j) {
            found[items[i]].push_back(items[j]);
            found[items[j]].push_back(items[i]);
        }
    return found;
}

namespace {

// Placed buffers by offset. A free offset is found in one pass over them.
class Placing {
public:
    explicit Placing(const Buffers& buffers) : buffers_(buffers), allowed_(buffers), offset(buffers.count(), NONE) {}

    void clear() {
        entries_.clear();
        std::fill(offset.begin(), offset.end(), NONE);
    }
    // Places b as low as possible; returns its top.
    Int place(Int b) {
        Int found = buffers_.fixed[b] >= 0 ? buffers_.fixed[b] : allowed_.settle(b, 0);
        const Int first = buffers_.first[b], last = buffers_.last[b], size = buffers_.size[b];
        if (buffers_.fixed[b] < 0)
            for (const Entry& entry : entries_) {
                if (entry.first >= last || first >= entry.last || entry.top <= found) continue;
                if (entry.offset >= found + size) break;
                found = allowed_.settle(b, entry.top);
            }
        const Entry entry{found, found + size, first, last};
        const auto at = std::upper_bound(entries_.begin(), entries_.end(), found, [](Int o, const Entry& e) { return o < e.offset; });
        entries_.insert(at, entry);
        offset[b] = found;
        return entry.top;
    }

private:
    struct Entry {
        Int offset, top, first, last;
    };
    const Buffers& buffers_;
    Allowed allowed_;
    std::vector<Entry> entries_;

public:
    std::vector<Int> offset;
};

}  // namespace

std::vector<Int> first_fit(const Buffers& buffers, Ints order, Stop& stop) {
    Placing placing(buffers);
    Int placed = 0;
    for (const Int b : order) {
        stop.poll(++placed);
        placing.place(b);
    }
    return placing.offset;
}

}  // namespace engine
