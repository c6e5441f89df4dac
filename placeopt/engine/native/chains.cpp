// Division of a chain: prices, the table over all vectors of used devices, and the beam of some.
#include "chains.hpp"

namespace engine {

namespace {

Int behind_counted(const Chain& chain, bool layered) {
    const bool binds = std::find(chain.binding.begin(), chain.binding.end(), true) != chain.binding.end();
    return layered && binds ? chain.devices + 1 : 1;
}

}  // namespace

ChainDivider::ChainDivider(const Chain& chain, bool layered)
    : chain_(chain), most_(std::min(chain.replicas, *std::max_element(chain.size.begin(), chain.size.end()))),
      rows_(behind_counted(chain, layered)), price_(chain.classes), factor_(chain.classes), first_(chain.classes * (most_ + 1)), stride_(chain.classes) {
    Int rows = 0, factor = 1;
    for (Int c = 0; c < chain.classes; ++c) {
        factor_[c] = factor = next_random(factor);
        for (Int r = 1; r <= std::min(most_, chain.size[c]); ++r) {
            first_[c * (most_ + 1) + r] = rows;
            rows += chain.binding[c] ? quotient_ceil(chain.devices, r) : 1;
        }
    }
    lists_.assign(rows * (chain.n + 1) * chain.links * chain.links, {0, -1});
    cost_.resize(rows_ * (chain.n + 1));
    choice_.resize(cost_.size());
}

Int ChainDivider::least_load(Int c, Int r, Int runs, Int i, Int j, Int a, Int b) const {
    const Int cuts = chain_.n + 1, fixed = chain_.fixed[j] - chain_.fixed[i];
    if (fixed > chain_.capacity[c] || i < chain_.nearest[c * cuts + j]) return NEVER;
    const Int sent = add(chain_.down[b * cuts + j], chain_.up[a * cuts + i]);
    const Int received = add(chain_.down[a * cuts + i], chain_.up[b * cuts + j]);
    const Int kinds = (chain_.ahead[j] > chain_.ahead[i]) + (chain_.behind[j] > chain_.behind[i]);
    Int busy = add(chain_.computing[c * cuts + j] - chain_.computing[c * cuts + i], multiply(kinds, chain_.launch[c]));
    const Int gradient = chain_.gradient[j] - chain_.gradient[i];
    if (add(fixed, multiply(runs - 1, chain_.kept[j] - chain_.kept[i])) <= chain_.capacity[c])
        return chain_.tracks.period(c, r, busy, sent, received, gradient);
    if (!chain_.recompute) return NEVER;
    const Int entering = add(chain_.entering_down[i], chain_.entering_up[j]);
    const Int bytes = add(add(fixed, multiply(runs, entering)), multiply(runs - 1, chain_.source[j] - chain_.source[i]));
    if (bytes > chain_.capacity[c]) return NEVER;
    busy = add(busy, chain_.again[c * cuts + j] - chain_.again[c * cuts + i]);
    return chain_.tracks.period(c, r, busy, sent, received, gradient);
}

// The cuts at which a stage that ends at cut j may begin; filled on first use.
std::span<const std::int32_t> ChainDivider::begins(Int c, Int r, Int runs, Int j, Int a, Int b, Stop& stop) {
    const Int cuts = chain_.n + 1;
    Int level = 0;
    if (chain_.in_flight > 0) runs = chain_.in_flight;
    else if (chain_.binding[c]) level = runs - 1;
    List& list = lists_[(((first_[c * (most_ + 1) + r] + level) * cuts + j) * chain_.links + a) * chain_.links + b];
    if (list.length < 0) {
        const Ints computing = chain_.computing.subspan(c * cuts, cuts);
        const Int nearest = chain_.nearest[c * cuts + j], ticks = multiply(r, period_);
        Int low = nearest, high = j;
        while (low < high) {  // computing and memory are monotone
            const Int i = (low + high) / 2;
            const Int outputs = chain_.recompute ? chain_.source[j] - chain_.source[i] : chain_.kept[j] - chain_.kept[i];
            const Int need = add(chain_.fixed[j] - chain_.fixed[i], multiply(runs - 1, outputs));
            if (need <= chain_.capacity[c] && computing[j] - computing[i] <= ticks) high = i;
            else low = i + 1;
        }
        if (low > nearest)
            if (const Int busy = computing[j] - computing[low - 1]; busy > ticks) next = std::min(next, quotient_ceil(busy, r));
        list.start = static_cast<Int>(cut_.size());
        for (Int i = low; i < j;) {
            stop.poll(20);
            const Int load = least_load(c, r, runs, i, j, a, b);
            if (load <= period_) {
                cut_.push_back(static_cast<std::int32_t>(i));
                i = chain_.reach[i];
            } else {
                next = std::min(next, load);
                ++i;
            }
        }
        list.length = static_cast<std::int32_t>(static_cast<Int>(cut_.size()) - list.start);
    }
    return {cut_.data() + list.start, static_cast<std::size_t>(list.length)};
}

bool ChainDivider::begin(Int period, Ints prices, Stop& stop) {
    const Int cuts = chain_.n + 1;
    if (period != period_) {
        period_ = period;
        for (List& list : lists_) list.length = -1;
        cut_.clear();
        next = NEVER;
    }
    price_.assign(prices.begin(), prices.end());
    for (Int later = rows_ - 1; later >= 0; --later) {
        cost_[later * cuts] = 0;
        for (Int j = 1; j < cuts; ++j) {
            Int least = NEVER;
            Choice& choice = choice_[later * cuts + j];
            for (Int c = 0; c < chain_.classes; ++c) {
                for (Int r = 1; r <= std::min(chain_.replicas, chain_.size[c]); ++r) {
                    const Int price = multiply(r, price_[c]);
                    if (later + r > chain_.devices || price >= least) break;
                    const Int there = rows_ > 1 ? later + r : 0;
                    for (Int a = 0; a < chain_.links; ++a)
                        for (Int b = 0; b < chain_.links; ++b) {
                            const auto list = begins(c, r, runs_behind(later + r, r), j, a, b, stop);
                            stop.poll(10 + static_cast<Int>(list.size()));
                            for (const Int i : list)
                                if (add(cost_[there * cuts + i], price) < least) {
                                    least = cost_[there * cuts + i] + price;
                                    choice = {static_cast<std::int32_t>(c), static_cast<std::int32_t>(r), static_cast<std::int32_t>(i)};
                                }
                        }
                }
            }
            cost_[later * cuts + j] = least;
        }
    }
    Int all = 0;
    for (Int c = 0; c < chain_.classes; ++c) all = add(all, multiply(price_[c], chain_.size[c]));
    return least_cost() <= all;
}

std::vector<Int> ChainDivider::rooms(Ints weight, Stop& stop) {
    std::vector<Int> room(chain_.classes);
    for (Int c = 0; c < chain_.classes; ++c)
        for (Int r = 1; r <= std::min(chain_.replicas, chain_.size[c]); ++r)
            for (Int j = 1; j <= chain_.n; ++j)
                for (Int a = 0; a < chain_.links; ++a)
                    for (Int b = 0; b < chain_.links; ++b) {
                        const auto list = begins(c, r, 1, j, a, b, stop);
                        stop.poll(10);
                        if (list.empty()) continue;
                        const Int i = std::max(Int{list.front()}, Int{1});
                        const Int more = subtract(weight[std::min(j, chain_.n - 1)], weight[i]);
                        room[c] = std::max(room[c], more / r);
                    }
    return room;
}

std::vector<Int> ChainDivider::used() const {
    std::vector<Int> found(chain_.classes);
    Int later = 0, cut = chain_.n;
    while (cut > 0) {
        const Choice& choice = choice_[later * (chain_.n + 1) + cut];
        found[choice.label] += choice.team;
        if (rows_ > 1) later += choice.team;
        cut = choice.begin;
    }
    return found;
}

// Fills the front of a vector of used devices and a context; returns the least cut found.
Int ChainDivider::sweep_front(Int vector, Int context, Stop& stop) {
    const Int links = chain_.links, classes = chain_.classes;
    Int total = 0, left = 0;
    for (Int c = 0; c < classes; ++c) {
        const Int used = vector / stride_[c] % (chain_.size[c] + 1);
        total += used;
        left = add(left, multiply(chain_.size[c] - used, price_[c]));
    }
    Int least = chain_.n + 1;
    ++stamp_;
    found_.clear();
    if (vector == 0) {
        least = chain_.n;
        found_.push_back(static_cast<std::int32_t>(least));
        mark_[least] = stamp_;
    }
    for (Int c = 0; c < classes; ++c) {
        if (links > 1 && context / links != c) continue;
        const Int used = vector / stride_[c] % (chain_.size[c] + 1);
        for (Int r = 1; r <= std::min(chain_.replicas, used); ++r) {
            for (Int q = 0; q < (links == 1 ? 1 : classes); ++q) {
                const Int b = link_to(c, q);
                const List& origin = fronts_[(vector - r * stride_[c]) * contexts_ + (links > 1 ? q * links + b : 0)];
                stop.poll(10);
                for (Int e = origin.start; e < origin.start + origin.length; ++e) {
                    const auto list = begins(c, r, runs_behind(total, r), front_cut_[e], context % links, b, stop);
                    stop.poll(5 + 2 * static_cast<Int>(list.size()));
                    for (const std::int32_t i : list) {
                        if (mark_[i] == stamp_ || (least < i && i < chain_.reach[least])) continue;
                        mark_[i] = stamp_;
                        found_.push_back(i);
                        least = std::min(least, Int{i});
                    }
                }
            }
        }
    }
    std::sort(found_.begin(), found_.end());
    // Cuts that are not dominated and not too expensive.
    const Int later = std::min(total, rows_ - 1);
    Int bound = 0;
    List& front = fronts_[vector * contexts_ + context];
    front.start = static_cast<Int>(front_cut_.size());
    for (const std::int32_t i : found_) {
        if (i < bound || cost_[later * (chain_.n + 1) + i] > left) continue;
        front_cut_.push_back(i);
        bound = chain_.reach[i];
    }
    front.length = static_cast<std::int32_t>(static_cast<Int>(front_cut_.size()) - front.start);
    return least;
}

Pieces ChainDivider::table(Stop& stop) {
    Int vectors = 1;
    for (Int c = 0; c < chain_.classes; ++c) {
        stride_[c] = vectors;
        vectors = multiply(vectors, chain_.size[c] + 1);
    }
    contexts_ = chain_.links == 1 ? 1 : chain_.links * chain_.classes;
    fronts_.assign(multiply(vectors, contexts_), {0, 0});
    front_cut_.clear();
    mark_.resize(chain_.n + 1);
    for (Int vector = 0; vector < vectors; ++vector)
        for (Int context = 0; context < contexts_; ++context)
            if (sweep_front(vector, context, stop) == 0) return {traced(vector * contexts_ + context)};
    return {};
}

// The pieces that lead to cut 0 of a front.
std::vector<Piece> ChainDivider::traced(Int front) const {
    std::vector<Piece> pieces;
    for (Int cut = 0; cut < chain_.n; cut = pieces.back().end) pieces.push_back(step(front, cut));
    return pieces;
}

// The stage that begins at a cut of a front, which becomes the front where it ends.
Piece ChainDivider::step(Int& front, Int cut) const {
    const Int vector = front / contexts_, context = front % contexts_, links = chain_.links;
    Int total = 0;
    for (Int c = 0; c < chain_.classes; ++c) total += vector / stride_[c] % (chain_.size[c] + 1);
    for (Int c = 0; c < chain_.classes; ++c) {
        if (links > 1 && context / links != c) continue;
        const Int used = vector / stride_[c] % (chain_.size[c] + 1);
        for (Int r = 1; r <= std::min(chain_.replicas, used); ++r) {
            for (Int q = 0; q < (links == 1 ? 1 : chain_.classes); ++q) {
                const Int b = link_to(c, q), there = (vector - r * stride_[c]) * contexts_ + (links > 1 ? q * links + b : 0);
                const Int runs = chain_.in_flight > 0 ? chain_.in_flight : runs_behind(total, r);
                for (Int e = fronts_[there].start; e < fronts_[there].start + fronts_[there].length; ++e) {
                    const Int end = front_cut_[e];
                    if (end <= cut || least_load(c, r, runs, cut, end, context % links, b) > period_) continue;
                    front = there;
                    return {cut, end, c, r};
                }
            }
        }
    }
    throw std::logic_error("a front holds a cut without a stage that begins there");
}

// Restores the order of the heap of a layer after the score at one place has changed.
void ChainDivider::settle(Int size, Int place) {
    auto& heap = beam_.heap;
    const auto& score = beam_.score;
    const Int slot = heap[place];
    const auto put = [&](Int state) {
        heap[place] = state;
        beam_.place[state] = place;
    };
    while (place > 0) {
        const Int above = (place - 1) / 2;
        if (score[heap[above]] <= score[slot]) break;
        put(heap[above]);
        place = above;
    }
    while (2 * place + 1 < size) {
        Int below = 2 * place + 1;
        if (below + 1 < size && score[heap[below + 1]] < score[heap[below]]) ++below;
        if (score[heap[below]] >= score[slot]) break;
        put(heap[below]);
        place = below;
    }
    put(slot);
}

namespace {
constexpr Int DOMINATED = -2;  // in place of a state: one at least as good exists
}

// The place of a state that a candidate dominates, else NONE; DOMINATED if one dominates it.
Int ChainDivider::find_state(Int layer, const Candidate& added, Int key, Int bucket) {
    const Int classes = chain_.classes;
    for (Int slot = beam_.bucket[bucket]; slot >= 0; slot = beam_.follower[slot]) {
        if (at(beam_.key, layer, slot) != key || at(beam_.context, layer, slot) != added.context) continue;
        const std::int16_t* used = &beam_.used[(layer * beam_.width + slot) * classes];
        const std::int16_t* before = &beam_.used[(added.origin * beam_.width + added.parent) * classes];
        bool same = true;
        for (Int c = 0; same && c < classes; ++c) same = used[c] == before[c] + (c == added.label ? added.team : 0);
        if (!same) continue;
        const Int there = at(beam_.cut, layer, slot);
        if (there == added.cut || (there < added.cut && added.cut < chain_.reach[there])) return DOMINATED;
        if (added.cut < there && there < chain_.reach[added.cut]) return slot;
    }
    return NONE;
}

// The next place of a layer, or if it is full, that of the state with the least score, which is removed.
Int ChainDivider::free_place(Int layer) {
    Int& size = beam_.filled[layer];
    if (size < beam_.width) {
        beam_.heap[size] = beam_.place[size] = size;
        return size++;
    }
    beam_.dropped = true;
    const Int slot = beam_.heap[0];
    Int* link = &beam_.bucket[(at(beam_.key, layer, slot) + 31 * at(beam_.context, layer, slot)) % static_cast<Int>(beam_.bucket.size())];
    while (*link != slot) link = &beam_.follower[*link];
    *link = beam_.follower[slot];
    return slot;
}

// Adds a candidate to a layer, unless a state there is better or no space is left; returns its place or NONE.
Int ChainDivider::keep(Int layer, const Candidate& added) {
    if (added.cut > 0 && beam_.filled[layer] == beam_.width && beam_.score[beam_.heap[0]] >= added.score) {
        beam_.dropped = true;
        return NONE;
    }
    const Int key = at(beam_.key, added.origin, added.parent) + added.team * factor_[added.label];
    const Int bucket = (key + 31 * added.context) % static_cast<Int>(beam_.bucket.size());
    Int slot = find_state(layer, added, key, bucket);
    if (slot == DOMINATED) return NONE;
    if (slot == NONE) {
        slot = free_place(layer);
        beam_.follower[slot] = beam_.bucket[bucket];
        beam_.bucket[bucket] = slot;
        const auto before = beam_.used.begin() + (added.origin * beam_.width + added.parent) * chain_.classes;
        const auto used = beam_.used.begin() + (layer * beam_.width + slot) * chain_.classes;
        std::copy_n(before, chain_.classes, used);
        used[added.label] = static_cast<std::int16_t>(used[added.label] + added.team);
        at(beam_.key, layer, slot) = key;
        at(beam_.context, layer, slot) = added.context;
        at(beam_.left, layer, slot) = at(beam_.left, added.origin, added.parent) - added.team * price_[added.label];
    }
    at(beam_.cut, layer, slot) = added.cut;
    at(beam_.parent, layer, slot) = added.parent;
    at(beam_.label, layer, slot) = added.label;
    at(beam_.team, layer, slot) = added.team;
    beam_.score[slot] = added.score;
    settle(beam_.filled[layer], beam_.place[slot]);
    return slot;
}

// Fills a layer of the beam; returns a state with cut 0, else NONE.
Int ChainDivider::extend(Int layer, Stop& stop) {
    const Int links = chain_.links, later = std::min(layer, rows_ - 1);
    beam_.filled[layer] = 0;
    std::fill(beam_.bucket.begin(), beam_.bucket.end(), NONE);
    for (Int r = 1; r <= std::min(chain_.replicas, layer); ++r) {
        const Int origin = layer - r;
        for (Int parent = 0; parent < beam_.filled[origin]; ++parent) {
            const Int j = at(beam_.cut, origin, parent), context = at(beam_.context, origin, parent);
            for (Int c = 0; c < chain_.classes; ++c) {
                stop.poll(5);
                if (beam_.used[(origin * beam_.width + parent) * chain_.classes + c] + r > chain_.size[c]) continue;
                const Int left = at(beam_.left, origin, parent) - r * price_[c];
                Int b = 0;
                if (links > 1 && origin > 0) {
                    b = context % links;
                    if (link_to(c, context / links) != b) continue;
                }
                for (Int a = 0; a < links; ++a) {
                    const auto list = begins(c, r, runs_behind(layer, r), j, a, b, stop);
                    stop.poll(20 * static_cast<Int>(list.size()));
                    for (const Int i : list) {
                        const Int gain = left - cost_[later * (chain_.n + 1) + i];
                        if (gain < 0) continue;
                        const Int slot = keep(layer, {origin, parent, c, r, i, links == 1 ? 0 : c * links + a, gain});
                        if (i == 0 && slot >= 0) return slot;
                    }
                }
            }
        }
    }
    return NONE;
}

Pieces ChainDivider::beam(Int width, Stop& stop) {
    const Int layers = chain_.devices + 1;
    if (width != beam_.width) {
        beam_ = {};
        beam_.width = width;
        for (auto* values : {&beam_.cut, &beam_.context, &beam_.left, &beam_.key, &beam_.parent, &beam_.label, &beam_.team})
            values->resize(multiply(layers, width));
        for (auto* values : {&beam_.score, &beam_.heap, &beam_.place, &beam_.follower}) values->resize(width);
        beam_.used.resize(multiply(layers * chain_.classes, width));
        beam_.bucket.resize(2 * width + 1);
        beam_.filled.resize(layers);
    }
    std::fill(beam_.filled.begin(), beam_.filled.end(), 0);
    beam_.filled[0] = 1;
    beam_.cut[0] = chain_.n;
    beam_.left[0] = 0;
    for (Int c = 0; c < chain_.classes; ++c) beam_.left[0] = add(beam_.left[0], multiply(price_[c], chain_.size[c]));
    beam_.dropped = false;
    for (Int layer = 1; layer < layers; ++layer) {
        Int slot = extend(layer, stop);
        if (slot < 0) continue;
        Pieces found;
        while (layer > 0) {
            const Int c = at(beam_.label, layer, slot), r = at(beam_.team, layer, slot), begin = at(beam_.cut, layer, slot);
            slot = at(beam_.parent, layer, slot);
            layer -= r;
            found.pieces.push_back({begin, at(beam_.cut, layer, slot), c, r});
        }
        return found;
    }
    return {{}, !beam_.dropped};
}

}  // namespace engine
