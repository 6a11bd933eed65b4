/* parallel_private PATH: each rank writes its text and its value of a user-defined type; prints what fails. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, ranks, file, dim, texts, clouds;
    nc_type cloud;
    unsigned char few = 1;
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = nc_create_par(argv[1], NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
    if (status == NC_NOERR) status = nc_def_enum(file, NC_UBYTE, "cloud", &cloud);
    if (status == NC_NOERR) status = nc_insert_enum(file, cloud, "few", &few);
    if (status == NC_NOERR) status = nc_def_dim(file, "x", (size_t)ranks, &dim);
    if (status == NC_NOERR) status = nc_def_var(file, "texts", NC_STRING, 1, &dim, &texts);
    if (status == NC_NOERR) status = nc_def_var(file, "clouds", cloud, 1, &dim, &clouds);
    if (status == NC_NOERR) status = nc_enddef(file);
    size_t at = (size_t)rank;
    const char *text = "a text";
    if (status == NC_NOERR && nc_put_var1_string(file, texts, &at, &text) != NC_NOERR) printf("texts of %d\n", rank);
    if (status == NC_NOERR && nc_put_var1(file, clouds, &at, &few) != NC_NOERR) printf("clouds of %d\n", rank);
    if (status == NC_NOERR) status = nc_close(file);
    if (status != NC_NOERR) printf("%s\n", nc_strerror(status));
    MPI_Finalize();
    return 0;
}
