#include "mesh_hash.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* Odd numbers without structure: the first digits of square roots of primes. */
static const uint64_t ODD[6] = {0x6a09e667f3bcc909u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                0xa54ff53a5f1d36f1u, 0x510e527fade682d1u, 0x9b05688c2b3e6c1fu};

static uint64_t turned(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= ODD[1];
    value ^= value >> 29;
    value *= ODD[3];
    return value ^ value >> 32;
}

/* The 128 bits of a product, folded. */
static uint64_t folded(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void take(struct mesh_hash *hash, const unsigned char *data, size_t blocks) {
    uint64_t a = hash->lanes[0], b = hash->lanes[1], c = hash->lanes[2], d = hash->lanes[3], words[8];

    for (size_t i = 0; i < blocks; i++, data += MESH_HASH_BLOCK) {
        memcpy(words, data, MESH_HASH_BLOCK);
        a = folded(a ^ words[0], words[1] ^ ODD[0]);
        b = folded(b ^ words[2], words[3] ^ ODD[1]);
        c = folded(c ^ words[4], words[5] ^ ODD[2]);
        d = folded(d ^ words[6], words[7] ^ ODD[4]);
    }
    hash->lanes[0] = a, hash->lanes[1] = b, hash->lanes[2] = c, hash->lanes[3] = d;
}

void mesh_hash_begin(struct mesh_hash *hash) {
    memset(hash, 0, sizeof *hash);
    for (int i = 0; i < 4; i++)
        hash->lanes[i] = ODD[i];
}

void mesh_hash_add(struct mesh_hash *hash, const void *data, size_t bytes) {
    const unsigned char *from = data;

    hash->bytes += bytes;
    if (hash->held) {
        size_t more = MESH_HASH_BLOCK - hash->held < bytes ? MESH_HASH_BLOCK - hash->held : bytes;

        memcpy(hash->block + hash->held, from, more);
        hash->held += more, from += more, bytes -= more;
        if (hash->held < MESH_HASH_BLOCK)
            return;
        take(hash, hash->block, 1);
        hash->held = 0;
    }
    take(hash, from, bytes / MESH_HASH_BLOCK);
    hash->held = bytes % MESH_HASH_BLOCK;
    if (hash->held)
        memcpy(hash->block, from + bytes - hash->held, hash->held);
}

void mesh_hash_end(struct mesh_hash *hash, char text[MESH_HASH_TEXT]) {
    uint64_t high = ODD[5] ^ hash->bytes, low = ODD[2] + hash->bytes;

    memset(hash->block + hash->held, 0, MESH_HASH_BLOCK - hash->held);
    take(hash, hash->block, 1);
    for (int i = 0; i < 4; i++) {
        high = mixed(high ^ hash->lanes[i]);
        low = mixed(turned(low, 17) + hash->lanes[3 - i] * ODD[5]);
    }
    snprintf(text, MESH_HASH_TEXT, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
}
