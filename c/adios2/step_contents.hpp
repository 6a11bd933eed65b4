// The contents of a step of an ADIOS2 stream, as the text of an object: docs/formats/adios2.md specifies it.
#ifndef JUNCTURA_ADIOS2_STEP_CONTENTS_HPP
#define JUNCTURA_ADIOS2_STEP_CONTENTS_HPP

#include <cstddef>
#include <string>
#include <vector>

namespace junctura_adios2 {

enum class EntryKind { Array, Local, Value, Attribute, AttributeList };

// A variable or an attribute.
struct ContentsEntry {
    EntryKind kind = EntryKind::Array;
    // "f8", "i4", ..., "char", "string".
    std::string type;
    std::string name;
    // Of an array.
    std::vector<std::size_t> shape;
    // Of a value (one), an attribute (one) or an attribute that is a list; numbers as texts.
    std::vector<std::string> values;
};

std::string write_contents(const std::vector<ContentsEntry> &entries);

// Throws std::runtime_error where the text is none.
std::vector<ContentsEntry> read_contents(const std::string &text);

} // namespace junctura_adios2

#endif
