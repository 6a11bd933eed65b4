/* Random types, views and calls of MPI-IO, each file by a number: what is read and the files are the same with the real
 * library and in the pool. Each rank writes what it sees into PREFIXrank-RANK.log.
 * patterns PREFIX FIRST LAST SUFFIX */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files have all their bytes from the beginning: what MPI-IO leaves in gaps that were never written is undefined. */
enum { TILE = 768, FILE_BYTES = 2 << 20, TYPES_MAX = 4096 };

typedef struct random_state {
    uint64_t state;
} random_state;

static int rank, ranks;
static MPI_Datatype made[TYPES_MAX];
static int made_count;

static uint64_t draw(random_state *random, uint64_t below) {
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (random->state >> 33) % below;
}

static MPI_Datatype keep(MPI_Datatype type) {
    if (made_count == TYPES_MAX)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Type_commit(&type);
    return made[made_count++] = type;
}

/* No pairs such as MPI_DOUBLE_INT: ROMIO has no gap in them. */
static MPI_Datatype named(random_state *random) {
    const MPI_Datatype types[] = {MPI_BYTE, MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_FLOAT, MPI_CHAR, MPI_LONG};
    return types[draw(random, sizeof types / sizeof *types)];
}

/* A type of at most `room` bytes whose data are in ascending order without overlaps. */
static MPI_Datatype nested(random_state *random, int depth, MPI_Aint room) {
    MPI_Datatype child = depth ? nested(random, depth - 1, room / 3) : named(random), type = child;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(child, &lower, &extent);
    if (extent <= 0 || extent * 2 > room)
        return child;
    int most = (int)(room / extent), count = 1 + (int)draw(random, (uint64_t)(most < 5 ? most : 5));
    int blocks[8], places[8];
    MPI_Aint addresses[8];
    MPI_Datatype types[8];
    int length = 1 + (int)draw(random, 3), step = length + (int)draw(random, 3), at = 0, used = 0;
    while (count > 1 && ((count - 1) * step + length) * extent > room)
        count--;
    if (((count - 1) * step + length) * extent > room)
        length = step = 1;
    for (int i = 0; i < 5; i++) {
        at += (int)draw(random, 3);
        int block = 1 + (int)draw(random, 2);
        if ((at + block) * extent > room)
            break;
        blocks[used] = block;
        places[used] = at;
        addresses[used] = at * extent;
        types[used++] = child;
        at += block;
    }
    int sizes[2] = {2 + (int)draw(random, 3), 2 + (int)draw(random, 4)}, parts[2], starts[2];
    for (int d = 0; d < 2; d++) {
        parts[d] = 1 + (int)draw(random, (uint64_t)sizes[d]);
        starts[d] = (int)draw(random, (uint64_t)(sizes[d] - parts[d] + 1));
    }
    int order = draw(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, fits = sizes[0] * sizes[1] * extent <= room;
    switch (draw(random, 10)) {
    case 0:
        MPI_Type_contiguous(count, child, &type);
        break;
    case 1:
        MPI_Type_vector(count, length, step, child, &type);
        break;
    case 2:
        MPI_Type_create_hvector(count, length, step * extent, child, &type);
        break;
    case 3:
        MPI_Type_indexed(used, blocks, places, child, &type);
        break;
    case 4:
        MPI_Type_create_hindexed(used, blocks, addresses, child, &type);
        break;
    case 5:
        for (int i = 0; i < used; i++)
            places[i] = 2 * i;
        while (used && (2 * used - 1) * extent > room)
            used--;
        MPI_Type_create_indexed_block(used, 1, places, child, &type);
        break;
    case 6:
        MPI_Type_create_struct(used, blocks, addresses, types, &type);
        break;
    case 7:
        if (fits)
            MPI_Type_create_subarray(2, sizes, parts, starts, order, child, &type);
        else
            MPI_Type_dup(child, &type);
        break;
    case 8:
        if (fits) {
            int kinds[2] = {draw(random, 2) ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
            int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 1};
            MPI_Type_create_darray(2, (int)draw(random, 2), 2, sizes, kinds, arguments, grid, order, child, &type);
        } else {
            MPI_Type_dup(child, &type);
        }
        break;
    default:
        MPI_Type_create_resized(child, 0, extent * count, &type);
    }
    keep(type);
    /* It begins at its address, so that its extent is all the room that it needs. */
    MPI_Type_get_extent(type, &lower, &extent);
    if (lower)
        MPI_Type_create_resized(type, 0, lower + extent, &type);
    return lower ? keep(type) : type;
}

/* A type of memory, with gaps. ROMIO of MPICH 4.0 does not end some writes of other types, such as structs. */
static MPI_Datatype in_memory(random_state *random) {
    MPI_Datatype child = named(random), type = child;
    if (draw(random, 2))
        MPI_Type_vector(1 + (int)draw(random, 4), 2, 3, child, &type);
    else
        MPI_Type_contiguous(1 + (int)draw(random, 9), child, &type);
    return keep(type);
}

/* A view in which each rank has bytes of its own: a tile of each `ranks` tiles. */
static MPI_Datatype view_of(random_state *common, MPI_Datatype *etype) {
    random_state own = {common->state + 977u * (uint64_t)(rank + 1)};
    int depth = (int)draw(common, 4);
    MPI_Datatype inner = nested(&own, depth, TILE), placed, type;
    int size, one = 1;
    MPI_Aint at = (MPI_Aint)rank * TILE;
    MPI_Type_size(inner, &size);
    if (size == 0)
        inner = MPI_DOUBLE;
    *etype = MPI_BYTE;
    MPI_Type_create_hindexed(1, &one, &at, inner, &placed);
    keep(placed);
    MPI_Type_create_resized(placed, 0, (MPI_Aint)ranks * TILE, &type);
    return keep(type);
}

static uint64_t hash_of(const unsigned char *data, size_t bytes) {
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    return hash;
}

static void synced(MPI_File file) {
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

static unsigned char memory[1 << 16];

/* One access for writing: how it is made is the same on all ranks, what it writes is not. */
static void write_some(MPI_File file, random_state *common, MPI_Offset at) {
    random_state own = {common->state + 31u * (uint64_t)(rank + 1)};
    int how = (int)draw(common, 9), count = (int)draw(&own, 6), got = -1, size;
    MPI_Datatype type = in_memory(&own);
    MPI_Status status;
    MPI_Request request;
    MPI_Type_size(type, &size);
    /* ROMIO of MPICH 4.0 does not end some nonblocking writes whose memory has gaps. */
    if (how == 4 || how == 5 || how == 8)
        type = MPI_BYTE, size = 1, count = 1 + 40 * count;
    for (size_t i = 0; i < 8192; i++)
        memory[i] = (unsigned char)draw(&own, 256);
    switch (how) {
    case 0:
        MPI_File_write(file, memory, count, type, &status);
        break;
    case 1:
        MPI_File_write_all(file, memory, count, type, &status);
        break;
    case 2:
        MPI_File_write_at(file, at, memory, count, type, &status);
        break;
    case 3:
        MPI_File_write_at_all(file, at, memory, count, type, &status);
        break;
    case 4:
        MPI_File_iwrite_at(file, at, memory, count, type, &request);
        MPI_Wait(&request, &status);
        break;
    case 5:
        MPI_File_iwrite(file, memory, count, type, &request);
        MPI_Wait(&request, &status);
        break;
    case 6:
        MPI_File_write_all_begin(file, memory, count, type);
        MPI_File_write_all_end(file, memory, &status);
        break;
    case 7:
        MPI_File_write_at_all_begin(file, at, memory, count, type);
        MPI_File_write_at_all_end(file, memory, &status);
        break;
    default:
        MPI_File_iwrite_all(file, memory, count, type, &request);
        MPI_Wait(&request, &status);
    }
    MPI_Get_count(&status, MPI_BYTE, &got);
    printf("%d: write %d of %d: %d\n", rank, how, count * size, got);
}

/* Reads what all ranks wrote. Through a view with gaps ROMIO counts bytes behind the end of the file, too. */
static void read_some(MPI_File file, random_state *common) {
    random_state own = {common->state + 53u * (uint64_t)(rank + 1)};
    int count = (int)draw(&own, 9000), got = -1, how = (int)draw(common, 5);
    MPI_Offset at = (MPI_Offset)draw(&own, 4000), from = (MPI_Offset)draw(common, 900), size;
    MPI_Status status;
    MPI_Request request;
    memset(memory, 7, sizeof memory);
    MPI_File_get_size(file, &size);
    /* Collective reads of ROMIO count them without a view, too. */
    if ((how == 1 || how == 2 || how == 4) && from + at + count > size)
        at = 0, count = size > from ? (int)(size - from) % 9000 : 0;
    MPI_File_set_view(file, from, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    switch (how) {
    case 0:
        MPI_File_read_at(file, at, memory, count, MPI_BYTE, &status);
        break;
    case 1:
        MPI_File_read_at_all(file, at, memory, count, MPI_BYTE, &status);
        break;
    case 2:
        MPI_File_seek(file, at, MPI_SEEK_SET);
        MPI_File_read_all(file, memory, count, MPI_BYTE, &status);
        break;
    case 3:
        MPI_File_iread_at(file, at, memory, count, MPI_BYTE, &request);
        MPI_Wait(&request, &status);
        break;
    default:
        MPI_File_read_at_all_begin(file, at, memory, count, MPI_BYTE);
        MPI_File_read_at_all_end(file, memory, &status);
    }
    MPI_Get_count(&status, MPI_BYTE, &got);
    printf("%d: read %d at %lld of %d: %d %016llx\n", rank, how, (long long)at, count, got,
           (unsigned long long)hash_of(memory, (size_t)(got > 0 ? got : 0)));
}

static void one_file(const char *name, uint64_t number) {
    random_state common = {number * 7919 + 1};
    MPI_File file;
    MPI_Datatype etype, type;
    MPI_Offset size, place;
    made_count = 0;
    draw(&common, 2);
    if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        printf("%s was not opened\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_File_set_size(file, FILE_BYTES);
    synced(file);
    int calls = 3 + (int)draw(&common, 12);
    for (int call = 0; call < calls; call++) {
        MPI_Offset at = (MPI_Offset)draw(&common, 200);
        switch (draw(&common, 8)) {
        case 0:
        case 1:
            type = view_of(&common, &etype);
            /* Tiles of ranks stay apart: displacements are whole rows of tiles. */
            MPI_File_set_view(file, (MPI_Offset)draw(&common, 3) * TILE * ranks, etype, type, "native", MPI_INFO_NULL);
            write_some(file, &common, at);
            break;
        case 2:
        case 3:
            synced(file);
            read_some(file, &common);
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case 4:
            synced(file);
            MPI_File_get_size(file, &size);
            MPI_File_get_position(file, &place);
            printf("%d: size %lld position %lld\n", rank, (long long)size, (long long)place);
            MPI_File_get_byte_offset(file, at, &place);
            printf("%d: byte %lld\n", rank, (long long)place);
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case 5:
            synced(file);
            MPI_File_set_size(file, FILE_BYTES + (MPI_Offset)draw(&common, 20000));
            synced(file);
            break;
        case 6:
            synced(file);
            MPI_File_seek(file, (MPI_Offset)draw(&common, 500), MPI_SEEK_SET);
            break;
        default:
            type = view_of(&common, &etype);
            MPI_File_set_view(file, 0, etype, type, "native", MPI_INFO_NULL);
            for (int i = 0; i < 3; i++)
                write_some(file, &common, (MPI_Offset)draw(&common, 200));
        }
    }
    if (draw(&common, 2)) {
        synced(file);
        MPI_File_set_size(file, (MPI_Offset)draw(&common, 20000));
    }
    MPI_File_close(&file);
    for (int i = 0; i < made_count; i++)
        MPI_Type_free(&made[i]);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    /* Launchers mix lines of ranks. */
    char log[512];
    snprintf(log, sizeof log, "%srank-%d.log", words[1], rank);
    if (!freopen(log, "w", stdout))
        MPI_Abort(MPI_COMM_WORLD, 4);
    for (int number = atoi(words[2]); number < atoi(words[3]); number++) {
        char name[512];
        snprintf(name, sizeof name, "%s%d%s", words[1], number, words[4]);
        printf("%d: file %d\n", rank, number);
        one_file(name, (uint64_t)number);
    }
    MPI_Finalize();
    return 0;
}
