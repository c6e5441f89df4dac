// Trees of groups that do not fit on one device.
#include "relaxation.hpp"

namespace engine {

namespace {

class Grower {
public:
    Grower(const GroupGraph& graph, const Point& point, Ints memory, Int limit, Int most, Stop& stop)
        : graph_(graph), point_(point), memory_(memory), limit_(limit), most_(most), stop_(stop),
          stamp_(memory.size(), NONE), cost_(memory.size()), by_place_(memory.size()), by_pair_(memory.size()) {}

    Trees run() {
        const Int groups = static_cast<Int>(memory_.size());
        Trees found;
        found.start.assign(1, 0);
        found.value.assign(groups, 0.0);
        for (Int seed = 0; seed < groups; ++seed) {
            if (grow(seed)) {
                prune();
                found.value[seed] = keep(found);
            }
            found.start.push_back(static_cast<Int>(found.member.size()));
        }
        return found;
    }

private:
    struct Node {
        Int group, parent, via;  // `parent` is a place in the tree
        Int degree = 0;
        bool gone = false;
    };

    // Adds the group with the cheapest pair until the tree is too large for one device. False if that fails.
    bool grow(Int seed) {
        const Int open = 2 * seed, inside = open + 1;  // stamps of neighbours and of members
        tree_.assign(1, {seed, NONE, NONE});
        waiting_.clear();
        stamp_[seed] = inside;
        held_ = memory_[seed];
        double total = 0.0;
        while (held_ <= limit_ && size() < most_ && total < 2.0) {
            look_around(tree_.back().group, open);
            if (waiting_.empty()) break;
            auto chosen = waiting_.begin();
            for (auto place = chosen + 1; place != waiting_.end(); ++place)
                if (cost_[*place] < cost_[*chosen]) chosen = place;
            const Int g = *chosen;
            *chosen = waiting_.back();
            waiting_.pop_back();
            stamp_[g] = inside;
            tree_.push_back({g, by_place_[g], by_pair_[g]});
            held_ = add(held_, memory_[g]);
            total += point_.ends[by_pair_[g]];
        }
        return held_ > limit_ && total < 2.0 && size() > 1;
    }

    // Updates the cheapest pairs from the newest member to groups outside.
    void look_around(Int newest, Int open) {
        const Int first = graph_.start[newest], last = graph_.start[newest + 1];
        stop_.poll(static_cast<Int>(waiting_.size()) + 4 * (2 + last - first));
        for (Int position = first; position < last; ++position) {
            const Int g = graph_.neighbour[position], q = graph_.pair[position];
            if (stamp_[g] == open + 1) continue;
            const double weight = point_.ends[q] - point_.appeal[q];
            if (stamp_[g] != open) {
                stamp_[g] = open;
                waiting_.push_back(g);
            } else if (weight >= cost_[g]) {
                continue;
            }
            cost_[g] = weight;
            by_place_[g] = size() - 1;
            by_pair_[g] = q;
        }
    }

    // Removes dispensable leaves, the most expensive first; the first member may be one.
    void prune() {
        for (Int place = 1; place < size(); ++place) {
            ++tree_[place].degree;
            ++tree_[tree_[place].parent].degree;
        }
        for (;;) {
            stop_.poll(4 * size());
            Int worst = NONE;
            double most_saved = -1.0;
            for (Int place = 0; place < size(); ++place) {
                const Node& leaf = tree_[place];
                if (leaf.gone || leaf.degree != 1 || held_ - memory_[leaf.group] <= limit_) continue;
                double saved = point_.outside[leaf.group];
                each_pair(place, [&](const Node& pair, Node&) { saved += point_.ends[pair.via]; });
                if (saved > most_saved) {
                    worst = place;
                    most_saved = saved;
                }
            }
            if (worst == NONE) return;
            tree_[worst].gone = true;
            held_ -= memory_[tree_[worst].group];
            each_pair(worst, [](const Node&, Node& other) { --other.degree; });
        }
    }

    // Calls back with each pair of a leaf, as the node that holds it, and the other end. It is the pair to its parent, or, if
    // there is none any more, to a child.
    template <class Call>
    void each_pair(Int place, Call call) {
        Node& leaf = tree_[place];
        if (place > 0 && !tree_[leaf.parent].gone) return call(leaf, tree_[leaf.parent]);
        stop_.poll(size());
        for (Int child = 1; child < size(); ++child)
            if (!tree_[child].gone && tree_[child].parent == place) call(tree_[child], tree_[child]);
    }

    // Appends the rest in order; returns its value.
    double keep(Trees& found) {
        std::vector<Int> position(tree_.size());  // among the members that stay
        Int kept = 0;
        double value = 0.0;
        for (Int place = 0; place < size(); ++place) {
            const Node& node = tree_[place];
            if (node.gone) continue;
            const bool hangs = node.parent != NONE && !tree_[node.parent].gone;
            if (hangs) value += point_.ends[node.via];
            if (node.degree == 1) value += point_.outside[node.group];
            found.member.push_back(node.group);
            found.parent.push_back(hangs ? position[node.parent] : NONE);
            found.via.push_back(node.via);
            position[place] = kept++;
        }
        return value;
    }

    Int size() const { return static_cast<Int>(tree_.size()); }

    const GroupGraph& graph_;
    const Point& point_;
    const Ints memory_;
    const Int limit_, most_;
    Stop& stop_;
    std::vector<Node> tree_;
    Int held_ = 0;                                // memory of the tree
    std::vector<Int> stamp_;                      // (g,)
    std::vector<double> cost_;                    // (g,) of a neighbour: the cheapest pair to it
    std::vector<Int> by_place_, by_pair_;         // (g,) of a neighbour: the member that it leads to, and the pair
    std::vector<Int> waiting_;                    // neighbours
};

}  // namespace

Trees grow_trees(const GroupGraph& graph, const Point& point, Ints memory, Int limit, Int most, Stop& stop) {
    return Grower(graph, point, memory, limit, most, stop).run();
}

}  // namespace engine
