#include "stream_engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "element_types.hpp"

extern "C" {
#include "../catalyst/mpi_ranks.h"
}

namespace junctura_adios2 {

namespace {

using adios2::Dims;
using adios2::ShapeID;

const std::string CONTENTS = "contents";
const std::string END = "end";

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error("junctura: adios2: " + what); }

// Seconds of the parameter Timeout.
double timeout_of(const std::string &text) {
    std::size_t end = 0;
    double seconds = -1;
    try {
        seconds = std::stod(text, &end);
    } catch (const std::logic_error &) {
    }
    if (end != text.size() || !(seconds > 0))
        fail("the parameter Timeout is \"" + text + "\"; expected a number of seconds");
    return seconds;
}

std::vector<std::uint64_t> numbers_of(const Dims &dims) { return {dims.begin(), dims.end()}; }

std::size_t product(const Dims &dims) {
    std::size_t elements = 1;
    for (const std::size_t extent : dims)
        elements *= extent;
    return elements;
}

// A quoted value of a selector.
std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char byte : text) {
        if (byte == '"' || byte == '\\')
            result += '\\';
        result += byte;
    }
    return result + '"';
}

bool is_attribute(const ContentsEntry &entry) {
    return entry.kind == EntryKind::Attribute || entry.kind == EntryKind::AttributeList;
}

std::string text_of(const junctura::Object &object) {
    const junctura::Span<const char> bytes = object.data<char>();
    return {bytes.begin(), bytes.end()};
}

} // namespace

StreamEngine::StreamEngine(adios2::IO io, const std::string &name, adios2::Mode mode)
    : PluginEngineInterface(io, name, mode), stream_(parameter("Stream", name)), group_(group()), pool_([this] {
          const std::string url = parameter("Pool", "");
          if (url.empty() && std::getenv("JUNCTURA_POOL") == nullptr)
              fail("no pool is named: set the parameter Pool, or the environment variable JUNCTURA_POOL");
          return junctura::Pool(url, parameter("PoolOptions", ""));
      }()) {
    if (mode != adios2::Mode::Write && mode != adios2::Mode::Read)
        fail("stream " + stream_ + ": only the modes Write and Read are supported");
    const std::string order = parameter("Order", "C");
    if (order != "C" && order != "F")
        fail("the parameter Order is \"" + order + "\"; expected C or F");
    order_ = order == "F" ? JCT_ORDER_F : JCT_ORDER_C;
}

// The ranks that write the stream. A reader needs none: each rank of it reads what it selects.
RankGroup StreamEngine::group() const {
    const std::string ranks = parameter("Ranks", "1");
    const double timeout_s = timeout_of(parameter("Timeout", "600"));
    std::int64_t rank = 0, count = 1;
    if (ranks != "1" && ranks != "mpi")
        fail("the parameter Ranks is \"" + ranks + "\"; expected mpi: all ranks of MPI, or of mpirun, srun or flux");
    if (ranks == "mpi" && m_OpenMode == adios2::Mode::Write)
        mpi_ranks_find(false, 0, &rank, &count);
    return {stream_, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(count), timeout_s};
}

std::string StreamEngine::parameter(const std::string &name, const std::string &otherwise) const {
    // ADIOS2 does not distinguish upper case in names of parameters.
    const auto lower = [](std::string text) {
        std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
        return text;
    };
    for (const auto &[its_name, value] : m_IO.Parameters())
        if (lower(its_name) == lower(name))
            return value;
    return otherwise;
}

junctura::Attributes StreamEngine::key(const std::string &row, const std::string &column) const {
    return {{"bucket", stream_}, {"row", row}, {"column", column}};
}

std::string StreamEngine::options(const std::string &more) const {
    const std::string given = more.empty() ? "" : parameter(more, "");
    return "schema=rowcol" + (given.empty() ? "" : "," + given);
}

adios2::StepStatus StreamEngine::BeginStep(adios2::StepMode, float timeout_s) {
    if (in_step_)
        fail("stream " + stream_ + ": BeginStep is called twice; call EndStep between");
    if (m_OpenMode == adios2::Mode::Write) {
        if (began_)
            step_++;
        in_step_ = began_ = true;
        return adios2::StepStatus::OK;
    }
    const std::size_t wanted = began_ ? step_ + 1 : 0;
    std::optional<std::string> contents;
    try {
        contents = demand_contents(wanted, timeout_s < 0 ? junctura::forever : static_cast<double>(timeout_s));
    } catch (const junctura::Error &error) {
        if (error.code() == JCT_TIMEOUT || error.code() == JCT_NOT_FOUND)
            return adios2::StepStatus::NotReady;
        std::cerr << "junctura: adios2: stream " << stream_ << ": " << error.what() << '\n';
        return adios2::StepStatus::OtherError;
    }
    if (!contents)
        return adios2::StepStatus::EndOfStream;
    step_ = wanted;
    in_step_ = began_ = true;
    entries_.clear();
    attributes_.clear();
    for (ContentsEntry &entry : read_contents(*contents)) {
        if (is_attribute(entry))
            attributes_.push_back(std::move(entry));
        else
            entries_[entry.name] = std::move(entry);
    }
    define_variables();
    return adios2::StepStatus::OK;
}

// The contents of a step; none where the stream has ended before it. Throws an Error where it does not arrive in time, and
// where it was removed.
std::optional<std::string> StreamEngine::demand_contents(std::size_t step, double timeout_s) const {
    const std::string column = std::to_string(step);
    const junctura::Object found =
        pool_.demand("bucket=" + quoted(stream_) + ",row=" + CONTENTS + ",column=" + column + "/" + END, timeout_s);
    if (found.get("column") != END)
        return text_of(found);
    if (step >= end_of_stream(text_of(found)))
        return std::nullopt;
    return text_of(pool_.demand_key(key(CONTENTS, column), 0, "schema=rowcol"));
}

std::size_t StreamEngine::end_of_stream(const std::string &contents) const {
    for (const ContentsEntry &entry : read_contents(contents))
        if (entry.kind == EntryKind::Value && entry.name == "steps" && !entry.values.empty())
            return value_of<std::size_t>(entry.values[0]);
    fail("stream " + stream_ + ": the object of its end is damaged");
}

void StreamEngine::EndStep() {
    if (!in_step_)
        fail("stream " + stream_ + ": EndStep without BeginStep");
    in_step_ = false;
    if (m_OpenMode == adios2::Mode::Read)
        return;
    std::vector<ContentsEntry> variables;
    try {
        variables = variables_of_all();
        for (const ContentsEntry &entry : variables)
            offer(entry);
        // A reader that has the contents can read all pieces.
        group_.gather(pool_, std::to_string(step_) + "/offered", "");
        if (group_.rank() == 0)
            offer_contents(std::move(variables));
    } catch (const std::exception &error) {
        fail("stream " + stream_ + ", step " + std::to_string(step_) + ": " + error.what());
    }
    pending_.clear();
}

// The variables of this step, with the blocks of all ranks.
std::vector<ContentsEntry> StreamEngine::variables_of_all() const {
    std::vector<ContentsEntry> mine;
    for (const PendingVariable &variable : pending_) {
        mine.push_back(variable.entry);
        for (const PendingBlock &block : variable.blocks)
            if (product(block.count) != 0)
                mine.back().blocks.push_back({group_.rank(), block.start, block.count});
    }
    if (group_.ranks() == 1)
        return mine;
    const std::string name = std::to_string(step_);
    std::vector<std::vector<ContentsEntry>> ranks;
    for (const std::string &part : group_.gather(pool_, name + "/blocks", write_contents(mine)))
        ranks.push_back(read_contents(part));
    return read_contents(group_.broadcast(pool_, name + "/layouts", write_contents(joined_contents(ranks))));
}

void StreamEngine::DoClose(int) {
    if (closed_)
        return;
    closed_ = true;
    if (m_OpenMode == adios2::Mode::Read)
        return;
    // A program without steps has written one; with several ranks, the others may have.
    if (!began_ && (group_.ranks() > 1 || !pending_.empty()))
        in_step_ = began_ = true;
    if (in_step_)
        EndStep();
    if (group_.rank() != 0)
        return;
    ContentsEntry steps;
    steps.kind = EntryKind::Value;
    steps.type = "u8";
    steps.name = "steps";
    steps.values = {std::to_string(began_ ? step_ + 1 : 0)};
    pool_.offer(key(CONTENTS, END), write_contents({steps}), options(""));
}

void StreamEngine::PerformPuts() {
    for (PendingVariable &variable : pending_)
        for (PendingBlock &block : variable.blocks)
            if (block.data) {
                block.copy.assign(block.data, block.data + product(block.count) * variable.element_bytes);
                block.data = nullptr;
            }
}

template <typename T> void StreamEngine::put(adios2::Variable<T> variable, const T *values, bool keeps) {
    const std::string type = type_name<T>(), name = variable.Name();
    if (m_OpenMode != adios2::Mode::Write)
        fail("stream " + stream_ + ": Put of " + name + " while it is read");
    if (type.empty())
        fail("variable " + name + ": elements of the type " + variable.Type() + " are not supported");
    const ShapeID shape_id = variable.ShapeID();
    if (group_.ranks() > 1 && (shape_id == ShapeID::LocalValue || shape_id == ShapeID::LocalArray))
        fail("variable " + name + ": local values and arrays of several ranks are not supported; give it a shape");
    auto pending = std::find_if(pending_.begin(), pending_.end(),
                                [&](const PendingVariable &other) { return other.entry.name == name; });
    if (pending == pending_.end())
        pending = pending_.insert(pending_.end(), PendingVariable());
    pending->entry.name = name;
    pending->entry.type = type;
    pending->element_bytes = sizeof(T);
    if (shape_id == ShapeID::GlobalValue || shape_id == ShapeID::LocalValue || std::is_same_v<T, std::string>) {
        pending->entry.kind = EntryKind::Value;
        pending->entry.values = {junctura_adios2::text_of(values[0])};
        return;
    }
    if (shape_id == ShapeID::JoinedArray)
        fail("variable " + name + ": joined arrays are not supported; give it a shape");
    const bool local = shape_id == ShapeID::LocalArray;
    pending->entry.kind = local ? EntryKind::Local : EntryKind::Array;
    pending->entry.shape = local ? variable.Count() : variable.Shape();
    if (local && !pending->blocks.empty())
        fail("variable " + name + ": local arrays with several blocks are not supported; give it a shape");
    PendingBlock block;
    block.count = variable.Count();
    block.start = local ? Dims(block.count.size(), 0) : variable.Start();
    if (block.start.empty())
        block.start.assign(block.count.size(), 0);
    const auto *bytes = reinterpret_cast<const unsigned char *>(values);
    if (keeps)
        block.data = bytes;
    else
        block.copy.assign(bytes, bytes + product(block.count) * sizeof(T));
    pending->blocks.push_back(std::move(block));
}

// Offers this rank's piece of an array.
void StreamEngine::offer(const ContentsEntry &entry) const {
    const auto pending = std::find_if(pending_.begin(), pending_.end(),
                                      [&](const PendingVariable &other) { return other.entry.name == entry.name; });
    if (entry.kind == EntryKind::Value || product(entry.shape) == 0 || pending == pending_.end())
        return;
    std::vector<junctura::Block> blocks;
    for (const RankBlock &block : entry.blocks)
        blocks.push_back({block.rank, numbers_of(block.start), numbers_of(block.count)});
    std::vector<const PendingBlock *> mine;
    std::size_t bytes = 0;
    for (const PendingBlock &block : pending->blocks)
        if (product(block.count) != 0) {
            mine.push_back(&block);
            bytes += product(block.count) * pending->element_bytes;
        }
    if (mine.empty() && group_.ranks() > 1)
        return;
    try {
        const junctura::Layout layout(numbers_of(entry.shape), blocks, order_);
        const junctura::Attributes attributes = key(std::to_string(step_), entry.name);
        const unsigned char *data = mine.empty() ? nullptr : mine.front()->bytes();
        std::vector<unsigned char> gathered;
        if (mine.size() > 1) {
            gathered.reserve(bytes);
            for (const PendingBlock *block : mine)
                gathered.insert(gathered.end(), block->bytes(), block->bytes() + product(block->count) * pending->element_bytes);
            data = gathered.data();
        }
        junctura::detail::check(jct_offer_piece(pool_.get(), layout.get(), group_.rank(), array_type(entry.type).c_str(),
                                                attributes.get(), data, bytes, options("Options").c_str()));
    } catch (const junctura::Error &error) {
        throw std::runtime_error("variable " + entry.name + ": " + error.what());
    }
}

// Offers what the step contains, and all attributes of the IO.
void StreamEngine::offer_contents(std::vector<ContentsEntry> entries) {
    for (ContentsEntry &entry : entries)
        entry.blocks.clear();
    for (const auto &[name, parameters] : m_IO.AvailableAttributes()) {
        ContentsEntry entry;
        entry.name = name;
        const std::string type = m_IO.AttributeType(name);
#define JUNCTURA_ADIOS2_ATTRIBUTE(T)                                                                                   \
    if (type == adios2::GetType<T>() && !type_name<T>().empty()) {                                                     \
        const adios2::Attribute<T> attribute = m_IO.InquireAttribute<T>(name);                                         \
        entry.kind = attribute.IsValue() ? EntryKind::Attribute : EntryKind::AttributeList;                            \
        entry.type = type_name<T>();                                                                                   \
        for (const T &value : attribute.Data())                                                                        \
            entry.values.push_back(junctura_adios2::text_of(value));                                                   \
    }
        ADIOS2_FOREACH_ATTRIBUTE_STDTYPE_1ARG(JUNCTURA_ADIOS2_ATTRIBUTE)
#undef JUNCTURA_ADIOS2_ATTRIBUTE
        if (entry.type.empty())
            throw std::runtime_error("attribute " + name + ": the type " + type + " is not supported");
        if (!entry.values.empty())
            entries.push_back(std::move(entry));
    }
    pool_.offer(key(CONTENTS, std::to_string(step_)), write_contents(entries), options("Options"));
}

template <typename T> void StreamEngine::define(const ContentsEntry &entry) {
    if (type_name<T>() != entry.type)
        return;
    if (is_attribute(entry)) {
        std::vector<T> values;
        for (const std::string &text : entry.values)
            values.push_back(value_of<T>(text));
        m_IO.RemoveAttribute(entry.name);
        if (entry.kind == EntryKind::Attribute)
            m_IO.DefineAttribute<T>(entry.name, values[0]);
        else
            m_IO.DefineAttribute<T>(entry.name, values.data(), values.size());
        return;
    }
    adios2::Variable<T> variable = m_IO.InquireVariable<T>(entry.name);
    const Dims start(entry.shape.size(), 0);
    if (variable && entry.kind == EntryKind::Array && variable.ShapeID() == ShapeID::GlobalArray) {
        variable.SetShape(entry.shape);
        variable.SetSelection({start, entry.shape});
        return;
    }
    if (variable && entry.kind == EntryKind::Value)
        return;
    m_IO.RemoveVariable(entry.name);
    if (entry.kind == EntryKind::Value)
        m_IO.DefineVariable<T>(entry.name);
    else if (entry.kind == EntryKind::Local)
        m_IO.DefineVariable<T>(entry.name, {}, {}, entry.shape);
    else
        m_IO.DefineVariable<T>(entry.name, entry.shape, start, entry.shape);
}

// Makes the IO have the variables of the step, and no others.
void StreamEngine::define_variables() {
    for (const auto &[name, parameters] : m_IO.AvailableVariables(true))
        if (entries_.count(name) == 0 || m_IO.VariableType(name).empty())
            m_IO.RemoveVariable(name);
    const auto define_any = [this](const ContentsEntry &entry) {
#define JUNCTURA_ADIOS2_DEFINE(T) define<T>(entry);
        ADIOS2_FOREACH_ATTRIBUTE_STDTYPE_1ARG(JUNCTURA_ADIOS2_DEFINE)
#undef JUNCTURA_ADIOS2_DEFINE
    };
    for (const auto &[name, entry] : entries_)
        define_any(entry);
    for (const ContentsEntry &entry : attributes_)
        define_any(entry);
}

const ContentsEntry &StreamEngine::entry_of(const std::string &name) const {
    const auto entry = entries_.find(name);
    if (!in_step_ || entry == entries_.end())
        fail("stream " + stream_ + ": variable " + name + " is not in step " + std::to_string(step_));
    return entry->second;
}

template <typename T>
void StreamEngine::get(adios2::Variable<T> variable, T *values, const Dims &start, const Dims &count) {
    const std::string name = variable.Name();
    const ContentsEntry &entry = entry_of(name);
    if (entry.kind == EntryKind::Value) {
        values[0] = value_of<T>(entry.values.at(0));
        return;
    }
    if constexpr (!std::is_same_v<T, std::string> && !std::is_same_v<T, long double>) {
        if (start.size() != entry.shape.size() || count.size() != entry.shape.size())
            fail("variable " + name + ": the selection does not have " + std::to_string(entry.shape.size()) + " dimensions");
        for (std::size_t i = 0; i < start.size(); i++)
            if (start[i] > entry.shape[i] || count[i] > entry.shape[i] - start[i])
                fail("variable " + name + ": the selection exceeds the shape in dimension " + std::to_string(i));
        if (product(count) == 0)
            return;
        const junctura::Layout layout(numbers_of(entry.shape), {{0, numbers_of(start), numbers_of(count)}}, order_);
        const junctura::Attributes attributes = key(std::to_string(step_), name);
        const int code = jct_demand_array(pool_.get(), attributes.get(), layout.get(), 0, array_type(entry.type).c_str(), values,
                                          product(count) * sizeof(T), "schema=rowcol", 0);
        if (code != JCT_OK)
            fail("stream " + stream_ + ", step " + std::to_string(step_) + ", variable " + name + ": " + jct_error_text());
    }
}

#define JUNCTURA_ADIOS2_DEFINE(T)                                                                                      \
    void StreamEngine::DoPutSync(adios2::Variable<T> variable, const T *values) { put(variable, values, false); }      \
    void StreamEngine::DoPutDeferred(adios2::Variable<T> variable, const T *values) { put(variable, values, true); }   \
    void StreamEngine::DoGetSync(adios2::Variable<T> variable, T *values) {                                            \
        const bool local = variable.ShapeID() == ShapeID::LocalArray;                                                  \
        get(variable, values, local ? Dims(variable.Count().size(), 0) : variable.Start(), variable.Count());          \
    }                                                                                                                  \
    void StreamEngine::DoGetDeferred(adios2::Variable<T> variable, T *values) { DoGetSync(variable, values); }         \
    void StreamEngine::DoGetSync(adios2::Variable<T> variable, T *values, const adios2::core::Selection &selection) {  \
        if (selection.HasMemorySelection())                                                                            \
            fail("variable " + variable.Name() + ": memory selections are not supported");                             \
        if (selection.GetSelectionType() == adios2::SelectionType::BoundingBox)                                        \
            get(variable, values, selection.GetStart(), selection.GetCount());                                         \
        else                                                                                                           \
            get(variable, values, Dims(entry_of(variable.Name()).shape.size(), 0), entry_of(variable.Name()).shape);   \
    }                                                                                                                  \
    void StreamEngine::DoGetDeferred(adios2::Variable<T> variable, T *values,                                          \
                                     const adios2::core::Selection &selection) {                                       \
        DoGetSync(variable, values, selection);                                                                        \
    }
ADIOS2_FOREACH_STDTYPE_1ARG(JUNCTURA_ADIOS2_DEFINE)
#undef JUNCTURA_ADIOS2_DEFINE

#define JUNCTURA_ADIOS2_DEFINE(T)                                                                                      \
    void StreamEngine::DoPut(adios2::Variable<T> variable, adios2::Variable<T>::Span &, bool, const T &) {             \
        fail("variable " + variable.Name() + ": Put of a span is not supported; pass the data");                       \
    }
ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(JUNCTURA_ADIOS2_DEFINE)
#undef JUNCTURA_ADIOS2_DEFINE

} // namespace junctura_adios2

extern "C" {

adios2::plugin::PluginEngineInterface *EngineCreate(adios2::IO io, const std::string &name, adios2::Mode mode) {
    return new junctura_adios2::StreamEngine(io, name, mode);
}

void EngineDestroy(adios2::plugin::PluginEngineInterface *engine) { delete engine; }
}
