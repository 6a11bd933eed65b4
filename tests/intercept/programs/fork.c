/* fork PATH: a child starts and exits between two writes, as with system(). Prints what is read back. */
#define _POSIX_C_SOURCE 200809L
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int status) {
    if (status == NC_NOERR) return;
    fprintf(stderr, "%s\n", nc_strerror(status));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int file, dim, variable, values[4];
    check(nc_create(argv[1], NC_NETCDF4, &file));
    check(nc_def_dim(file, "time", NC_UNLIMITED, &dim));
    check(nc_def_var(file, "v", NC_INT, 1, &dim, &variable));
    check(nc_enddef(file));
    for (size_t step = 0; step < 4; step++) {
        int value = (int)step;
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) exit(0);
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
        check(nc_put_var1_int(file, variable, &step, &value));
    }
    if (system("exit 0") != 0) return 1;
    check(nc_close(file));
    check(nc_open(argv[1], NC_NOWRITE, &file));
    check(nc_get_var_int(file, variable, values));
    printf("%d %d %d %d\n", values[0], values[1], values[2], values[3]);
    check(nc_close(file));
    return 0;
}
