// An engine for ADIOS2: a program writes the steps of a stream into a pool, and another one reads them.
//
// A variable of a step is an array with the key bucket=STREAM,row=STEP,column=VARIABLE of the schema `rowcol`, whose layout is
// the variable's Shape, Start and Count. Behind its arrays the step's contents are offered, with row=contents,column=STEP: a
// reader waits for them, so it sees whole steps. At the end of a stream there is an object with row=contents,column=end.
//
// Several ranks of a program can write one stream (parameter Ranks): the blocks of all ranks are the layout of an array, which
// is exchanged with each step.
//
// Errors are exceptions, as those of other engines.
#ifndef JUNCTURA_ADIOS2_STREAM_ENGINE_HPP
#define JUNCTURA_ADIOS2_STREAM_ENGINE_HPP

#include <junctura.hpp>

#include <adios2/plugin/PluginEngineInterface.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rank_group.hpp"
#include "step_contents.hpp"

#if ADIOS2_PLUGIN_ENGINE_INTERFACE != 2
#error "the plugin needs version 2 of the engine interface: ADIOS2 2.12"
#endif
#if ADIOS2_USE_MPI
#error "the plugin is for ADIOS2 without MPI, whose programs may run on several ranks: see the parameter Ranks"
#endif

namespace junctura_adios2 {

// A block of a variable that was put: in memory of the program until the program may change it, then in `copy`.
struct PendingBlock {
    adios2::Dims start, count;
    const unsigned char *data = nullptr;
    std::vector<unsigned char> copy;

    const unsigned char *bytes() const { return data ? data : copy.data(); }
};

// A variable that was put in this step.
struct PendingVariable {
    ContentsEntry entry;
    std::size_t element_bytes = 0;
    std::vector<PendingBlock> blocks;
};

class StreamEngine : public adios2::plugin::PluginEngineInterface {
public:
    StreamEngine(adios2::IO io, const std::string &name, adios2::Mode mode);
    ~StreamEngine() override = default;

    adios2::StepStatus BeginStep(adios2::StepMode mode, float timeout_s) override;
    void EndStep() override;
    std::size_t CurrentStep() const override { return step_; }
    void PerformPuts() override;
    void PerformGets() override {}
    void DoClose(int transport) override;

#define JUNCTURA_ADIOS2_DECLARE(T)                                                                                     \
    void DoPutSync(adios2::Variable<T> variable, const T *values) override;                                            \
    void DoPutDeferred(adios2::Variable<T> variable, const T *values) override;                                        \
    void DoGetSync(adios2::Variable<T> variable, T *values) override;                                                  \
    void DoGetDeferred(adios2::Variable<T> variable, T *values) override;                                              \
    void DoGetSync(adios2::Variable<T> variable, T *values, const adios2::core::Selection &selection) override;        \
    void DoGetDeferred(adios2::Variable<T> variable, T *values, const adios2::core::Selection &selection) override;
    ADIOS2_FOREACH_STDTYPE_1ARG(JUNCTURA_ADIOS2_DECLARE)
#undef JUNCTURA_ADIOS2_DECLARE
#define JUNCTURA_ADIOS2_DECLARE(T)                                                                                     \
    void DoPut(adios2::Variable<T> variable, adios2::Variable<T>::Span &span, bool initialize, const T &value) override;
    ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(JUNCTURA_ADIOS2_DECLARE)
#undef JUNCTURA_ADIOS2_DECLARE

private:
    std::string parameter(const std::string &name, const std::string &otherwise) const;
    junctura::Attributes key(const std::string &row, const std::string &column) const;
    std::string options(const std::string &more) const;

    template <typename T> void put(adios2::Variable<T> variable, const T *values, bool keeps);
    RankGroup group() const;
    std::vector<ContentsEntry> variables_of_all() const;
    void offer(const ContentsEntry &entry) const;
    void offer_contents(std::vector<ContentsEntry> entries);

    std::optional<std::string> demand_contents(std::size_t step, double timeout_s) const;
    std::size_t end_of_stream(const std::string &contents) const;
    void define_variables();
    template <typename T> void define(const ContentsEntry &entry);
    template <typename T> void get(adios2::Variable<T> variable, T *values, const adios2::Dims &start, const adios2::Dims &count);
    const ContentsEntry &entry_of(const std::string &name) const;

    std::string stream_;
    RankGroup group_;
    int order_ = JCT_ORDER_C;
    junctura::Pool pool_;
    std::size_t step_ = 0;
    bool in_step_ = false, began_ = false, closed_ = false;
    // Of a writer, in the order of the first Put.
    std::vector<PendingVariable> pending_;
    // Of a reader.
    std::map<std::string, ContentsEntry> entries_;
    std::vector<ContentsEntry> attributes_;
};

} // namespace junctura_adios2

#endif
