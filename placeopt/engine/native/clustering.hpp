// Clusters of tasks for an unlimited number of identical devices, and their mapping to devices.
#pragma once

#include "stop.hpp"
#include "timeline.hpp"

namespace engine {

struct Clustering {
    std::vector<Int> cluster;  // (n,) of each task
    std::vector<Int> start;    // (n,) if every cluster has a separate device
};

// `work` (n,) and `transfer` (e,) are not negative, and their total is below NEVER. `blevel` (n,) is the longest path from
// each task to the end.
Clustering dominant_sequence_clusters(const Problem& problem, Ints work, Ints transfer, Ints blevel, Stop& stop);
// The number of each task's path in the order of removal.
std::vector<Int> linear_clusters(const Problem& problem, Ints work, Ints transfer, Stop& stop);

// The groups of cluster c are members[start[c]..start[c + 1]]; `turn` are the clusters in the order of mapping, `cluster`
// (g,) that of each group, and `work` (g, m) the ticks of each group.
struct Mapping {
    Ints members, start, cluster, turn, work;
    bool wrap;  // whether each cluster goes to the next device in turn, otherwise to the one with the least load
};
struct Mapped {
    Int stuck = NONE;  // the group that no device can take
    Int splits = 0;    // clusters that no device could take whole
};
Mapped map_clusters(Line& line, const Mapping& mapping, Stop& stop);
// Assigns each group to the device `wanted` (g,) if that can take it, the others to the device with the largest weight of
// their edges to placed groups: the neighbours of group k are neighbours[start[k]..start[k + 1]]. Returns NONE or the
// group that no device takes.
Int keep_parts(Line& line, Ints sequence, Ints wanted, Ints start, Ints neighbours, Ints weight, Ints work, Stop& stop);

// The edges of a greedy matching, in turn; there are n nodes.
std::vector<Int> greedy_matching(Ints source, Ints target, Int n);

}  // namespace engine
