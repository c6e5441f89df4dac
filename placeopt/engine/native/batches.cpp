// HBMCT: batches of independent tasks by rank, balanced over the devices.
//
// R. Sakellariou, H. Zhao, IPDPS 2004, doi:10.1109/IPDPS.2004.1303065; the departures are in
// placeopt_solvers/list_scheduling/hbmct.py.
#include "algorithms.hpp"

namespace engine {

namespace {

// A batch of independent tasks on its devices; the tasks of a device are a list in the order of arrival of their data.
template <class T>
class Batch {
public:
    Batch(T& timeline, Stop& stop)
        : timeline_(timeline), line_(timeline.line), problem_(timeline.problem), stop_(stop), members_(problem_.g, 0),
          head_(problem_.m), tail_(problem_.m), done_(problem_.m), following_(problem_.n), device_(problem_.n),
          data_(problem_.n * problem_.m) {
        for (const Int k : problem_.group) ++members_[k];
    }

    void clear() {
        std::fill(head_.begin(), head_.end(), NONE);
        std::fill(tail_.begin(), tail_.end(), NONE);
        std::copy(line_.free.begin(), line_.free.end(), done_.begin());
    }

    // Gives task i to the device that runs it fastest, then to the one where it ends first; NONE if none can take it.
    Int add_fastest(Int i) {
        const Int m = problem_.m, k = problem_.group[i];
        timeline_.compute_ready(i);
        std::copy(line_.ready.begin(), line_.ready.end(), &data_[i * m]);
        Int best = line_.home[k], least = NEVER, first = NEVER;
        for (Int d = 0; d < m && line_.home[k] < 0; ++d) {
            const Int work = problem_.work(i, d), end = add(std::max(line_.ready[d], line_.free[d]), work);
            const bool less = work < least || (work == least && end < first);
            if (less && timeline_.can_host(k, d)) {
                best = d;
                least = work;
                first = end;
            }
        }
        if (best >= 0) add_task(i, best);
        return best;
    }

    // Moves a task from the device that finishes last; false if no move helps.
    bool give_away_one() {
        const Int m = problem_.m;
        const Int last = std::max_element(done_.begin(), done_.end()) - done_.begin(), latest = done_[last];
        for (Int i = head_[last]; i >= 0; i = following_[i]) {
            if (!movable(i) || done_with(last, i, NONE) >= latest) continue;
            Int taker = NONE, least = latest;
            for (Int d = 0; d < m; ++d) {
                if (d == last || !timeline_.can_host(problem_.group[i], d)) continue;
                const Int done = done_with(d, NONE, i);
                if (done < least) {
                    taker = d;
                    least = done;
                }
            }
            if (taker >= 0) {
                remove_task(i);
                add_task(i, taker);
                return true;
            }
        }
        return false;
    }

    void append_all() {
        for (Int d = 0; d < problem_.m; ++d)
            for (Int i = head_[d]; i >= 0; i = following_[i])
                timeline_.append(i, d, std::max(timeline_.ready_time(i, d), line_.free[d]));
    }

private:
    // Whether task i is alone in its colocation group, which had no home at the start.
    bool movable(Int i) const {
        const Int k = problem_.group[i];
        return members_[k] == 1 && timeline_.groups.home[k] < 0;
    }

    Int arrival(Int i, Int d) const { return data_[i * problem_.m + d]; }

    // The tick at which device d finishes, without one of its tasks and with an extra one, NONE for none.
    Int done_with(Int d, Int without, Int extra) const {
        Int now = line_.free[d], i = head_[d];
        while (i >= 0 || extra >= 0) {
            stop_.poll(4);
            if (extra >= 0 && (i < 0 || arrival(extra, d) < arrival(i, d))) {
                now = add(std::max(now, arrival(extra, d)), problem_.work(extra, d));
                extra = NONE;
            } else {
                if (i != without) now = add(std::max(now, arrival(i, d)), problem_.work(i, d));
                i = following_[i];
            }
        }
        return now;
    }

    void add_task(Int i, Int d) {
        const Int k = problem_.group[i];
        if (line_.home[k] < 0) line_.assign_group(k, d);
        device_[i] = d;
        const Int last = tail_[d];
        if (last < 0 || arrival(last, d) <= arrival(i, d)) {
            following_[i] = NONE;
            tail_[d] = i;
            (last < 0 ? head_[d] : following_[last]) = i;
            done_[d] = add(std::max(done_[d], arrival(i, d)), problem_.work(i, d));
            return;
        }
        Int before = NONE, after = head_[d];
        for (; arrival(after, d) <= arrival(i, d); after = following_[after]) before = after;
        following_[i] = after;
        (before < 0 ? head_[d] : following_[before]) = i;
        done_[d] = done_with(d, NONE, NONE);
    }

    // Takes task i, alone in its colocation group, from its device.
    void remove_task(Int i) {
        const Int d = device_[i];
        line_.release_group(problem_.group[i]);
        Int before = NONE;
        for (Int here = head_[d]; here != i; here = following_[here]) before = here;
        (before < 0 ? head_[d] : following_[before]) = following_[i];
        if (tail_[d] == i) tail_[d] = before;
        done_[d] = done_with(d, NONE, NONE);
    }

    T& timeline_;
    Line& line_;
    const Problem& problem_;
    Stop& stop_;
    std::vector<Int> members_;             // (g,) tasks of each group
    std::vector<Int> head_, tail_, done_;  // (m,) first and last task, NONE without tasks; when the device finishes
    std::vector<Int> following_, device_;  // (n,) next task on the same device, NONE after the last; device
    std::vector<Int> data_;                // (n, m) when the data of each task is on each device
};

}  // namespace

Int balance_batches(Line& line, Ints sequence, Ints bounds, Stop& stop) {
    return with_rules(line, [&](auto& timeline) -> Int {
        const Problem& problem = line.problem;
        Batch batch(timeline, stop);
        for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
            batch.clear();
            for (Int at = bounds[k]; at < bounds[k + 1]; ++at) {
                const Int i = sequence[at];
                stop.poll(problem.m * (2 + problem.in_start[i + 1] - problem.in_start[i]));
                if (batch.add_fastest(i) < 0) return i;
            }
            while (batch.give_away_one()) {
            }
            batch.append_all();
        }
        return NONE;
    });
}

}  // namespace engine
