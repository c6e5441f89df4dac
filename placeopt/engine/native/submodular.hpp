// Greedy placement by the benefits of Carbonari, Kodirov and Golub 2017; placeopt.submodular.placement has the definitions.
#pragma once

#include <limits>
#include <vector>

#include "problem.hpp"
#include "stop.hpp"

namespace engine {

// The numbers of parallel tasks in a growing placement: the partial topology of section 2.2.
//
// For a set S of placed tasks, the dependencies D_S[j] of task j are the tasks of S from which a path leads to j without another
// task of S in between. A placed task j' is parallel to j if D[j] = D[j'] for the set D = D_(S + j); two empty sets are equal.
// Neither then depends on the other: on a path from one to the other, the last task of S + j before its end would be in only one
// of the two sets.
//
// The number of placed tasks that are parallel to j is kept for each unplaced task j and each device, because greedy reads all of
// them in each round. Placing a task v changes these numbers in three ways:
//
// 1. v becomes parallel to the unplaced tasks with its dependencies, except the ancestors of v: placing one of these would change
//    the dependencies of v.
// 2. The dependents of v, to which a path leads from v without a placed task in between, now depend on v. They lose the
//    dependencies that they had through v only. The numbers of the unplaced dependents restart from 0.
// 3. The placed dependents are no longer parallel to tasks with their old dependencies, but to those with their new ones.
//
// Sets are compared by a hash, the exclusive or of a random 62-bit number per task. In a run with 36,000 tasks, two different sets
// have equal hashes with a probability of about 1e-6. Lost dependencies are computed from bit sets, with one bit for each placed
// task that can still be a dependency. Only dependencies of v can be lost, and only by tasks that have v, or a task that lost
// something, as a producer.
//
// Placing one task takes O(s + l w + (p / 60 + 1) a + c), where s counts the dependents of v and their edges, l those that lose
// something, w the words per bit set, p the placed dependents, a their unplaced ancestors, and c the tasks that share their
// dependencies.
class Topology {
public:
    // `key` (n,) is a random number for each task.
    Topology(const Problem& problem, Ints key);

    // Places the unplaced task v on device d.
    void place(Int v, Int d);

    std::vector<Int> device;              // (n,) of each placed task, NONE for the others
    std::vector<std::int32_t> parallel;   // (m, n) number of tasks on each device parallel to each unplaced task
    std::vector<Int> total;               // (n,) its sum over the devices
    std::vector<Int> raised;              // (m,) tasks on each device that became parallel to others with the last placement
    std::vector<Int> gained;              // unplaced tasks that gained a parallel task with the last placement
    Int compared = 0;                     // dependents whose lost dependencies were computed so far

private:
    static constexpr Int BITS = 60;  // per word of a bit set, and tasks whose ancestors are marked at once

    Int& bucket(Int digest) { return first_[digest & (static_cast<Int>(first_.size()) - 1)]; }
    std::uint64_t& word(Int task, Int k) { return depends_[task * stride_ + k]; }
    void insert(Int u);
    void remove(Int u);
    void count_parallel(Int digest, Int d, Int change, Int bit);
    Int earliest_of(Int digest);
    void mark(Int task, std::uint64_t reached);
    void mark_ancestors(Int earliest);
    void recount_moved(Int change);
    bool drop_lost(Int v, Int w);
    void update_dependents(Int v);
    void widen();
    void take_slot(Int v);
    void drop_slot(Int x);

    const Problem* problem_;
    Ints key_;
    std::vector<Int> position_;           // (n,) of each task in the order of the problem
    std::vector<Int> digest_, fresh_;     // (n,) hash of the dependencies of each task; of the dependents of the last one: the new
    std::vector<std::uint64_t> depends_;  // (n, stride) bit set of the dependencies that have a slot
    Int stride_ = 1, words_ = 0;          // columns of `depends_`, and those in use
    std::vector<Int> slot_, owner_, free_;// (n,) bit of each placed task with unplaced consumers; task of each bit; released bits
    std::vector<Int> waiting_;            // (n,) edges from each task to unplaced consumers
    std::vector<Int> first_, after_, before_;  // unplaced tasks by hash: the first of each bucket, and the next and previous one
    std::vector<Int> risen_;              // (n,) last placement with which each task gained a parallel one
    std::vector<Int> moved_, queue_;      // dependents of the task placed last; scratch
    std::vector<Int> marked_;             // (n,) stamps of visited tasks
    std::vector<std::uint64_t> bits_, row_;  // (n,) which tasks of `queue_` each ancestor reaches; a bit set
    Int placed_ = 0, stamp_ = 0;
};

enum class Fullness { unlimited, step, linear };
enum class Curve { root, logarithm, pieces };

// A problem and its settings; g groups, k tiers, p pieces. Matrices (m, ...) are in row-major order.
struct PlacementRules {
    const Problem* problem = nullptr;
    std::span<const double> cost, cap;            // (m, n) ticks, infinite where not feasible; (m,) time capacity
    Ints memory, member_start, member;            // (g,), (g + 1,), (n,)
    Ints apart_start, apart;                      // (g + 1,)
    Ints tier_end;                                // (m, k) end of each memory tier in bytes
    std::span<const double> tier_ticks;           // (m, k) ticks for swapping one byte
    Ints largest_input, largest_output;           // (n,) edge; place among the in-edges; NONE without
    Ints curve;                                   // (m,) the concave function g of each device
    std::span<const double> piece_end, piece_slope;  // (m, p)
    Ints key;                                     // (n,)
    Int tiers = 0, pieces = 0;
    bool inside = true, parallelism = true, load = true, communication = false;
    Fullness fullness = Fullness::unlimited;
    double knee = 0.0, balance = 0.0;
};

// A growing placement. It can be copied.
class Placement {
public:
    // `homes` (g,) are the devices of groups that are placed already, whose memory is reserved; NONE for the others.
    Placement(const PlacementRules& rules, Ints homes);

    // Whether task u can be placed on device i next to the tasks placed already.
    bool can_host(Int u, Int i) const;
    // The increase of f by task u on device i; minus infinity where not feasible.
    double gain(Int u, Int i) const;
    double value() const { return rules_->inside ? sum : product; }
    void place(Int u, Int i);
    // Places task u without computing benefits, as far as `can_host` requires.
    void occupy(Int u, Int i);

    Topology topology;
    std::vector<Int> home, used;       // (g,) device of each group; (m,) bytes, those of reserved groups included
    std::vector<double> benefit;       // (m,) B_i
    std::vector<double> placed;        // (m,) placed_i in ticks
    std::vector<Int> held;             // (m,) number of tasks
    std::vector<Int> fetched;          // (m, g) ticks of transfers of the unplaced tasks of each group, for each device
    std::vector<Int> changed;          // groups whose transfers to some device may have decreased with the last placement
    double sum = 0.0, product = 0.0;   // F, and F times the pf of the last placed task

private:
    friend class Greedy;
    double concave(Int i, double x) const;
    double device_ticks(Int u, Int i) const;
    double free_ratio(Int u, Int i) const;
    Int parallelism_factor(Int u, Int i, double ratio) const;
    double fullness_factor(Int u, Int i) const;
    double sum_gain(Int u, Int i, double more) const;
    void move_endpoint(Int k, Int payload, Int old, Int now, bool outward);
    void locate_along(Int v, Int d, bool outward);
    void locate_task(Int v, Int d);
    void locate_group(Int k, Int d);

    const PlacementRules* rules_;
    std::vector<Int> origin_, target_;  // (n,) device from which the output of each task is fetched, to which its input is sent
    std::vector<char> stamped_;         // (g,) whether a group is in `changed`
    std::vector<Int> stack_;
};

// The rounds of greedy.
struct Rounds {
    std::vector<Int> task, device;  // placed in each round
    std::vector<double> value;      // f after it
    Int evaluations = 0;            // number of pairs evaluated
    bool stopped = false;
};

// Places all tasks by greedy: the best pair of a task and a device in each round. Ties go to the lowest task, then to the lowest
// device. Standard greedy evaluates all O(n m) pairs in each round. Lazy greedy evaluates a device only if its upper bound is no
// less than the best score found. The bound is the score of the device's best pair at its last evaluation, raised after each
// placement that may have increased a score:
//
// - a task became parallel to others, which increases their pf; if they are few, their pairs are recomputed;
// - a transfer is no longer needed; the pairs of the tasks concerned are recomputed;
// - for the form `outside`, F increased, by the same amount for all pairs with the same pf.
//
// All other effects decrease scores. Lazy greedy is therefore exact although the function is not submodular. Of several empty
// devices of one `kind` (m,), only the first is evaluated. Ends early if no remaining pair is allowed.
Rounds place_all(Placement& placement, Ints kind, bool lazy, Stop& stop);

}  // namespace engine
