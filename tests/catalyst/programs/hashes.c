/* The hash of a mesh's arrays: it does not depend on how bytes are divided, and differs with each bit and length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh_hash.h"

enum { BYTES = 160, HASHES = BYTES * 8 + BYTES + 1 };

static char found[HASHES][MESH_HASH_TEXT];

static int compare(const void *first, const void *second) {
    return strcmp(first, second);
}

static void hash_of(const unsigned char *data, size_t bytes, size_t part, char *text) {
    struct mesh_hash hash;

    mesh_hash_begin(&hash);
    for (size_t at = 0; at < bytes; at += part)
        mesh_hash_add(&hash, data + at, bytes - at < part ? bytes - at : part);
    mesh_hash_end(&hash, text);
}

int main(void) {
    unsigned char data[BYTES] = {0};
    char other[MESH_HASH_TEXT];
    size_t count = 0;

    /* Zeros of each length: the length counts. */
    for (size_t bytes = 0; bytes <= BYTES; bytes++)
        hash_of(data, bytes, BYTES, found[count++]);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(37 * i + 11);
    for (size_t bit = 0; bit < BYTES * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        hash_of(data, BYTES, BYTES, found[count]);
        for (size_t part = 1; part < 80; part += 13) {
            hash_of(data, BYTES, part, other);
            if (strcmp(other, found[count]) != 0)
                return 1;
        }
        count++;
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 1; i < count; i++)
        if (strcmp(found[i], found[i - 1]) == 0)
            return 2;
    printf("%zu\n", count);
    return 0;
}
