// Nodes that serve a language model.
#include "fields.hpp"
#include "serving.hpp"

namespace engine {

namespace {

nb::object arrange(nb::handle serving, nb::handle site, nb::handle begin, nb::handle end, Int wanted, Int steps, Int seed,
                   Stop& stop) {
    Fields of(serving);
    ServingNodes nodes;
    nodes.layers = of.number("layers", 1);
    nodes.prefill_layers = of.number("prefill_layers", 0);
    nodes.most = of.number("most", 1);
    nodes.firsts = nb::cast<bool>(serving.attr("alike")) ? 1 : nodes.layers;
    nodes.rate = of.ints("rate", {ANY_LENGTH, nodes.firsts, nodes.most}, 0, NEVER - 1);
    const Int kinds = static_cast<Int>(nodes.rate.size()) / (nodes.firsts * nodes.most);
    nodes.kind = of.ints("kind", {ANY_LENGTH}, 0, kinds - 1);
    const Int v = nodes.v = static_cast<Int>(nodes.kind.size());
    nodes.link = of.ints("link", {v, v});
    nodes.prefill_link = of.ints("prefill_link", {v, v});
    nodes.entry = of.ints("entry", {v});
    nodes.prefill_entry = of.ints("prefill_entry", {v});
    nodes.exit = of.ints("exit", {v});
    nodes.site = ranged("site", site, v, 0, INT64_MAX);
    const Ints begins = ranged("begin", begin, v, 0, nodes.layers), ends = ranged("end", end, v, 0, nodes.layers);
    for (Int n = 0; n < v; ++n)
        if (ends[n] < begins[n] || ends[n] - begins[n] > nodes.most)
            throw Wrong("end: entry " + std::to_string(n) + " is " + std::to_string(ends[n]) + "; expected 0 to " +
                        std::to_string(nodes.most) + " layers from " + std::to_string(begins[n]) + " on");
    if (wanted < 1) throw Wrong("wanted: " + std::to_string(wanted) + "; expected at least 1");
    if (seed < 0) throw Wrong("seed: " + std::to_string(seed) + "; expected at least 0");
    ServedLayers found;
    {
        const nb::gil_scoped_release unlocked;
        found = arrange_stages(nodes, begins, ends, wanted, steps, seed, stop);
    }
    return nb::make_tuple(moved_all(std::move(found.begin)), moved_all(std::move(found.end)), found.rate);
}

}  // namespace

void bind_serving(nb::module_& module) {
    module.def(
        "arrange_stages", arrange, "serving"_a, "site"_a, "begin"_a, "end"_a, "wanted"_a, "steps"_a, "seed"_a, "stop"_a,
        nb::sig("def arrange_stages(serving: object, site: numpy.typing.NDArray[numpy.int64], "
                "begin: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64], wanted: int, steps: int, "
                "seed: int, stop: Stop) "
                "-> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], int]"),
        "Return the layers (v,) of nodes with the largest flow that a search from stages finds, and this flow.\n\n"
        "`begin` and `end` are (v,) layers of nodes; nodes with common layers hold the same ones. `site` (v,) is the site of each "
        "node. The search ends once the flow is `wanted`, after `steps` steps, or if stopped.");
}

}  // namespace engine
