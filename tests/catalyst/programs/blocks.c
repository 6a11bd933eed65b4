/* A program that calls Catalyst as its documentation describes: three blocks a rank, and values that a test can compute.
 *
 * blocks STEPS [moving|refined=N|gpu=FIELD|swapped|bad|once|stepwise|long=N]...
 *   moving      the mesh changes with every step
 *   refined=N   it changes with step N
 *   swapped     one field has the byte order of another machine
 *   gpu=ADDRESS the pressure has this address
 *   stepwise    waits for a line on standard input before each step, and writes one after it
 *   long=N      N more values in the pressure
 *   probe       a second channel
 *   state       channels have a state of their own
 *   mpi_comm=N  passes the handle of a communicator
 *   case=NAME   passes an option in the node
 * Prints the status of catalyst_finalize, and what catalyst_about answers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalyst.h"

enum { NX = 5, NY = 4, NZ = 3, POINTS = NX * NY * NZ, CELLS = (NX - 1) * (NY - 1) * (NZ - 1) };

static const char *option(int count, char **words, const char *name) {
    size_t length = strlen(name);

    for (int i = 2; i < count; i++)
        if (strncmp(words[i], name, length) == 0 && (words[i][length] == 0 || words[i][length] == '='))
            return words[i] + length + (words[i][length] == '=');
    return NULL;
}

static int rank_of(void) {
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    return text ? atoi(text) : 0;
}

static double xyz[3][POINTS], rho[CELLS];
static float velocity[3 * POINTS];
static double *pressure;
static int64_t pressures = 8;
static double tet_points[3][5] = {{0, 1, 0, 0, 1}, {0, 0, 1, 0, 1}, {0, 0, 0, 1, 1}};
static int64_t tets[8] = {0, 1, 2, 3, 1, 2, 3, 4};
static double temperature[5];
static int32_t number[2];
static uint8_t flags[2] = {7, 250};

static void compute(int rank, int step, int shift) {
    for (int k = 0, i = 0; k < NZ; k++)
        for (int y = 0; y < NY; y++)
            for (int x = 0; x < NX; x++, i++) {
                xyz[0][i] = x + 10 * rank + shift;
                xyz[1][i] = y * 0.5;
                xyz[2][i] = k * 0.25;
                for (int c = 0; c < 3; c++)
                    velocity[3 * i + c] = (float)(i + 100 * c + step);
            }
    for (int i = 0; i < CELLS; i++)
        rho[i] = 1000 * rank + 10 * step + i;
    for (int64_t i = 0; i < pressures; i++)
        pressure[i] = -(double)i - step;
    for (int i = 0; i < 5; i++)
        temperature[i] = 300 + i + 0.125 * step;
    for (int i = 0; i < 2; i++)
        number[i] = 2 * rank + i;
}

static void box(conduit_node *mesh, int swapped) {
    conduit_node_set_path_char8_str(mesh, "coordsets/coords/type", "explicit");
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/x", xyz[0], POINTS);
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/y", xyz[1], POINTS);
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/z", xyz[2], POINTS);
    conduit_node_set_path_char8_str(mesh, "topologies/box/type", "structured");
    conduit_node_set_path_char8_str(mesh, "topologies/box/coordset", "coords");
    conduit_node_set_path_int32(mesh, "topologies/box/elements/dims/i", NX - 1);
    conduit_node_set_path_int32(mesh, "topologies/box/elements/dims/j", NY - 1);
    conduit_node_set_path_int32(mesh, "topologies/box/elements/dims/k", NZ - 1);
    conduit_node_set_path_char8_str(mesh, "fields/rho/association", "element");
    conduit_node_set_path_char8_str(mesh, "fields/rho/topology", "box");
    conduit_node_set_path_external_float64_ptr_detailed(
        mesh, "fields/rho/values", rho, CELLS, 0, sizeof *rho, sizeof *rho,
        swapped ? CONDUIT_ENDIANNESS_BIG_ID : CONDUIT_ENDIANNESS_DEFAULT_ID);
    conduit_node_set_path_char8_str(mesh, "fields/velocity/association", "vertex");
    conduit_node_set_path_char8_str(mesh, "fields/velocity/topology", "box");
    /* Components of a point are neighbours: a stride. */
    for (int c = 0; c < 3; c++) {
        char path[] = "fields/velocity/values/?";

        path[sizeof path - 2] = "uvw"[c];
        conduit_node_set_path_external_float32_ptr_detailed(mesh, path, velocity, POINTS, c * 4, 12, 4,
                                                            CONDUIT_ENDIANNESS_DEFAULT_ID);
    }
}

static void grid(conduit_node *mesh, double *gpu) {
    static const char *const AXES[] = {"i", "j", "k"};
    char path[64];

    conduit_node_set_path_char8_str(mesh, "coordsets/coords/type", "uniform");
    for (int axis = 0; axis < 3; axis++) {
        snprintf(path, sizeof path, "coordsets/coords/dims/%s", AXES[axis]);
        conduit_node_set_path_int64(mesh, path, 3);
        snprintf(path, sizeof path, "coordsets/coords/spacing/d%c", "xyz"[axis]);
        conduit_node_set_path_float64(mesh, path, 0.5);
    }
    conduit_node_set_path_char8_str(mesh, "topologies/grid/type", "uniform");
    conduit_node_set_path_char8_str(mesh, "topologies/grid/coordset", "coords");
    conduit_node_set_path_char8_str(mesh, "fields/p/association", "element");
    conduit_node_set_path_char8_str(mesh, "fields/p/topology", "grid");
    conduit_node_set_path_external_float64_ptr(mesh, "fields/p/values", gpu ? gpu : pressure, pressures);
}

static void tetrahedra(conduit_node *mesh) {
    conduit_node_set_path_char8_str(mesh, "coordsets/coords/type", "explicit");
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/x", tet_points[0], 5);
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/y", tet_points[1], 5);
    conduit_node_set_path_external_float64_ptr(mesh, "coordsets/coords/values/z", tet_points[2], 5);
    conduit_node_set_path_char8_str(mesh, "topologies/tets/type", "unstructured");
    conduit_node_set_path_char8_str(mesh, "topologies/tets/coordset", "coords");
    conduit_node_set_path_char8_str(mesh, "topologies/tets/elements/shape", "tet");
    conduit_node_set_path_external_int64_ptr(mesh, "topologies/tets/elements/connectivity", tets, 8);
    conduit_node_set_path_char8_str(mesh, "fields/T/association", "vertex");
    conduit_node_set_path_char8_str(mesh, "fields/T/topology", "tets");
    conduit_node_set_path_external_float64_ptr(mesh, "fields/T/values", temperature, 5);
    conduit_node_set_path_char8_str(mesh, "fields/number/association", "element");
    conduit_node_set_path_char8_str(mesh, "fields/number/topology", "tets");
    conduit_node_set_path_external_int32_ptr(mesh, "fields/number/values", number, 2);
    conduit_node_set_path_char8_str(mesh, "fields/flags/association", "element");
    conduit_node_set_path_char8_str(mesh, "fields/flags/topology", "tets");
    conduit_node_set_path_external_uint8_ptr(mesh, "fields/flags/values", flags, 2);
    /* Escapes of JSON, and a byte that is no UTF-8. */
    conduit_node_set_path_char8_str(mesh, "state/note", "\"caf\xc3\xa9\"\\\n\xff");
}

int main(int count, char **words) {
    int steps = count > 1 ? atoi(words[1]) : 1, rank = rank_of();
    const char *refined = option(count, words, "refined"), *gpu = option(count, words, "gpu");
    const char *more = option(count, words, "long"), *comm = option(count, words, "mpi_comm");
    const char *name = option(count, words, "case"), *first = option(count, words, "first");
    conduit_node *node = conduit_node_create();
    char line[64];

    pressures += more ? atoll(more) : 0;
    pressure = malloc((size_t)pressures * sizeof *pressure);
    conduit_node_set_path_int32(node, "unrelated", 1);
    if (comm)
        conduit_node_set_path_int64(node, "catalyst/mpi_comm", atoll(comm));
    if (name)
        conduit_node_set_path_char8_str(node, "catalyst/junctura/case", name);
    printf("initialize %d\n", catalyst_initialize(node));
    conduit_node_destroy(node);
    for (int step = first ? atoi(first) : 0; step < steps; step++) {
        conduit_node *channel, *data;
        int shift = option(count, words, "moving") ? step : refined && step >= atoi(refined) ? 5 : 0;

        if (option(count, words, "stepwise") && !fgets(line, sizeof line, stdin))
            return 3;
        compute(rank, step, shift);
        node = conduit_node_create();
        conduit_node_set_path_int64(node, "catalyst/state/timestep", step);
        conduit_node_set_path_float64(node, "catalyst/state/time", 0.5 * step);
        channel = conduit_node_fetch(node, "catalyst/channels/blocks");
        conduit_node_set_path_char8_str(channel, "type", "multimesh");
        data = conduit_node_fetch(channel, "data");
        box(conduit_node_fetch(data, "box"), option(count, words, "swapped") != NULL);
        grid(conduit_node_fetch(data, "grid"), gpu ? (double *)(uintptr_t)strtoull(gpu, NULL, 0) : NULL);
        tetrahedra(conduit_node_fetch(data, "tets"));
        if (option(count, words, "probe")) {
            channel = conduit_node_fetch(node, "catalyst/channels/probe");
            conduit_node_set_path_char8_str(channel, "type", "mesh");
            tetrahedra(conduit_node_fetch(channel, "data"));
            if (option(count, words, "state")) {
                conduit_node_set_path_int64(channel, "state/cycle", 100 + step);
                conduit_node_set_path_float64(channel, "state/time", 7.5);
            }
        }
        if (option(count, words, "bad")) {
            conduit_node_set_path_char8_str(node, "catalyst/channels/beyond the wall/type", "mesh");
            conduit_node_fetch(node, "catalyst/channels/beyond the wall/data");
            conduit_node_set_path_char8_str(node, "catalyst/channels/reader/type", "ioss");
            conduit_node_set_path_char8_str(node, "catalyst/channels/empty/type", "mesh");
        }
        if (catalyst_execute(node) != catalyst_status_ok)
            return 2;
        conduit_node_destroy(node);
        if (option(count, words, "stepwise")) {
            printf("step %d\n", step);
            fflush(stdout);
        }
    }
    node = conduit_node_create();
    printf("about %d", catalyst_about(node));
    if (conduit_node_has_path(node, "catalyst/implementation"))
        printf(" %s", (char *)conduit_node_data_ptr(conduit_node_fetch(node, "catalyst/implementation")));
    printf("\nfinalize %d\n", catalyst_finalize(node));
    conduit_node_destroy(node);
    free(pressure);
    return 0;
}
