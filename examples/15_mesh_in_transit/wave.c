/* A sound wave in a duct, on 1 or more ranks: a small solver that is instrumented with Catalyst 2.
 *
 * The wave equation p_tt = c^2 (p_xx + p_yy + p_zz) on a lattice of points, by second-order differences (leapfrog), with a
 * pressure of 0 at the walls. Ranks divide the duct into slabs of z. Each rank describes its slab as three blocks: a uniform
 * grid, a structured grid and hexahedra without structure. All of them point into the arrays of the solver.
 *
 * wave POINTS STEPS SUBSTEPS: POINTS x POINTS x 2 POINTS points; Catalyst is called with each of STEPS steps, of SUBSTEPS time
 * steps each. Rank 0 prints the number of each step, and a summary at the end.
 */
#define _GNU_SOURCE
#include <catalyst.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wave_ranks.h"

enum { UNIFORM, STRUCTURED, UNSTRUCTURED, BLOCKS };

static const char *const NAMES[BLOCKS] = {"inlet", "middle", "outlet"};

/* A block: planes of the slab, with its own description of points and cells. */
struct block {
    int64_t first, planes;
    double *x, *y, *z;
    int64_t *connectivity, hexahedra;
    float *energy;
};

struct solver {
    int rank, ranks;
    int64_t n, plane;
    /* Planes of this rank, and one more at either end: of a neighbor, or a wall. The first has the number `begin` in the duct. */
    int64_t planes, begin;
    double h, dt, time, *before, *now, *after;
    struct block blocks[BLOCKS];
};

static double seconds(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *allocated(int64_t elements, size_t bytes) {
    void *memory = calloc((size_t)elements, bytes);

    if (!memory) {
        fprintf(stderr, "wave: %lld elements do not fit into memory\n", (long long)elements);
        exit(1);
    }
    return memory;
}

/* Coordinates of the points of a block, and hexahedra between them. */
static void describe(struct solver *solver, struct block *block, int kind) {
    int64_t n = solver->n, plane = solver->plane, points = block->planes * plane, at = 0;

    block->hexahedra = (n - 1) * (n - 1) * (block->planes - 1);
    block->energy = allocated(block->hexahedra, sizeof *block->energy);
    if (kind == UNIFORM)
        return;
    block->x = allocated(points, sizeof *block->x);
    block->y = allocated(points, sizeof *block->y);
    block->z = allocated(points, sizeof *block->z);
    for (int64_t i = 0; i < points; i++) {
        block->x[i] = (double)(i % n) * solver->h;
        block->y[i] = (double)(i / n % n) * solver->h;
        block->z[i] = (double)(solver->begin + block->first + i / plane) * solver->h;
    }
    if (kind == STRUCTURED)
        return;
    block->connectivity = allocated(8 * block->hexahedra, sizeof *block->connectivity);
    for (int64_t k = 0; k + 1 < block->planes; k++)
        for (int64_t j = 0; j + 1 < n; j++)
            for (int64_t i = 0; i + 1 < n; i++, at += 8) {
                int64_t corner = k * plane + j * n + i;
                int64_t corners[8] = {corner,         corner + 1,         corner + n + 1,         corner + n,
                                      corner + plane, corner + plane + 1, corner + plane + n + 1, corner + plane + n};

                memcpy(block->connectivity + at, corners, sizeof corners);
            }
}

static void begin(struct solver *solver, int64_t n) {
    int64_t all = 2 * n, mine = all / solver->ranks, more = all % solver->ranks, third;

    solver->n = n;
    solver->plane = n * n;
    solver->h = 1.0 / (double)(n - 1);
    /* Stable for c = 1: dt < h / sqrt(3). */
    solver->dt = 0.5 * solver->h;
    solver->planes = mine + (solver->rank < more) + 2;
    solver->begin = solver->rank * mine + (solver->rank < more ? solver->rank : more) - 1;
    solver->before = allocated(solver->planes * solver->plane, sizeof(double));
    solver->now = allocated(solver->planes * solver->plane, sizeof(double));
    solver->after = allocated(solver->planes * solver->plane, sizeof(double));
    for (int64_t i = 0; i < solver->planes * solver->plane; i++) {
        double x = (double)(i % n) * solver->h - 0.5, y = (double)(i / n % n) * solver->h - 0.5;
        double z = (double)(solver->begin + i / solver->plane) * solver->h - 0.5, r2 = x * x + y * y + z * z;

        solver->now[i] = solver->before[i] = r2 < 0.04 ? 1 - 25 * r2 : 0;
    }
    /* Blocks share a plane of points with the next; the last one reaches to the next rank. */
    third = (solver->planes - 1) / BLOCKS;
    for (int kind = 0; kind < BLOCKS; kind++) {
        struct block *block = &solver->blocks[kind];

        block->first = kind * third + (kind == 0);
        block->planes = (kind == BLOCKS - 1 ? solver->planes - (solver->rank == solver->ranks - 1) : (kind + 1) * third + 1) -
                        block->first;
        if (block->planes < 2) {
            fprintf(stderr, "wave: too few points for %d ranks\n", solver->ranks);
            exit(1);
        }
        describe(solver, block, kind);
    }
}

static void advance(struct solver *solver) {
    int64_t n = solver->n, plane = solver->plane;
    double ratio = solver->dt * solver->dt / (solver->h * solver->h), *after = solver->after;

    ranks_exchange(solver->now, plane, solver->planes);
    for (int64_t k = 1; k + 1 < solver->planes; k++) {
        if (solver->begin + k < 1 || solver->begin + k > 2 * n - 2)
            continue;
        for (int64_t j = 1; j + 1 < n; j++) {
            const double *p = solver->now + k * plane + j * n, *q = solver->before + k * plane + j * n;
            double *r = after + k * plane + j * n;

            for (int64_t i = 1; i + 1 < n; i++)
                r[i] = 2 * p[i] - q[i] +
                       ratio * (p[i - 1] + p[i + 1] + p[i - n] + p[i + n] + p[i - plane] + p[i + plane] - 6 * p[i]);
        }
    }
    solver->after = solver->before;
    solver->before = solver->now;
    solver->now = after;
    solver->time += solver->dt;
}

/* The energy of each cell: the mean of squares of its points. */
static void measure(struct solver *solver) {
    int64_t n = solver->n, plane = solver->plane;

    ranks_exchange(solver->now, plane, solver->planes);
    for (int b = 0; b < BLOCKS; b++) {
        const struct block *block = &solver->blocks[b];
        const double *p = solver->now + block->first * plane;
        float *energy = block->energy;

        for (int64_t k = 0; k + 1 < block->planes; k++)
            for (int64_t j = 0; j + 1 < n; j++)
                for (int64_t i = 0; i + 1 < n; i++) {
                    const double *q = p + k * plane + j * n + i, *above = q + plane;

                    *energy++ = (float)((q[0] * q[0] + q[1] * q[1] + q[n] * q[n] + q[n + 1] * q[n + 1] + above[0] * above[0] +
                                         above[1] * above[1] + above[n] * above[n] + above[n + 1] * above[n + 1]) /
                                        8);
                }
    }
}

static void pass_block(const struct solver *solver, conduit_node *mesh, int kind) {
    const struct block *block = &solver->blocks[kind];
    int64_t n = solver->n, points = block->planes * solver->plane;

    if (kind == UNIFORM) {
        conduit_node_set_path_char8_str(mesh, "coordsets/points/type", "uniform");
        conduit_node_set_path_int64(mesh, "coordsets/points/dims/i", n);
        conduit_node_set_path_int64(mesh, "coordsets/points/dims/j", n);
        conduit_node_set_path_int64(mesh, "coordsets/points/dims/k", block->planes);
        conduit_node_set_path_float64(mesh, "coordsets/points/origin/x", 0);
        conduit_node_set_path_float64(mesh, "coordsets/points/origin/y", 0);
        conduit_node_set_path_float64(mesh, "coordsets/points/origin/z", (double)(solver->begin + block->first) * solver->h);
        conduit_node_set_path_float64(mesh, "coordsets/points/spacing/dx", solver->h);
        conduit_node_set_path_float64(mesh, "coordsets/points/spacing/dy", solver->h);
        conduit_node_set_path_float64(mesh, "coordsets/points/spacing/dz", solver->h);
    } else {
        conduit_node_set_path_char8_str(mesh, "coordsets/points/type", "explicit");
        conduit_node_set_path_external_float64_ptr(mesh, "coordsets/points/values/x", block->x, points);
        conduit_node_set_path_external_float64_ptr(mesh, "coordsets/points/values/y", block->y, points);
        conduit_node_set_path_external_float64_ptr(mesh, "coordsets/points/values/z", block->z, points);
    }
    conduit_node_set_path_char8_str(mesh, "topologies/cells/coordset", "points");
    if (kind == UNIFORM) {
        conduit_node_set_path_char8_str(mesh, "topologies/cells/type", "uniform");
    } else if (kind == STRUCTURED) {
        conduit_node_set_path_char8_str(mesh, "topologies/cells/type", "structured");
        conduit_node_set_path_int64(mesh, "topologies/cells/elements/dims/i", n - 1);
        conduit_node_set_path_int64(mesh, "topologies/cells/elements/dims/j", n - 1);
        conduit_node_set_path_int64(mesh, "topologies/cells/elements/dims/k", block->planes - 1);
    } else {
        conduit_node_set_path_char8_str(mesh, "topologies/cells/type", "unstructured");
        conduit_node_set_path_char8_str(mesh, "topologies/cells/elements/shape", "hex");
        conduit_node_set_path_external_int64_ptr(mesh, "topologies/cells/elements/connectivity", block->connectivity,
                                                 8 * block->hexahedra);
    }
    conduit_node_set_path_char8_str(mesh, "fields/pressure/association", "vertex");
    conduit_node_set_path_char8_str(mesh, "fields/pressure/topology", "cells");
    conduit_node_set_path_external_float64_ptr(mesh, "fields/pressure/values", solver->now + block->first * solver->plane,
                                               points);
    conduit_node_set_path_char8_str(mesh, "fields/energy/association", "element");
    conduit_node_set_path_char8_str(mesh, "fields/energy/topology", "cells");
    conduit_node_set_path_external_float32_ptr(mesh, "fields/energy/values", block->energy, block->hexahedra);
}

static void pass_step(const struct solver *solver, int64_t step) {
    conduit_node *node = conduit_node_create(), *data;

    conduit_node_set_path_int64(node, "catalyst/state/timestep", step);
    conduit_node_set_path_float64(node, "catalyst/state/time", solver->time);
    conduit_node_set_path_char8_str(node, "catalyst/channels/duct/type", "multimesh");
    data = conduit_node_fetch(node, "catalyst/channels/duct/data");
    for (int kind = 0; kind < BLOCKS; kind++)
        pass_block(solver, conduit_node_fetch(data, NAMES[kind]), kind);
    if (catalyst_execute(node) != catalyst_status_ok)
        fprintf(stderr, "wave: catalyst_execute failed\n");
    conduit_node_destroy(node);
}

/* A line of /proc/self/status in MB; 0 where it has none. */
static double memory_mb(const char *name) {
    char line[256];
    double kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), ": %lf", &kib);
    if (status)
        fclose(status);
    return kib * 1024 / 1e6;
}

int main(int count, char **words) {
    struct solver solver = {0};
    conduit_node *node = conduit_node_create();
    double start, handing = 0;
    int steps, substeps;

    if (count != 4 || atoll(words[1]) < 8 || atoi(words[2]) < 1 || atoi(words[3]) < 1) {
        fprintf(stderr, "usage: wave POINTS STEPS SUBSTEPS, with at least 8 points\n");
        return 2;
    }
    steps = atoi(words[2]), substeps = atoi(words[3]);
    ranks_begin(&count, &words, &solver.rank, &solver.ranks);
    begin(&solver, atoll(words[1]));
    conduit_node_set_path_int64(node, "catalyst/mpi_comm", ranks_communicator());
    if (catalyst_initialize(node) != catalyst_status_ok)
        fprintf(stderr, "wave: catalyst_initialize failed\n");
    conduit_node_destroy(node);
    start = seconds();
    for (int step = 0; step < steps; step++) {
        double before;

        for (int i = 0; i < substeps; i++)
            advance(&solver);
        measure(&solver);
        before = seconds();
        pass_step(&solver, step);
        handing += seconds() - before;
        if (solver.rank == 0) {
            printf("step %d\n", step);
            fflush(stdout);
        }
    }
    /* Memory that is shared with the pool is counted apart from the solver's own. */
    if (solver.rank == 0)
        printf("seconds %.3f catalyst_ms %.3f own_mb %.1f shared_mb %.1f resident_mb %.1f\n", seconds() - start,
               1e3 * handing / steps, memory_mb("RssAnon"), memory_mb("RssShmem"), memory_mb("VmRSS"));
    node = conduit_node_create();
    catalyst_finalize(node);
    conduit_node_destroy(node);
    ranks_end();
    return 0;
}
