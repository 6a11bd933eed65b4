/* Calls that files in the pool do not have, and one of each that they have besides reads and writes. shared NAME */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int is_true, const char *what) {
    if (!is_true) {
        failures++;
        printf("failed: %s\n", what);
    }
}

int main(int count, char **words) {
    int rank, ranks, size, amode, flag, class = 0, length, value = 7;
    char text[MPI_MAX_ERROR_STRING] = "", name[MPI_MAX_DATAREP_STRING];
    MPI_File file;
    MPI_Group group;
    MPI_Info info;
    MPI_Offset place;
    MPI_Datatype etype, filetype;
    MPI_Aint extent;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    int error = MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Error_class(error, &class);
    MPI_Error_string(error, text, &length);
    expect(class == MPI_ERR_UNSUPPORTED_OPERATION, "class of an error");
#ifdef OPEN_MPI
    expect(strstr(text, "MPI_File_write_shared") && strstr(text, "`file`"), text);
#endif
    expect(!MPI_File_get_amode(file, &amode) && amode == (MPI_MODE_CREATE | MPI_MODE_RDWR), "amode");
    expect(!MPI_File_get_group(file, &group) && !MPI_Group_size(group, &size) && size == ranks, "group");
    MPI_Group_free(&group);
    expect(!MPI_File_get_info(file, &info), "info");
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    expect(!MPI_File_get_view(file, &place, &etype, &filetype, name) && place == 0 && etype == MPI_BYTE &&
               filetype == MPI_BYTE && !strcmp(name, "native"),
           "view");
    expect(!MPI_File_get_atomicity(file, &flag) && !flag, "atomicity");
    expect(!MPI_File_get_type_extent(file, MPI_INT, &extent) && extent == 4, "extent");
    expect(MPI_File_write_at(file, -1, &value, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS, "offset below 0");
    /* Another representation: the file leaves the pool. */
    expect(!MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL), "external32");
    expect(!MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE), "write of external32");
    expect(!MPI_File_close(&file) && file == MPI_FILE_NULL, "close");
    printf("rank %d: %d failures\n", rank, failures);
    MPI_Finalize();
    return 0;
}
