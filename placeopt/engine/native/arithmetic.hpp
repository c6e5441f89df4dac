// Integers of the engine: 64-bit ticks and bytes, whose sums and products are checked.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace engine {

using Int = std::int64_t;
using Ints = std::span<const Int>;

// Above any tick; adding a duration does not overflow.
constexpr Int NEVER = Int{1} << 62;
// In place of an index: none.
constexpr Int NONE = -1;

// A sum or product of amounts exceeds 64 bits. The binding raises it as a UsageError.
struct Overflow : std::overflow_error {
    Overflow() : std::overflow_error("an amount exceeds 63 bits") {}
};

// Throws it: a call is small enough for compilers to inline what contains it.
[[noreturn]] void overflow();

#if defined(__GNUC__) || defined(__clang__)
inline Int add(Int a, Int b) {
    Int sum;
    if (__builtin_add_overflow(a, b, &sum)) overflow();
    return sum;
}
inline Int subtract(Int a, Int b) {
    Int difference;
    if (__builtin_sub_overflow(a, b, &difference)) overflow();
    return difference;
}
inline Int multiply(Int a, Int b) {
    Int product;
    if (__builtin_mul_overflow(a, b, &product)) overflow();
    return product;
}
#else
inline Int add(Int a, Int b) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) overflow();
    return a + b;
}
inline Int subtract(Int a, Int b) {
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) overflow();
    return a - b;
}
inline Int multiply(Int a, Int b) {
    if (a == 0 || b == 0) return 0;
    const bool minimum = (a == INT64_MIN && b == -1) || (b == INT64_MIN && a == -1);
    if (minimum) overflow();
    const Int product = static_cast<Int>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    if (product / b != a) overflow();
    return product;
}
#endif

// ceil(amount * num / den) for amount >= 0, num >= 0, den >= 1 and num * den < 2^62.
inline Int ratio_ceil(Int amount, Int num, Int den) {
    const Int whole = amount / den;
    const Int rest = (amount - whole * den) * num;
    return add(multiply(whole, num), rest / den + (rest % den > 0));
}

// floor(amount * num / den) under the same conditions.
inline Int ratio_floor(Int amount, Int num, Int den) {
    const Int whole = amount / den;
    return add(multiply(whole, num), (amount - whole * den) * num / den);
}

// Park and Miller's generator of random numbers; its state is from 1 to MODULUS - 1.
constexpr Int MODULUS = 2147483647;
inline Int next_random(Int state) { return state * 48271 % MODULUS; }

// A whole number of up to 127 bits, not negative.
struct Wide {
    std::uint64_t high = 0, low = 0;
    auto operator<=>(const Wide&) const = default;
    Wide operator+(const Wide& other) const {
        const std::uint64_t sum = low + other.low;
        return {high + other.high + (sum < low), sum};
    }
};

// The product of two numbers that are not negative, by halves of 32 bits.
inline Wide product(Int a, Int b) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    const std::uint64_t mask = 0xffffffff, low = (x & mask) * (y & mask);
    const std::uint64_t first = (x >> 32) * (y & mask) + (low >> 32), second = (x & mask) * (y >> 32) + (first & mask);
    return {(x >> 32) * (y >> 32) + (first >> 32) + (second >> 32), (second << 32) | (low & mask)};
}

// Raises all entries to at least `least`.
void raise_all(std::span<Int> values, Int least);

}  // namespace engine
