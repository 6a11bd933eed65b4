/* Ranks of MPI exchange an array through a pool, by one thread or by several, and use the pool after MPI_Finalize.
 * mpi_threads URL NAME funneled|multiple */
#include "expect.h"

#include <mpi.h>
#include <pthread.h>

enum { THREADS = 3, COLUMNS = 5 };

static jct_pool_t *pool;
static const char *run;
static int rank, ranks;

/* Each rank puts a row for each thread's array, and gets the row of the next rank. */
static void *exchange(void *number) {
    char text[64], name[64];
    double mine[COLUMNS], other[COLUMNS];
    jct_layout_t *rows;
    jct_exchange_t *both;
    snprintf(name, sizeof name, "%s-%d", run, *(int *)number);
    snprintf(text, sizeof text, "shape=%dx%d grid=%dx1", ranks, COLUMNS, ranks);
    jct_attributes_t *key = named(name);
    OK(jct_layout_parse(text, &rows));
    for (int i = 0; i < COLUMNS; i++)
        mine[i] = 100 * rank + 10 * *(int *)number + i;
    OK(jct_exchange_open(pool, rows, (uint64_t)rank, "f8", NULL, "retention=withdrawn", &both));
    OK(jct_exchange_put(both, key, mine, sizeof mine));
    jct_exchange_close(both);
    int next = (rank + 1) % ranks;
    OK(jct_demand_array(pool, key, rows, (uint64_t)next, "f8", other, sizeof other, NULL, 60));
    for (int i = 0; i < COLUMNS; i++)
        EXPECT(other[i] == 100 * next + 10 * *(int *)number + i);
    jct_layout_free(rows);
    jct_attributes_free(key);
    return NULL;
}

int main(int count, char **words) {
    EXPECT(count == 4);
    int wanted = !strcmp(words[3], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, provided;
    int numbers[THREADS + 1] = {0, 1, 2, 3};
    pthread_t threads[THREADS];
    EXPECT(MPI_Init_thread(&count, &words, wanted, &provided) == MPI_SUCCESS && provided >= wanted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    run = words[2];
    OK(jct_pool_open(words[1], NULL, &pool));
    if (wanted == MPI_THREAD_MULTIPLE) {
        for (int i = 0; i < THREADS; i++)
            EXPECT(!pthread_create(&threads[i], NULL, exchange, &numbers[i]));
        for (int i = 0; i < THREADS; i++)
            EXPECT(!pthread_join(threads[i], NULL));
    } else {
        for (int i = 0; i < THREADS; i++)
            exchange(&numbers[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    exchange(&numbers[THREADS]);
    jct_pool_close(pool);
    if (rank == 0)
        puts("done");
    return 0;
}
