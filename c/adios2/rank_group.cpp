#include "rank_group.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

namespace junctura_adios2 {

RankGroup::RankGroup(std::string stream, std::uint64_t rank, std::uint64_t ranks, double timeout_s)
    : stream_(std::move(stream)), rank_(rank), ranks_(ranks), timeout_s_(timeout_s) {}

std::vector<std::string> RankGroup::gather(const junctura::Pool &pool, const std::string &name, const std::string &text) const {
    if (rank_ != 0) {
        offer(pool, name + '/' + std::to_string(rank_), text, 1);
        return {};
    }
    std::vector<std::string> texts = {text};
    for (std::uint64_t rank = 1; rank < ranks_; rank++)
        texts.push_back(demand(pool, name + '/' + std::to_string(rank), rank));
    return texts;
}

std::string RankGroup::broadcast(const junctura::Pool &pool, const std::string &name, const std::string &text) const {
    if (rank_ != 0)
        return demand(pool, name, 0);
    if (ranks_ > 1)
        offer(pool, name, text, ranks_ - 1);
    return text;
}

// The object is removed when its readers have released it.
void RankGroup::offer(const junctura::Pool &pool, const std::string &column, const std::string &text,
                      std::uint64_t readers) const {
    pool.offer({{"bucket", stream_}, {"row", "ranks"}, {"column", column}}, text,
               "schema=rowcol,retention=released:" + std::to_string(readers));
}

std::string RankGroup::demand(const junctura::Pool &pool, const std::string &column, std::uint64_t from) const {
    try {
        const junctura::Object found =
            pool.demand_key({{"bucket", stream_}, {"row", "ranks"}, {"column", column}}, timeout_s_, "schema=rowcol");
        const junctura::Span<const char> bytes = found.data<char>();
        return {bytes.begin(), bytes.end()};
    } catch (const junctura::Error &error) {
        if (error.code() != JCT_TIMEOUT)
            throw;
        std::ostringstream text;
        text << "rank " << from << " of " << ranks_ << " has not ended the step within " << timeout_s_
             << " s: all ranks must call EndStep; the parameter Timeout changes the time";
        throw std::runtime_error(text.str());
    }
}

} // namespace junctura_adios2
