// Attributes of a Python object as checked arrays, for the bindings of pipelines.
#pragma once

#include "bindings.hpp"
#include "stages.hpp"

namespace engine {

// Reads attributes of a Python object as checked arrays, which it keeps alive.
struct Fields {
    explicit Fields(nb::handle given) : of(given) {}

    nb::handle of;
    std::vector<nb::object> arrays;

    template <class T>
    std::span<const T> entries(const char* name, Shape shape) {
        return array<T>(name, arrays.emplace_back(of.attr(name)), shape);
    }
    Ints ints(const char* name, Shape shape, Int least = 0, Int most = INT64_MAX) {
        const Ints found = entries<Int>(name, shape);
        check_range(name, found, least, most);
        return found;
    }
    Flags flags(const char* name, Shape shape) { return entries<bool>(name, shape); }
    Int number(const char* name, Int least) const {
        const Int found = nb::cast<Int>(of.attr(name));
        if (found < least) throw Wrong(std::string(name) + ": " + std::to_string(found) + "; expected at least " + std::to_string(least));
        return found;
    }
    bool flag(const char* name) const { return nb::cast<bool>(of.attr(name)); }
    // `count` lists NAME of numbers below `below`; their bounds are NAME_start.
    Rows rows(const char* name, Int count, Int below) {
        const std::string bounds = std::string(name) + "_start";
        const Rows found{ints(bounds.c_str(), {count + 1}), ints(name, {ANY_LENGTH}, 0, below - 1)};
        check_starts(bounds.c_str(), found.start, static_cast<Int>(found.item.size()));
        return found;
    }
    // Ratios num / den whose products are below 2^62.
    std::pair<Ints, Ints> ratios(const char* num, const char* den, Shape shape) {
        const Ints nums = ints(num, shape), dens = ints(den, shape, 1);
        check_ratios(num, nums, dens);
        return {nums, dens};
    }
    Tracks tracks(Int devices) {
        const auto [num, den] = ratios("ring_num", "ring_den", {devices});
        return {ints("mode", {devices}, 0, 3), flags("free", {devices}), ints("ring_latency", {devices}), num, den};
    }
};

}  // namespace engine
