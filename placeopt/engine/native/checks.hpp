// Checks of arrays, whose loops then need none.
#pragma once

#include <string>

#include "arithmetic.hpp"

namespace engine {

// An argument is wrong: the array, the entry, its value and what was expected. The binding raises it as a UsageError.
struct Wrong : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Checks that entries are at least `least` and at most `most`.
void check_range(const char* name, Ints values, Int least, Int most);

// Checks that `start` are the n + 1 bounds of n consecutive ranges in an array of `total` entries.
void check_starts(const char* name, Ints start, Int total);

// Throws Wrong about an entry.
[[noreturn]] void wrong(const char* name, std::size_t at, Int value, const std::string& expected);

}  // namespace engine
