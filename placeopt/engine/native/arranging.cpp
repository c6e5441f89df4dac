// Stages of nodes that serve a language model over slow links: simulated annealing of their order, their numbers of layers and
// their nodes (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 1983, doi:10.1126/science.220.4598.671), with largest flows
// by blocking flows (E. A. Dinic, Soviet Mathematics Doklady 1970).
#include <algorithm>
#include <cmath>
#include <map>

#include "serving.hpp"

namespace engine {

namespace {

// The temperature at the start, as a part of the cost of the flow at the start; and the highest temperature.
constexpr double WARM = 1.0 / 6, HOT = 5e-5;

// Shares of changes, in thousandths: another order, a layer for another stage, a node for another stage, and two nodes of a kind
// in different sites that change places. All other changes are of any two nodes.
constexpr Int ORDERS = 100, LAYERS = 100, MOVES = 200, LIKE = 400, ALL = 1000;

class Network {
public:
    void clear(Int nodes) {
        first_.assign(nodes, NONE);
        arcs_.clear();
    }
    void join(Int from, Int to, Int capacity) {
        if (capacity <= 0) return;
        arcs_.push_back({to, first_[from], capacity});
        first_[from] = static_cast<Int>(arcs_.size()) - 1;
        arcs_.push_back({from, first_[to], 0});
        first_[to] = static_cast<Int>(arcs_.size()) - 1;
    }
    Int largest_flow(Int source, Int sink) {
        Int total = 0;
        while (reaches(source, sink)) {
            next_ = first_;
            while (const Int sent = push(source, sink, NEVER)) total = add(total, sent);
        }
        return total;
    }
    Int size() const { return static_cast<Int>(arcs_.size()); }

private:
    struct Arc {
        Int to, next, left;
    };

    // Numbers nodes by their distance from the source; returns whether the sink has one.
    bool reaches(Int source, Int sink) {
        level_.assign(first_.size(), NONE);
        queue_.assign(1, source);
        level_[source] = 0;
        for (std::size_t at = 0; at < queue_.size() && level_[sink] == NONE; ++at)
            for (Int arc = first_[queue_[at]]; arc != NONE; arc = arcs_[arc].next)
                if (const Int to = arcs_[arc].to; arcs_[arc].left > 0 && level_[to] == NONE) {
                    level_[to] = level_[queue_[at]] + 1;
                    queue_.push_back(to);
                }
        return level_[sink] != NONE;
    }

    // Sends at most `most` from a node to the sink, on one way.
    Int push(Int node, Int sink, Int most) {
        if (node == sink) return most;
        for (Int& arc = next_[node]; arc != NONE; arc = arcs_[arc].next) {
            const Arc& each = arcs_[arc];
            if (each.left == 0 || level_[each.to] != level_[node] + 1) continue;
            if (const Int sent = push(each.to, sink, std::min(most, each.left))) {
                arcs_[arc].left -= sent;
                arcs_[arc ^ 1].left += sent;
                return sent;
            }
        }
        return 0;
    }

    std::vector<Int> first_, next_, level_, queue_;
    std::vector<Arc> arcs_;  // each before its reverse
};

// Nodes that hold the same layers: `size` from `first` on, and their rates.
struct Stage {
    std::vector<Int> nodes, rates;
    Int size = 0, first = 0, state = 0;  // stages with the same state are equal
};

class StageArranger {
public:
    StageArranger(const ServingNodes& nodes, Ints begin, Ints end, Int wanted, Int seed, Stop& stop)
        : nodes_(nodes), wanted_(wanted), random_(seed % (MODULUS - 1) + 1), stop_(stop) {
        std::map<std::pair<Int, Int>, std::vector<Int>> held;
        for (Int n = 0; n < nodes.v; ++n) held[{begin[n], end[n]}].push_back(n);
        for (const auto& [interval, members] : held) {
            if (interval.second > interval.first)
                now_.push_back({members, {}, interval.second - interval.first});
            else
                idle_.insert(idle_.end(), members.begin(), members.end());
        }
        settle(now_);
        lacks_ = new_lacks(now_, now_, {}, INFINITY);
    }

    ServedLayers search(Int steps) {
        Int best = flow(now_);
        std::vector<Stage> found = now_;
        cost_ = share(best);
        for (const double lack : lacks_) cost_ += lack;
        const double warm = std::min(WARM * share(best), HOT);
        for (Int step = 0; step < steps && !now_.empty() && best < wanted_ && !stop_.over(100); ++step) {
            next_ = now_;
            next_idle_ = idle_;
            if (!change()) continue;
            const double heat = warm * (1.0 - static_cast<double>(step) / static_cast<double>(steps));
            const double limit = cost_ - heat * std::log(1.0 - static_cast<double>(draw(1 << 24)) / (1 << 24));
            std::vector<double> lacks = new_lacks(next_, now_, lacks_, limit);
            if (lacks.empty() && next_.size() > 1) continue;
            double cost = 0;
            for (const double lack : lacks) cost += lack;
            const Int rate = flow(next_);
            cost += share(rate);
            if (cost > limit) continue;
            now_.swap(next_);
            idle_.swap(next_idle_);
            lacks_.swap(lacks);
            cost_ = cost;
            if (rate > best) {
                best = rate;
                found = now_;
            }
        }
        ServedLayers result{std::vector<Int>(nodes_.v), std::vector<Int>(nodes_.v), best};
        for (const Stage& stage : found)
            for (const Int n : stage.nodes) {
                result.begin[n] = stage.first;
                result.end[n] = stage.first + stage.size;
            }
        return result;
    }

private:
    Int draw(Int below) {
        random_ = next_random(random_);
        return random_ * below / MODULUS;
    }

    // The square of the share of the wanted rate that a flow lacks.
    double share(Int rate) const {
        const double lacking = static_cast<double>(std::max(wanted_ - rate, Int{0})) / static_cast<double>(wanted_);
        return lacking * lacking;
    }

    void rates_of(Stage& stage) {
        stage.rates.clear();
        for (const Int n : stage.nodes) stage.rates.push_back(nodes_.passes(n, stage.first, stage.size));
        stage.state = ++states_;
    }

    // Computes the first layers of stages, and the rates where these or the stages changed.
    void settle(std::vector<Stage>& stages) {
        Int first = 0;
        for (Stage& stage : stages) {
            const bool moved = stage.first != first && (nodes_.firsts > 1 || nodes_.prefill_layers > 0);
            stage.first = first;
            if (moved || stage.rates.empty()) rates_of(stage);
            first += stage.size;
        }
    }

    // The squares of what pairs of successive stages lack; those of pairs that are as `before` are `known`. Empty once their sum
    // is above a limit.
    std::vector<double> new_lacks(const std::vector<Stage>& stages, const std::vector<Stage>& before,
                                  const std::vector<double>& known, double limit) {
        std::vector<double> found(stages.empty() ? 0 : stages.size() - 1, -1.0);
        double total = 0;
        for (std::size_t k = 0; k < found.size() && k < known.size(); ++k)
            if (stages[k].state == before[k].state && stages[k + 1].state == before[k + 1].state) total += found[k] = known[k];
        for (std::size_t k = 0; k < found.size(); ++k) {
            if (found[k] >= 0) continue;
            total += found[k] = share(passed(stages[k], stages[k + 1]));
            if (total > limit) return {};
        }
        return found;
    }

    // The largest flow from one stage to the next.
    Int passed(const Stage& a, const Stage& b) {
        const Int senders = static_cast<Int>(a.nodes.size()), receivers = static_cast<Int>(b.nodes.size());
        const Int source = senders + receivers, sink = source + 1;
        network_.clear(sink + 1);
        for (Int i = 0; i < senders; ++i) network_.join(source, i, a.rates[i]);
        join_stages(a, b, 0, senders);
        for (Int j = 0; j < receivers; ++j) network_.join(senders + j, sink, b.rates[j]);
        stop_.over(network_.size() * 20);
        return network_.largest_flow(source, sink);
    }

    // Joins the nodes of two successive stages, numbered from `from` and `to` on.
    void join_stages(const Stage& a, const Stage& b, Int from, Int to) {
        for (std::size_t i = 0; i < a.nodes.size(); ++i)
            for (std::size_t j = 0; j < b.nodes.size(); ++j)
                network_.join(from + static_cast<Int>(i), to + static_cast<Int>(j),
                              std::min({nodes_.limit(a.nodes[i], b.nodes[j], a.first, b.first), a.rates[i], b.rates[j]}));
    }

    // The largest flow through all stages; 0 if they do not hold all layers.
    Int flow(const std::vector<Stage>& stages) {
        if (stages.empty() || stages.back().first + stages.back().size != nodes_.layers) return 0;
        // Node i of all has the numbers i, where tokens enter, and v + i, where they leave.
        const Int v = nodes_.v, source = 2 * v, sink = source + 1;
        network_.clear(sink + 1);
        Int at = 0;
        for (std::size_t k = 0; k < stages.size(); ++k) {
            const Stage& stage = stages[k];
            const Int next = at + static_cast<Int>(stage.nodes.size());
            for (Int i = at; i < next; ++i) {
                const Int node = stage.nodes[i - at], rate = stage.rates[i - at];
                network_.join(i, v + i, rate);
                if (k == 0) network_.join(source, i, std::min(nodes_.entry_limit(node), rate));
                if (k + 1 == stages.size()) network_.join(v + i, sink, std::min(nodes_.exit[node], rate));
            }
            if (k + 1 < stages.size()) join_stages(stage, stages[k + 1], v + at, next);
            at = next;
        }
        stop_.over(network_.size() * 20);
        return network_.largest_flow(source, sink);
    }

    // Changes the next stages at random; returns whether they changed.
    bool change() {
        const Int kind = draw(ALL), count = static_cast<Int>(next_.size());
        if (kind < ORDERS) return reorder();
        if (kind < ORDERS + LAYERS) return resize();
        Int x = draw(count + 1), y = draw(count);  // the last number stands for idle nodes
        y += y >= x;
        std::vector<Int>& one = x < count ? next_[x].nodes : next_idle_;
        std::vector<Int>& other = y < count ? next_[y].nodes : next_idle_;
        if (one.empty()) return false;
        const Int a = draw(static_cast<Int>(one.size()));
        if (kind < ORDERS + LAYERS + MOVES) {
            if (x < count && one.size() == 1) return false;
            other.push_back(one[a]);
            one.erase(one.begin() + a);
        } else {
            fits_.clear();
            for (Int b = 0; b < static_cast<Int>(other.size()); ++b)
                if (kind >= ORDERS + LAYERS + MOVES + LIKE ||
                    (nodes_.kind[other[b]] == nodes_.kind[one[a]] && nodes_.site[other[b]] != nodes_.site[one[a]]))
                    fits_.push_back(b);
            if (fits_.empty()) return false;
            std::swap(one[a], other[fits_[draw(static_cast<Int>(fits_.size()))]]);
        }
        for (const Int k : {x, y})
            if (k < count) rates_of(next_[k]);
        return true;
    }

    // A part of the stages is reversed, or one of them moves.
    bool reorder() {
        const Int count = static_cast<Int>(next_.size());
        if (count < 2) return false;
        Int low = draw(count), high = draw(count - 1);
        high += high >= low;
        if (low > high) std::swap(low, high);
        const auto first = next_.begin() + low, last = next_.begin() + high;
        const Int way = draw(3);
        if (way == 0)
            std::reverse(first, last + 1);
        else
            std::rotate(first, way == 1 ? first + 1 : last, last + 1);
        settle(next_);
        return true;
    }

    // One stage gives a layer to another.
    bool resize() {
        const Int count = static_cast<Int>(next_.size());
        if (count < 2) return false;
        const Int x = draw(count);
        Int y = draw(count - 1);
        y += y >= x;
        if (next_[x].size == 1 || next_[y].size == nodes_.most) return false;
        --next_[x].size;
        ++next_[y].size;
        next_[x].rates.clear();
        next_[y].rates.clear();
        settle(next_);
        return true;
    }

    const ServingNodes& nodes_;
    Int wanted_, random_, states_ = 0;
    Stop& stop_;
    std::vector<Stage> now_, next_;
    std::vector<Int> idle_, next_idle_, fits_;
    std::vector<double> lacks_;
    double cost_ = 0;
    Network network_;
};

}  // namespace

ServedLayers arrange_stages(const ServingNodes& nodes, Ints begin, Ints end, Int wanted, Int steps, Int seed, Stop& stop) {
    return StageArranger(nodes, begin, end, wanted, seed, stop).search(steps);
}

}  // namespace engine
