// Regrids the numbers of the points, in this process and from 2 ranks to 1; prints the field.
// regrid URL WEIGHTS
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <junctura.hpp>
#include <numeric>

int main(int, char **words) {
    const junctura::Pool pool(words[1]);
    const junctura::Weights weights(words[2]);
    std::vector<double> field(weights.sources()), result(weights.targets()), other(weights.targets());
    std::iota(field.begin(), field.end(), 0.0);
    weights.apply(field, result);

    const junctura::Layout source("shape=6x8 grid=2x1"), target("shape=4x6");
    const junctura::Attributes step{{"name", "cpp"}};
    for (std::uint64_t rank = 0; rank < 2; rank++) {
        const junctura::Span<double> mine(field.data() + 24 * rank, 24);
        pool.exchange_source<double>(weights, source, rank, {}, "retention=withdrawn").put(step, mine);
    }
    pool.exchange_target<double>(weights, source, target, 0).get(step, other);
    if (std::memcmp(result.data(), other.data(), result.size() * sizeof(double)) != 0)
        return EXIT_FAILURE;
    for (const double value : result)
        std::printf("%.17g ", value);
    return EXIT_SUCCESS;
}
