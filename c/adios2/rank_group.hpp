// The ranks of a program that write one stream, each with its own engine: they exchange texts through the pool, so that no
// MPI is needed, and the programs of a build of ADIOS2 without MPI can run on several ranks.
#ifndef JUNCTURA_ADIOS2_RANK_GROUP_HPP
#define JUNCTURA_ADIOS2_RANK_GROUP_HPP

#include <junctura.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace junctura_adios2 {

class RankGroup {
public:
    // A group of one rank exchanges nothing.
    RankGroup(std::string stream, std::uint64_t rank, std::uint64_t ranks, double timeout_s);

    std::uint64_t rank() const { return rank_; }
    std::uint64_t ranks() const { return ranks_; }

    // Returns the texts of all ranks, in their order, on rank 0; elsewhere none. `name` distinguishes exchanges. Blocks on rank
    // 0 until all have called it. Throws std::runtime_error where a rank has not within the timeout.
    std::vector<std::string> gather(const junctura::Pool &pool, const std::string &name, const std::string &text) const;

    // Returns the text of rank 0. Blocks elsewhere until rank 0 has called it. Throws as `gather`.
    std::string broadcast(const junctura::Pool &pool, const std::string &name, const std::string &text) const;

private:
    void offer(const junctura::Pool &pool, const std::string &column, const std::string &text, std::uint64_t readers) const;
    std::string demand(const junctura::Pool &pool, const std::string &column, std::uint64_t from) const;

    std::string stream_;
    std::uint64_t rank_, ranks_;
    double timeout_s_;
};

} // namespace junctura_adios2

#endif
