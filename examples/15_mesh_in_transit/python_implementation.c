/* An implementation of Catalyst named `python`: calls a Python program in the process of the simulation.
 *
 * The environment variable WAVE_SCRIPT names the program. It defines `execute(payload, step, rank)`, which gets the mesh
 * as the payload of a mesh object (docs/formats/mesh.md), valid during the call, and `finalize()`. WAVE_PYTHON is the program
 * `python` whose packages it uses. This is what in situ means: the program shares memory and processor with the
 * simulation, which waits for it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "conduit_nodes.h"
#include "mesh_object.h"
#include "mpi_ranks.h"

static struct conduit_functions functions;
static struct mesh_tree tree;
static PyObject *module;
static int64_t rank, ranks;

static void say_error(const char *what) {
    fprintf(stderr, "wave: %s failed\n", what);
    PyErr_Print();
}

static void start_python(void) {
    const char *python = getenv("WAVE_PYTHON");
    PyConfig config;

    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    if (python)
        PyConfig_SetBytesString(&config, &config.executable, python);
    if (PyStatus_Exception(Py_InitializeFromConfig(&config)))
        fprintf(stderr, "wave: Python does not start\n");
    PyConfig_Clear(&config);
}

static int initialize(const void *params) {
    const char *script = getenv("WAVE_SCRIPT");
    conduit_node *root = (conduit_node *)params;
    int64_t communicator = 0;
    bool has;
    FILE *file;

    if (module || !script || conduit_functions_find(&functions))
        return 0;
    has = conduit_integer(&functions, conduit_path(&functions, root, "catalyst/mpi_comm"), &communicator);
    mpi_ranks_find(has, communicator, &rank, &ranks);
    file = fopen(script, "r");
    if (!file) {
        fprintf(stderr, "wave: %s cannot be read\n", script);
        return 0;
    }
    start_python();
    module = PyImport_AddModule("__main__");
    if (PyRun_SimpleFileEx(file, script, 1) != 0)
        module = NULL;
    return 0;
}

static void call(int64_t step, char *payload, uint64_t bytes) {
    PyObject *view = PyMemoryView_FromMemory(payload, (Py_ssize_t)bytes, PyBUF_READ);
    PyObject *result = PyObject_CallMethod(module, "execute", "OLL", view, (long long)step, (long long)rank);

    if (!result)
        say_error("execute");
    Py_XDECREF(result);
    Py_XDECREF(view);
}

static bool write_part(void *payload, uint64_t at, const void *data, size_t bytes) {
    memcpy((char *)payload + at, data, bytes);
    return true;
}

static int execute(const void *params) {
    conduit_node *root = (conduit_node *)params, *channels;
    int64_t step = 0;

    if (!module)
        return 0;
    conduit_integer(&functions, conduit_path(&functions, root, "catalyst/state/timestep"), &step);
    channels = conduit_path(&functions, root, "catalyst/channels");
    for (conduit_index i = 0; channels && i < functions.number_of_children(channels); i++) {
        conduit_node *channel = functions.child(channels, i), *data = conduit_path(&functions, channel, "data");
        char *payload;
        uint64_t bytes;

        if (data && mesh_tree_read(&tree, &functions, data) && (bytes = mesh_object_plan(&tree, MESH_WHOLE)) != 0 &&
            (payload = malloc(bytes))) {
            mesh_object_write(&tree, &(struct mesh_sink){write_part, payload});
            call(step, payload, bytes);
            free(payload);
        }
    }
    return 0;
}

static int finalize(const void *params) {
    (void)params;
    if (module) {
        PyObject *result = PyObject_CallMethod(module, "finalize", NULL);

        if (!result)
            say_error("finalize");
        Py_XDECREF(result);
        Py_FinalizeEx();
        module = NULL;
    }
    mesh_tree_free(&tree);
    return 0;
}

static int nothing(void *params) {
    (void)params;
    return 0;
}

extern const struct python_impl {
    int version;
    int (*initialize)(const void *), (*execute)(const void *), (*finalize)(const void *);
    int (*about)(void *), (*results)(void *);
} catalyst_api_impl;
__attribute__((visibility("default"))) const struct python_impl catalyst_api_impl = {1,        initialize, execute,
                                                                                      finalize, nothing,    nothing};
