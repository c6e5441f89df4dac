// NumPy arrays as spans, and back. Every error names the argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <initializer_list>
#include <vector>

#include "problem.hpp"

namespace nb = nanobind;

namespace engine {

using Shape = std::initializer_list<Int>;

inline std::string text(nb::dlpack::dtype type) {
    const auto bits = std::to_string(type.bits);
    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
        case nb::dlpack::dtype_code::Bool: return "bool";
        case nb::dlpack::dtype_code::Int: return "int" + bits;
        case nb::dlpack::dtype_code::UInt: return "uint" + bits;
        case nb::dlpack::dtype_code::Float: return "float" + bits;
        default: return "entries of another type";
    }
}

template <class Sizes>
std::string shape_text(const Sizes& sizes) {
    std::string found = "(";
    for (const Int size : sizes) found += (found.size() > 1 ? ", " : "") + std::to_string(size);
    return found + ")";
}

// Any length, where a shape is expected.
constexpr Int ANY_LENGTH = -1;

// A span over a C-contiguous array of the given type and shape, without a copy. The caller keeps the array alive, and
// does not write to it while the span is in use.
template <class T>
std::span<const T> array(const char* name, nb::handle given, Shape shape) {
    const auto wrong = [name](const std::string& what) { throw Wrong(std::string(name) + ": " + what); };
    const auto expected = [&] { return "; expected " + text(nb::dtype<T>()) + ", C-contiguous, of shape " + shape_text(shape); };
    nb::ndarray<nb::ro> found;
    if (!nb::try_cast(given, found)) wrong(nb::inst_name(given).c_str() + expected());
    if (found.device_type() != nb::device::cpu::value) wrong("an array outside main memory" + expected());
    if (found.dtype() != nb::dtype<T>()) wrong("an array of " + text(found.dtype()) + expected());
    std::vector<Int> sizes(found.ndim());
    for (std::size_t k = 0; k < sizes.size(); ++k) sizes[k] = static_cast<Int>(found.shape(k));
    bool right = sizes.size() == shape.size();
    for (std::size_t k = 0; right && k < sizes.size(); ++k)
        right = shape.begin()[k] == ANY_LENGTH || shape.begin()[k] == sizes[k];
    if (!right) wrong("an array of shape " + shape_text(sizes) + expected());
    Int stride = 1;
    for (std::size_t k = sizes.size(); k-- > 0 && found.size() > 0; stride *= sizes[k])
        if (sizes[k] > 1 && found.stride(k) != stride) wrong("an array that is not contiguous" + expected());
    const auto* data = static_cast<const std::byte*>(found.data());
    if (found.size() > 0 && reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0)
        wrong("an array that is not aligned" + expected());
    if constexpr (std::is_same_v<T, bool>)
        for (std::size_t k = 0; k < found.size(); ++k)
            if (data[k] > std::byte{1}) wrong("entry " + std::to_string(k) + " is neither False nor True" + expected());
    return {reinterpret_cast<const T*>(data), found.size()};
}

template <class T>
using Array = nb::ndarray<nb::numpy, T>;

// A read-only view of a vector that `owner` holds.
template <class T>
Array<const T> view(const std::vector<T>& values, nb::handle owner, Shape shape) {
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    return Array<const T>(values.data(), sizes.size(), sizes.data(), owner);
}

// A new array with the entries of a vector.
template <class T>
Array<T> moved(std::vector<T>&& values, Shape shape) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    return Array<T>(held->data(), sizes.size(), sizes.data(), owner);
}

template <class T>
Array<T> moved_all(std::vector<T>&& values) {
    const Int count = static_cast<Int>(values.size());
    return moved(std::move(values), {count});
}

inline Array<bool> moved_flags(const std::vector<char>& values) {
    auto* held = new bool[values.size()];
    nb::capsule owner(held, [](void* pointer) noexcept { delete[] static_cast<bool*>(pointer); });
    std::copy(values.begin(), values.end(), held);
    const std::size_t sizes[] = {values.size()};
    return Array<bool>(held, 1, sizes, owner);
}

// An array (length,) of integers from `least` to `most`.
inline Ints ranged(const char* name, nb::handle given, Int length, Int least, Int most) {
    const auto values = array<Int>(name, given, {length});
    check_range(name, values, least, most);
    return values;
}

}  // namespace engine
