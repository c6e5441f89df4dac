// Checks of arrays, whose loops then need none.
#pragma once

#include <string>

#include "arithmetic.hpp"

namespace engine {

// An argument is wrong: the array, the entry, its value and what was expected. The binding raises it as a UsageError.
struct Wrong : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Throws Wrong about an entry.
[[noreturn]] inline void wrong(const char* name, std::size_t at, Int value, const std::string& expected) {
    throw Wrong(std::string(name) + ": entry " + std::to_string(at) + " is " + std::to_string(value) + "; expected " +
                expected);
}

// Checks that entries are at least `least` and at most `most`.
inline void check_range(const char* name, Ints values, Int least, Int most) {
    bool right = true;
    for (const Int value : values) right &= least <= value && value <= most;
    if (right) return;
    const std::string limit = most == INT64_MAX ? "" : " and at most " + std::to_string(most);
    for (std::size_t k = 0; k < values.size(); ++k)
        if (values[k] < least || values[k] > most)
            wrong(name, k, values[k], "at least " + std::to_string(least) + limit);
}

// Checks that each product of a numerator and its denominator fits.
inline void check_ratios(const char* name, Ints nums, Ints dens) {
    for (std::size_t k = 0; k < nums.size(); ++k)
        if (nums[k] > (NEVER - 1) / dens[k]) wrong(name, k, nums[k], "a product with its denominator below 2^62");
}

// Checks that `start` are the n + 1 bounds of n consecutive ranges in an array of `total` entries.
inline void check_starts(const char* name, Ints start, Int total) {
    if (start.empty()) throw Wrong(std::string(name) + ": no entries; expected at least one");
    if (start[0] != 0) wrong(name, 0, start[0], "0");
    for (std::size_t k = 1; k < start.size(); ++k)
        if (start[k] < start[k - 1]) wrong(name, k, start[k], "at least the entry before");
    if (start.back() != total) wrong(name, start.size() - 1, start.back(), std::to_string(total));
}

}  // namespace engine
