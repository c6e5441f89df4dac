// The Python module placeopt.engine._core.
#include "bindings.hpp"

namespace engine {

namespace {

// Asks Python whether a loop must end. Only the main thread runs handlers of signals.
Stop make_stop(nb::object should_stop, std::optional<double> seconds) {
    return Stop(
        [should_stop = std::move(should_stop)] {
            nb::gil_scoped_acquire locked;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return !should_stop.is_none() && nb::cast<bool>(should_stop());
        },
        seconds);
}

void raise_usage_error(const char* what) {
    nb::object type = nb::module_::import_("placeopt.errors").attr("UsageError");
    PyErr_SetString(type.ptr(), what);
}

}  // namespace

NB_MODULE(_core, module) {
    nb::set_leak_warnings(false);  // what a process still holds at its end is no fault
    module.doc() = "Loops in C++ over the arrays of a problem. They can be stopped, and run without Python's lock.";

    nb::exception<Stopped>(module, "StoppedError");
    nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
        try {
            std::rethrow_exception(raised);
        } catch (const Wrong& error) {
            raise_usage_error(error.what());
        } catch (const Overflow& error) {
            raise_usage_error((std::string(error.what()) + "; use larger units of time or memory").c_str());
        }
    });

    nb::class_<Stop>(module, "Stop", "Whether loops must end: at a signal, once `should_stop` is true, or after `seconds`.")
        .def(
            "__init__",
            [](Stop* self, nb::object should_stop, std::optional<double> seconds) {
                new (self) Stop(make_stop(std::move(should_stop), seconds));
            },
            "should_stop"_a = nb::none(), "seconds"_a = nb::none(),
            nb::sig("def __init__(self, should_stop: collections.abc.Callable[[], bool] | None = None, "
                    "seconds: float | None = None) -> None"));

    nb::class_<BoundProblem>(module, "Problem", "The checked arrays of a problem; they must not change while it exists.")
        .def(nb::init<nb::handle>(), "problem"_a,
             "Check the arrays; raises a UsageError that names the first wrong one. `model.native` keeps the result.")
        .def_prop_ro("n", [](const BoundProblem& self) { return self.value.n; }, "Number of tasks.")
        .def_prop_ro("m", [](const BoundProblem& self) { return self.value.m; }, "Number of devices.");

    bind_timeline(module);
    bind_lists(module);
    bind_ranks(module);
    bind_ready(module);
    bind_live_memory(module);
    bind_chronological(module);
    bind_clustering(module);
    bind_passes(module);
    bind_graph(module);
    bind_local_search(module);
    bind_windows(module);
    bind_critical(module);
    bind_simulation(module);
    bind_chains(module);
    bind_learning(module);
    bind_submodular(module);
    bind_destructive(module);
    bind_frontier(module);
    bind_relaxation(module);
    bind_sct(module);
    bind_stages(module);
    bind_allocation(module);
    bind_serving(module);
}

}  // namespace engine
