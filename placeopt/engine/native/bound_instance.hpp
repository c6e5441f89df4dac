// The arrays of placeopt_solvers._local_search.instance, checked, for the searches.
#pragma once

#include "bindings.hpp"
#include "local_search.hpp"

namespace engine {

struct BoundInstance : Owning<SearchProblem> {
    explicit BoundInstance(nb::handle of) {
        SearchProblem& p = value;
        const auto ints = [&](const char* name, Shape shape, Int least = 0, Int most = INT64_MAX) {
            const Ints found = keep<Int>(name, of.attr(name), shape);
            check_range(name, found, least, most);
            return found;
        };
        const auto flag = [&](const char* name) { return nb::cast<bool>(of.attr(name)); };
        p.capacity = ints("capacity", {ANY_LENGTH});
        p.release = ints("release", {ANY_LENGTH}, 0, NEVER - 1);
        p.source = ints("source", {ANY_LENGTH}, 0, static_cast<Int>(p.release.size()) - 1);
        p.memory = ints("memory", {ANY_LENGTH});
        const Int n = p.n = static_cast<Int>(p.release.size()), m = p.m = static_cast<Int>(p.capacity.size());
        const Int e = p.e = static_cast<Int>(p.source.size()), g = p.g = static_cast<Int>(p.memory.size());
        if (n == 0 || m == 0) throw Wrong("instance: no tasks or no devices; expected at least one of both");
        p.group = ints("group", {n}, 0, g - 1);
        p.member_start = ints("member_start", {g + 1});
        p.member = ints("member", {n}, 0, n - 1);
        check_starts("member_start", p.member_start, n);
        for (Int k = 0; k < g; ++k)
            if (p.member_start[k] == p.member_start[k + 1]) throw Wrong("member_start: group " + std::to_string(k) + " has no task");
        p.duration = ints("duration", {n, m}, 0, NEVER - 1);
        p.deadline = ints("deadline", {n});
        p.tail = ints("tail", {n});
        p.in_start = ints("in_start", {n + 1});
        p.out_start = ints("out_start", {n + 1});
        check_starts("in_start", p.in_start, e);
        check_starts("out_start", p.out_start, e);
        p.payload = ints("payload", {e});
        p.shared = keep<bool>("shared", of.attr("shared"), {e});
        p.target = ints("target", {e}, 0, n - 1);
        p.slot = ints("slot", {e}, 0, e - 1);
        for (Int u = 0; u < n; ++u)
            for (Int k = p.out_start[u]; k < p.out_start[u + 1]; ++k)
                if (p.source[p.slot[k]] != u) throw Wrong("slot: entry " + std::to_string(k) + " is not an in-edge from task " + std::to_string(u));
        for (Int i = 0; i < n; ++i)
            for (Int k = p.in_start[i]; k < p.in_start[i + 1]; ++k) {
                const auto *first = &p.target[0] + p.out_start[p.source[k]], *last = &p.target[0] + p.out_start[p.source[k] + 1];
                if (std::find(first, last, i) == last) throw Wrong("source: in-edge " + std::to_string(k) + " is not among the out-edges");
            }
        p.latency = ints("latency", {m, m}, 0, e > 0 ? NEVER - 1 : INT64_MAX);
        p.num = ints("byte_ticks_num", {m, m});
        p.den = ints("byte_ticks_den", {m, m}, 1);
        p.energy_num = ints("byte_energy_num", {m, m});
        p.energy_den = ints("byte_energy_den", {m, m}, 1);
        check_ratios("byte_ticks_num", p.num, p.den);
        check_ratios("byte_energy_num", p.energy_num, p.energy_den);
        p.label = ints("label", {m});
        for (const Int label : p.label) p.classes = std::max(p.classes, label < m ? label + 1 : 0);
        check_range("label", p.label, 0, p.classes - 1);
        p.table = ints("table", {ANY_LENGTH, ANY_LENGTH, ANY_LENGTH}, 0, NEVER - 1);
        const Int payloads = static_cast<Int>(p.table.size()) / (p.classes * p.classes);
        if (payloads * p.classes * p.classes != static_cast<Int>(p.table.size())) throw Wrong("table: expected the classes of `label`");
        p.kind = ints("kind", {e}, 0, p.table.empty() ? INT64_MAX : payloads - 1);
        p.feasible = keep<bool>("feasible", of.attr("feasible"), {g, m});
        p.apart_start = ints("apart_start", {g + 1});
        p.apart = ints("apart", {ANY_LENGTH}, 0, g - 1);
        check_starts("apart_start", p.apart_start, static_cast<Int>(p.apart.size()));
        p.resident = ints("resident", {n});
        p.output = ints("output", {n});
        p.scratch = ints("scratch", {n});
        keep_rules(p, of.attr("problem"), n, m);
        p.budgets = keep_budgets(of, g, m);
        p.budget_bytes = keep<double>("budget_bytes", of.attr("budget_bytes"), {static_cast<Int>(p.budgets.left.size())});
        p.charge = keep<double>("charge", of.attr("charge"), {n, m});
        const auto weight = array<double>("weight", of.attr("weight"), {5}), price = array<double>("price", of.attr("price"), {3});
        std::copy(weight.begin(), weight.end(), p.weight.begin());
        std::copy(price.begin(), price.end(), p.price.begin());
        p.bound = nb::cast<Int>(of.attr("bound"));
        p.due = flag("due");
        p.peak = flag("peak");
        p.timed = flag("timed");
        p.priced = flag("priced");
    }

    // Loads a topological order (n,) and devices (n,) into a search.
    template <class Search>
    void load(Search& search, nb::handle order_given, nb::handle device) const {
        const auto tasks = order(order_given), devices = array<Int>("device", device, {value.n});
        check_range("device", devices, 0, value.m - 1);
        const nb::gil_scoped_release unlocked;
        search.load(tasks, devices);
    }

    // Checks a topological order (n,) of the tasks.
    Ints order(nb::handle given) const {
        const SearchProblem& p = value;
        const auto tasks = array<Int>("order", given, {p.n});
        check_range("order", tasks, 0, p.n - 1);
        std::vector<bool> listed(p.n, false);
        for (const Int i : tasks) {
            if (listed[i]) throw Wrong("order: task " + std::to_string(i) + " twice; expected each task once");
            for (Int k = p.in_start[i]; k < p.in_start[i + 1]; ++k)
                if (!listed[p.source[k]])
                    throw Wrong("order: task " + std::to_string(i) + "; expected its producer " + std::to_string(p.source[k]) + " before it");
            listed[i] = true;
        }
        return tasks;
    }
};

}  // namespace engine
