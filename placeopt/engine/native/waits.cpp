// Times of a placement by live memory: each task is appended as soon as its inputs are there and its device has the
// memory for it.
//
// It counts what the verifier counts, by the times of the schedule: `scratch` from start to end, `output` until the last
// consumer on the device ends and the last transfer to another one arrives. Without ports a transfer starts when its
// producer ends, so its arrival is known; with ports it is known once its consumer is placed.
#include "heap.hpp"
#include "live_memory.hpp"

namespace engine {

Waits append_with_waits(Line& line, Ints output, Ints scratch, std::vector<Int> room, Ints device, Ints sequence, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Waits {
        const Problem& problem = line.problem;
        const bool ports = problem.ports.any();
        std::vector<Int> held(problem.m);       // outputs on each device as of its last start
        std::vector<Int> left(problem.n);       // consumers of each placed task that may still delay the release of its output
        std::vector<Int> freed(problem.n);      // the tick of that release, as far as it is known
        std::vector<Int> latest(problem.m);     // the last start on each device
        std::vector<Heap> release(problem.m);   // the outputs of each device with a known release, by its tick
        const auto queue_release = [&](Int i, Int d) {
            if (output[i] > 0) release[d].push({freed[i], static_cast<std::int32_t>(i)});
        };
        // On a parallel device, scratch is in use when the next task starts. It is queued as task -1 - i.
        const auto queued_bytes = [&](Int item) { return item < 0 ? scratch[-1 - item] : output[item]; };
        Waits found;
        for (const Int i : sequence) {
            const Int d = device[i], earliest = std::max({timeline.ready_time(i, d), line.free[d], latest[d]});
            stop.poll(10 * (2 + problem.in_start[i + 1] - problem.in_start[i] + problem.out_start[i + 1] - problem.out_start[i]));
            Int start = earliest;
            const Int most = subtract(subtract(room[d], output[i]), scratch[i]);
            for (auto& queue = release[d];; queue.pop()) {
                const Int tick = queue.empty() ? NEVER : queue.top().key;
                if (tick > start && held[d] <= most) break;
                if (tick == NEVER) {
                    found.stuck = i;
                    return found;
                }
                start = std::max(start, tick);
                held[d] -= queued_bytes(queue.top().item);
            }
            found.count += start > earliest;
            timeline.append(i, d, start);
            const Int end = line.end[i];
            latest[d] = line.start[i];
            if (problem.parallel(d) && scratch[i] > 0) {
                held[d] = add(held[d], scratch[i]);
                release[d].push({end, static_cast<std::int32_t>(-1 - i)});
            }
            held[d] = add(held[d], output[i]);
            for (Int r = problem.in_start[i]; r < problem.in_start[i + 1]; ++r) {
                const Int u = problem.in_source[r], a = line.device[u], edge = problem.in_edge[r];
                Int there = end;
                if (a != d) {
                    if (!ports) continue;
                    there = problem.shared[edge] ? line.sent[u * problem.m + d]
                                                 : add(line.moves[edge], problem.transfer(problem.in_payload[r], a, d));
                }
                freed[u] = std::max(freed[u], there);
                if (--left[u] == 0) queue_release(u, a);
            }
            freed[i] = end;
            for (Int e = problem.out_start[i]; e < problem.out_start[i + 1]; ++e) {
                const Int b = device[problem.edge_target[e]];
                if (b == d || ports) ++left[i];
                else freed[i] = std::max(freed[i], add(end, problem.transfer(problem.payload[e], d, b)));
            }
            if (left[i] == 0) queue_release(i, d);
        }
        return found;
    });
}

}  // namespace engine
