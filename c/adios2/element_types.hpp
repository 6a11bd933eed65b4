// Names of element types, and numbers as texts that read back equal.
#ifndef JUNCTURA_ADIOS2_ELEMENT_TYPES_HPP
#define JUNCTURA_ADIOS2_ELEMENT_TYPES_HPP

#include <charconv>
#include <complex>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace junctura_adios2 {

template <typename T> struct IsComplex : std::false_type {};
template <typename T> struct IsComplex<std::complex<T>> : std::true_type {};

// "f8", "i4", ...; ADIOS2 distinguishes `char` from both types of 8 bits. Empty for a type that is not supported.
template <typename T> std::string type_name() {
    if constexpr (std::is_same_v<T, std::string>)
        return "string";
    else if constexpr (std::is_same_v<T, char>)
        return "char";
    else if constexpr (std::is_same_v<T, long double>)
        return "";
    else if constexpr (IsComplex<T>::value)
        return "c" + std::to_string(sizeof(T));
    else if constexpr (std::is_floating_point_v<T>)
        return "f" + std::to_string(sizeof(T));
    else
        return (std::is_signed_v<T> ? "i" : "u") + std::to_string(sizeof(T));
}

// The name that Junctura has for the elements of an array.
inline std::string array_type(const std::string &type) { return type == "char" ? "i1" : type; }

template <typename T> std::string text_of(const T &value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value;
    } else if constexpr (IsComplex<T>::value) {
        return text_of(value.real()) + ' ' + text_of(value.imag());
    } else if constexpr (std::is_same_v<T, char>) {
        return std::to_string(static_cast<int>(value));
    } else {
        char text[64];
        return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
    }
}

// Throws std::runtime_error where the text is no number of the type.
template <typename T> T value_of(const std::string &text) {
    if constexpr (std::is_same_v<T, std::string>) {
        return text;
    } else if constexpr (IsComplex<T>::value) {
        const std::size_t space = text.find(' ');
        if (space == std::string::npos)
            throw std::runtime_error("\"" + text.substr(0, 80) + "\" is no complex number");
        using Part = typename T::value_type;
        return T(value_of<Part>(text.substr(0, space)), value_of<Part>(text.substr(space + 1)));
    } else {
        std::conditional_t<std::is_same_v<T, char>, int, T> value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
            throw std::runtime_error("\"" + text.substr(0, 80) + "\" is no number of the type " + type_name<T>());
        return static_cast<T>(value);
    }
}

} // namespace junctura_adios2

#endif
