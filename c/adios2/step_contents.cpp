#include "step_contents.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace junctura_adios2 {

namespace {

const std::string HEADER = "junctura-adios2 1\n";
const std::string BLOCK = "block";
const std::vector<std::string> KINDS = {"array", "local", "value", "attribute", "attributes"};
// A contents text has at most this many dimensions, entries, and words of all entries.
constexpr std::size_t DIMENSIONS_MOST = 32;
constexpr std::size_t ENTRIES_MOST = 1000000;
constexpr std::size_t WORDS_MOST = 4000000;

// The beginning of a text of another program, for an error.
std::string shown(const std::string &text) {
    std::string result = text.substr(0, 80);
    std::replace_if(result.begin(), result.end(), [](unsigned char byte) { return byte < ' ' || byte == 0x7f; }, '?');
    return '"' + result + '"';
}

// Tabs separate, and line feeds end: both are escaped, and so is the backslash.
std::string escaped(const std::string &text) {
    std::string result;
    for (const char byte : text) {
        if (byte == '\\')
            result += "\\\\";
        else if (byte == '\t')
            result += "\\t";
        else if (byte == '\n')
            result += "\\n";
        else
            result += byte;
    }
    return result;
}

std::string unescaped(const std::string &text) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); at++) {
        if (text[at] != '\\' || at + 1 == text.size()) {
            result += text[at];
            continue;
        }
        const char byte = text[++at];
        result += byte == 't' ? '\t' : byte == 'n' ? '\n' : byte;
    }
    return result;
}

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    parts.push_back(text.substr(begin));
    return parts;
}

// Numbers with an x between; those of an array have a product that can be computed.
std::vector<std::size_t> shape_of(const std::string &text, bool is_array) {
    std::vector<std::size_t> shape;
    // In bytes of the largest elements.
    std::size_t size = 64;
    if (text.size() > DIMENSIONS_MOST * 21)
        throw std::runtime_error("the contents of a step have the shape " + shown(text));
    for (const std::string &word : split(text, 'x')) {
        std::size_t extent = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), extent);
        if (error != std::errc() || end != word.data() + word.size() || shape.size() == DIMENSIONS_MOST)
            throw std::runtime_error("the contents of a step have the shape " + shown(text));
        if (is_array && __builtin_mul_overflow(size, extent, &size))
            throw std::runtime_error("the contents of a step have the shape " + shown(text));
        shape.push_back(extent);
    }
    return shape;
}

std::string joined(const std::vector<std::size_t> &numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size(); i++)
        text += (i ? "x" : "") + std::to_string(numbers[i]);
    return text;
}

// A line that follows that of an array.
void add_block(const std::vector<std::string> &words, std::vector<ContentsEntry> &entries) {
    if (words.size() == 4 && !entries.empty() && entries.back().kind == EntryKind::Array) {
        RankBlock block;
        block.rank = shape_of(words[1], false)[0];
        block.start = shape_of(words[2], false);
        block.count = shape_of(words[3], true);
        if (block.start.size() == entries.back().shape.size() && block.count.size() == block.start.size()) {
            entries.back().blocks.push_back(block);
            return;
        }
    }
    throw std::runtime_error("the contents of a step have a block of no array");
}

ContentsEntry entry_of(const std::vector<std::string> &words) {
    const auto kind = std::find(KINDS.begin(), KINDS.end(), words[0]);
    if (kind == KINDS.end() || words.size() < 4)
        throw std::runtime_error("the contents of a step have the entry " + shown(words[0]));
    ContentsEntry entry;
    entry.kind = static_cast<EntryKind>(kind - KINDS.begin());
    entry.type = words[1];
    entry.name = unescaped(words[2]);
    if (entry.kind == EntryKind::Array || entry.kind == EntryKind::Local)
        entry.shape = shape_of(words[3], true);
    else
        for (std::size_t i = 3; i < words.size(); i++)
            entry.values.push_back(unescaped(words[i]));
    return entry;
}

} // namespace

std::string write_contents(const std::vector<ContentsEntry> &entries) {
    std::string text = HEADER;
    for (const ContentsEntry &entry : entries) {
        text += KINDS[static_cast<std::size_t>(entry.kind)] + '\t' + entry.type + '\t' + escaped(entry.name);
        if (!entry.shape.empty())
            text += '\t' + joined(entry.shape);
        for (const std::string &value : entry.values)
            text += '\t' + escaped(value);
        text += '\n';
        for (const RankBlock &block : entry.blocks)
            text += BLOCK + '\t' + std::to_string(block.rank) + '\t' + joined(block.start) + '\t' + joined(block.count) + '\n';
    }
    return text;
}

std::vector<ContentsEntry> read_contents(const std::string &text) {
    if (text.compare(0, HEADER.size(), HEADER) != 0 || text.back() != '\n')
        throw std::runtime_error("an object of the stream does not contain the contents of a step");
    const auto ends_word = [](char byte) { return byte == '\t' || byte == '\n'; };
    const std::ptrdiff_t count = std::count_if(text.begin(), text.end(), ends_word);
    if (static_cast<std::size_t>(count) > WORDS_MOST)
        throw std::runtime_error("the contents of a step have too many values");
    std::vector<ContentsEntry> entries;
    std::size_t begin = HEADER.size();
    while (begin < text.size()) {
        const std::size_t end = text.find('\n', begin);
        if (entries.size() == ENTRIES_MOST)
            throw std::runtime_error("the contents of a step have too many entries");
        const std::vector<std::string> words = split(text.substr(begin, end - begin), '\t');
        if (words[0] == BLOCK)
            add_block(words, entries);
        else
            entries.push_back(entry_of(words));
        begin = end + 1;
    }
    return entries;
}

std::vector<ContentsEntry> joined_contents(const std::vector<std::vector<ContentsEntry>> &ranks) {
    std::vector<ContentsEntry> all;
    for (std::size_t rank = 0; rank < ranks.size(); rank++)
        for (const ContentsEntry &entry : ranks[rank]) {
            const auto known = std::find_if(all.begin(), all.end(),
                                            [&](const ContentsEntry &other) { return other.name == entry.name; });
            if (known == all.end()) {
                all.push_back(entry);
                continue;
            }
            if (known->kind != entry.kind || known->type != entry.type || known->shape != entry.shape)
                throw std::runtime_error("variable " + entry.name + ": rank " + std::to_string(rank) +
                                         " has another kind, type or shape than an earlier rank");
            known->blocks.insert(known->blocks.end(), entry.blocks.begin(), entry.blocks.end());
        }
    return all;
}

} // namespace junctura_adios2
