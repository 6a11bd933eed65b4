// The contents of a step of an ADIOS2 stream, as the text of an object: docs/formats/adios2.md specifies it.
#ifndef JUNCTURA_ADIOS2_STEP_CONTENTS_HPP
#define JUNCTURA_ADIOS2_STEP_CONTENTS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace junctura_adios2 {

enum class EntryKind { Array, Local, Value, Attribute, AttributeList };

// The part of an array that a rank has.
struct RankBlock {
    std::uint64_t rank = 0;
    std::vector<std::size_t> start, count;
};

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
    // Of an array, between the ranks of a writer: readers of the stream do not need them.
    std::vector<RankBlock> blocks;
};

std::string write_contents(const std::vector<ContentsEntry> &entries);

// Throws std::runtime_error where the text is none.
std::vector<ContentsEntry> read_contents(const std::string &text);

// Joins the contents of all ranks: the blocks of arrays, and other entries of the lowest rank that has them. Throws
// std::runtime_error where ranks disagree.
std::vector<ContentsEntry> joined_contents(const std::vector<std::vector<ContentsEntry>> &ranks);

} // namespace junctura_adios2

#endif
