/* The two ends of a chain of languages: `mixed URL offer NAME` offers an array of 5 x 7 elements by two ranks, row by row;
 * `mixed URL check NAME` receives one and compares the bits. */
#include "expect.h"

enum { ROWS = 5, COLUMNS = 7 };

/* Any bits: among them are numbers of every size, and such that are not numbers. */
static uint64_t bits(uint64_t element) { return 0x9E3779B97F4A7C15U * (element + 1); }

int main(int count, char **words) {
    jct_pool_t *pool;
    jct_layout_t *rows, *whole;
    uint64_t elements[ROWS * COLUMNS];
    EXPECT(count == 4);
    OK(jct_pool_open(words[1], NULL, &pool));
    jct_attributes_t *key = named(words[3]);
    OK(jct_layout_parse("shape=5x7 grid=2x1", &rows));
    OK(jct_layout_parse("shape=5x7", &whole));
    if (!strcmp(words[2], "offer")) {
        for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
            elements[i] = bits(i);
        for (uint64_t rank = 0; rank < 2; rank++) {
            uint64_t first, size;
            OK(jct_layout_start(rows, rank, 0, &first));
            OK(jct_layout_elements(rows, rank, &size));
            OK(jct_offer_piece(pool, rows, rank, "f8", key, elements + first * COLUMNS, size * 8, NULL));
        }
    } else {
        OK(jct_demand_array(pool, key, whole, 0, "f8", elements, sizeof elements, NULL, 60));
        for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
            EXPECT(elements[i] == bits(i));
    }
    jct_layout_free(rows);
    jct_layout_free(whole);
    jct_attributes_free(key);
    jct_pool_close(pool);
    puts("done");
    return 0;
}
