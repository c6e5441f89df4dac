#include "arithmetic.hpp"

#include <algorithm>

namespace engine {

void overflow() { throw Overflow(); }

namespace {

inline void raise_each(std::span<Int> values, Int least) {
    for (Int& value : values) value = std::max(value, least);
}

}  // namespace

// The oldest x86-64 has no instruction for the maximum of 64-bit integers: where there is one, it is used. Integers have
// the same maximum on every machine.
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
__attribute__((target("avx2"))) static void raise_with_avx2(std::span<Int> values, Int least) {
    for (Int& value : values) value = value < least ? least : value;
}

void raise_all(std::span<Int> values, Int least) {
    static const bool avx2 = __builtin_cpu_supports("avx2");
    if (avx2 && values.size() >= 8) raise_with_avx2(values, least);
    else raise_each(values, least);
}
#else
void raise_all(std::span<Int> values, Int least) { raise_each(values, least); }
#endif

}  // namespace engine
