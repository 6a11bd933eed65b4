// How fast MPI programs move a block-cyclic matrix of doubles from one layout into another: ScaLAPACK's pdgemr2d, and one
// MPI_Alltoallw with types that say where everything lies. Beside them, in each round, a memcpy of as much by each rank.
//
//   mpirun -np 4 mpi_arrays ROWS COLUMNS BLOCK_ROWS BLOCK_COLUMNS TO_BLOCK_ROWS TO_BLOCK_COLUMNS ROUNDS
//
// Both grids are 2 x 2, ranks by rows; memory is column-major, as ScaLAPACK wants it. Rank 0 prints JSON. What arrived is compared
// element by element; planning counts, since both do it in each call.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

extern "C" {
void Cblacs_get(int, int, int *);
void Cblacs_gridinit(int *, const char *, int, int);
void pdgemr2d_(const int *, const int *, const double *, const int *, const int *, const int *, double *, const int *,
               const int *, const int *, const int *);
}

constexpr long GRID = 2;

// One dimension of one side: how long it is, its blocks, and this rank's coordinate.
struct Axis {
    long extent, block, mine;

    long owner(long index) const { return index / block % GRID; }
    long local(long index) const { return index / (block * GRID) * block + index % block; }
    long count() const {
        long all = 0;
        for (long index = 0; index < extent; ++index) all += owner(index) == mine;
        return all;
    }
};

struct Side {
    Axis rows, columns;
    long height;
    std::vector<double> memory;

    Side(long m, long n, long block_rows, long block_columns, int rank)
        : rows{m, block_rows, rank / GRID}, columns{n, block_columns, rank % GRID}, height(rows.count()),
          memory(height * columns.count()) {}

    void each(const std::function<void(double &, double)> &see) {
        for (long column = 0; column < columns.extent; ++column)
            for (long row = 0; row < rows.extent && columns.owner(column) == columns.mine; ++row)
                if (rows.owner(row) == rows.mine)
                    see(memory[columns.local(column) * height + rows.local(row)], double(row) * columns.extent + column);
    }
};

// What one's own coordinate shares with a peer's: stretches of one's own memory, by global index.
static MPI_Datatype shared(const Axis &own, const Axis &theirs, long peer, MPI_Datatype of) {
    std::vector<int> lengths, places;
    for (long index = 0; index < own.extent; ++index) {
        if (own.owner(index) != own.mine || theirs.owner(index) != peer) continue;
        const int place = int(own.local(index));
        if (!places.empty() && places.back() + lengths.back() == place && index % theirs.block != 0) ++lengths.back();
        else places.push_back(place), lengths.push_back(1);
    }
    MPI_Datatype type;
    MPI_Type_indexed(int(places.size()), lengths.data(), places.data(), of, &type);
    return type;
}

static MPI_Datatype shared(const Side &own, const Side &theirs, int peer) {
    MPI_Datatype column = shared(own.rows, theirs.rows, peer / GRID, MPI_DOUBLE), spaced, all;
    MPI_Type_create_resized(column, 0, own.height * sizeof(double), &spaced);
    all = shared(own.columns, theirs.columns, peer % GRID, spaced);
    MPI_Type_commit(&all);
    MPI_Type_free(&column);
    MPI_Type_free(&spaced);
    return all;
}

static double timed(const std::function<void()> &work) {
    MPI_Barrier(MPI_COMM_WORLD);
    double took = MPI_Wtime();
    work();
    took = MPI_Wtime() - took;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return took;
}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 8 || ranks != GRID * GRID) return fprintf(stderr, "seven numbers and four ranks are wanted\n"), 2;
    std::vector<long> given;
    for (int at = 1; at < argc; ++at) given.push_back(atol(argv[at]));
    Side from(given[0], given[1], given[2], given[3], rank), to(given[0], given[1], given[4], given[5], rank);
    from.each([](double &element, double number) { element = number; });
    std::vector<double> source(to.memory.size(), 1), target(to.memory.size(), 2);

    int context;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", GRID, GRID);
    const int m = int(given[0]), n = int(given[1]), one = 1;
    const int from_is[9] = {1, context, m, n, int(given[2]), int(given[3]), 0, 0, int(from.height)};
    const int to_is[9] = {1, context, m, n, int(given[4]), int(given[5]), 0, 0, int(to.height)};
    auto by_scalapack = [&] {
        pdgemr2d_(&m, &n, from.memory.data(), &one, &one, from_is, to.memory.data(), &one, &one, to_is, &context);
    };
    // The types are made once: what is measured is MPI's work, not this program's.
    std::vector<MPI_Datatype> sent, taken;
    std::vector<int> ones(ranks, 1), zeros(ranks, 0);
    for (int peer = 0; peer < ranks; ++peer) {
        sent.push_back(shared(from, to, peer));
        taken.push_back(shared(to, from, peer));
    }
    auto by_types = [&] {
        MPI_Alltoallw(from.memory.data(), ones.data(), zeros.data(), sent.data(), to.memory.data(), ones.data(),
                      zeros.data(), taken.data(), MPI_COMM_WORLD);
    };
    auto by_memcpy = [&] { memcpy(target.data(), source.data(), target.size() * sizeof(double)); };

    const std::vector<std::pair<std::string, std::function<void()>>> ways = {{"pdgemr2d", by_scalapack}, {"alltoallw", by_types}};
    std::string figures;
    for (const auto &[name, work] : ways) {
        std::fill(to.memory.begin(), to.memory.end(), -1.0);
        std::vector<double> shares, times;
        for (long round = 0; round <= given[6]; ++round) {
            const double limit = timed(by_memcpy), took = timed(work);
            if (round) shares.push_back(limit / took), times.push_back(took * 1e3);
        }
        long wrong = 0;
        to.each([&](double &element, double number) { wrong += element != number; });
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (wrong) return fprintf(stderr, "%s: %ld elements are wrong\n", name.c_str(), wrong), 1;
        char line[256];
        snprintf(line, sizeof line, "%s\"%s\": {\"ms\": %.4f, \"share_of_memcpy\": %.5f}", figures.empty() ? "" : ", ",
                 name.c_str(), median(times), median(shares));
        figures += line;
    }
    if (!rank) printf("{\"ways\": {%s}}\n", figures.c_str());
    MPI_Finalize();
}
