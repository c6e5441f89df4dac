// gpNet, kept up to date move by move; each move changes the edges of its tasks only.
#include "gpnet.hpp"

namespace engine {

GpNet::GpNet(const Problem& problem, Ints first, Ints device, Ints block, Ints pivots)
    : pivot(pivots.begin(), pivots.end()), source(block.back()), target(block.back()), data(4 * block.back()), problem_(problem),
      first_(first), device_(device), block_(block) {
    for (Int k = 0; k < problem.e; ++k) write(k);
}

void GpNet::move(Ints tasks, Ints nodes) {
    for (std::size_t place = 0; place < tasks.size(); ++place) pivot[tasks[place]] = nodes[place];
    for (const Int i : tasks) {
        for (Int k = problem_.out_start[i]; k < problem_.out_start[i + 1]; ++k) write(k);
        for (Int r = problem_.in_start[i]; r < problem_.in_start[i + 1]; ++r) write(problem_.in_edge[r]);
    }
}

// Writes the edges for edge k of the task graph.
void GpNet::write(Int k) {
    const Int i = problem_.edge_source[k], j = problem_.edge_target[k], bytes = problem_.payload[k];
    const std::size_t edges = source.size();
    const bool together = problem_.group[i] == problem_.group[j];
    Int slot = block_[k];
    const auto add_edge = [&](Int u, Int v) {
        source[slot] = u;
        target[slot] = v;
        const Int a = device_[u], b = device_[v], link = a * problem_.m + b;
        data[slot] = static_cast<double>(bytes);
        double& slowness = data[edges + slot];
        double& latency = data[2 * edges + slot];
        double& ticks = data[3 * edges + slot];
        slowness = latency = ticks = 0.0;
        if (a != b) {
            slowness = static_cast<double>(problem_.num[link]) / static_cast<double>(problem_.den[link]);
            latency = static_cast<double>(problem_.latency[link]);
            if (!together) ticks = static_cast<double>(problem_.transfer(bytes, a, b));
        }
        ++slot;
    };
    for (Int v = first_[j]; v < first_[j + 1]; ++v) add_edge(pivot[i], v);
    for (Int u = first_[i]; u < first_[i + 1]; ++u)
        if (u != pivot[i]) add_edge(u, pivot[j]);
}

std::vector<double> GpNet::potential(Ints start, Ints end) const {
    std::vector<double> found(device_.size());
    const double* ticks = data.data() + 3 * source.size();
    for (Int i = 0; i < problem_.n; ++i) {
        const Int low = first_[i], high = first_[i + 1];
        for (Int v = low; v < high; ++v) found[v] = static_cast<double>(problem_.release[i]);
        for (Int r = problem_.in_start[i]; r < problem_.in_start[i + 1]; ++r) {
            const Int k = problem_.in_edge[r];
            const double done = static_cast<double>(end[problem_.in_source[r]]);
            for (Int v = low; v < high; ++v) found[v] = std::max(found[v], done + ticks[block_[k] + v - low]);
        }
        for (Int v = low; v < high; ++v) found[v] -= static_cast<double>(start[i]);
    }
    return found;
}

std::vector<double> GpNet::insertion(std::span<const double> potential, Ints start, Ints end, Ints head, Ints following,
                                     Stop& stop) const {
    std::vector<double> gain(device_.size());
    for (Int i = 0; i < problem_.n; ++i) {
        for (Int v = first_[i]; v < first_[i + 1]; ++v) {
            const Int d = device_[v];
            const double ticks = static_cast<double>(problem_.work(i, d));
            double ready = potential[v] + static_cast<double>(start[i]);
            Int left = problem_.n;  // a device has no more tasks
            for (Int j = head[d]; j >= 0 && left > 0; j = following[j], --left) {
                if (j == i) continue;
                if (static_cast<double>(start[j]) - ready >= ticks) break;
                ready = std::max(ready, static_cast<double>(end[j]));
            }
            stop.poll(problem_.n - left + 1);
            gain[v] = ready + ticks - static_cast<double>(end[i]);
        }
    }
    return gain;
}

void pass_messages(const Levels& levels, Ints sender, Ints receiver, std::span<const double> data, const MessageWeights& weights,
                   std::vector<double>& found) {
    const std::size_t nodes = levels.node.size(), edges = levels.edge.size(), size = weights.message_bias.size();
    const std::size_t given = weights.update_bias.size(), more = edges == 0 ? 0 : data.size() / edges;
    std::vector<double> total(nodes * size);
    std::vector<Int> count(nodes);
    for (std::size_t level = 0; level + 1 < levels.node_bounds.size(); ++level) {
        for (Int place = levels.edge_bounds[level]; place < levels.edge_bounds[level + 1]; ++place) {
            const Int e = levels.edge[place], u = sender[e], v = receiver[e];
            ++count[v];
            for (std::size_t row = 0; row < size; ++row) {
                const double* weight = &weights.message[row * (given + more)];
                double value = weights.message_bias[row];
                for (std::size_t column = 0; column < given; ++column) value += weight[column] * found[u * given + column];
                for (std::size_t column = 0; column < more; ++column) value += weight[given + column] * data[e * more + column];
                if (value > 0) total[v * size + row] += value;
            }
        }
        for (Int place = levels.node_bounds[level]; place < levels.node_bounds[level + 1]; ++place) {
            const Int v = levels.node[place];
            for (std::size_t row = 0; row < given; ++row) {
                double value = 0.0;
                for (std::size_t column = 0; column < size; ++column) value += weights.update[row * size + column] * total[v * size + column];
                value = weights.update_bias[row] + value / static_cast<double>(std::max(count[v], Int{1}));
                if (value > 0) found[v * given + row] += value;
            }
        }
    }
}

}  // namespace engine
