// The load of a benchmark's native side: one producer process, one consumer process, objects that carry a stamp.
//
//   0        8          16                                n-8
//   | number | time, ns | filling (filled, touched)   …   | number |
//
// The producer writes the stamp and, unless payloads stay untouched, every byte between; the consumer compares the two
// numbers, counts what is missing and, when payloads are touched, reads every byte. The last object has the number END.
// The same load, in Rust, is in rivals/src/load.rs.
#ifndef JUNCTURA_BENCH_LOAD_H
#define JUNCTURA_BENCH_LOAD_H

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define END UINT64_MAX
#define STAMP_BYTES 24
#define TIMES_MAX (1u << 24)

enum touch { UNTOUCHED, FILLED, TOUCHED };

typedef struct {
    size_t bytes;
    uint64_t window;
    double rate; // objects per second, 0: as many as possible
    enum touch touch;
    uint64_t slots;
    uint64_t from_ns, to_ns; // what is received between is measured
} load;

typedef struct {
    uint64_t objects, measured, lost, damaged, next;
    uint32_t *times_ns;
    size_t times;
    volatile uint64_t sum;
} tally;

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline enum touch touch_of(const char *word) {
    if (strcmp(word, "untouched") == 0) return UNTOUCHED;
    if (strcmp(word, "filled") == 0) return FILLED;
    if (strcmp(word, "touched") == 0) return TOUCHED;
    fprintf(stderr, "%s: untouched, filled or touched\n", word);
    exit(2);
}

static inline void *shared_bytes(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) die("mmap");
    return at;
}

static inline void *private_bytes(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) die("mmap");
    memset(at, 1, bytes);
    return at;
}

// The time at which object n is due; waits for it. True when it lies before the end.
static inline bool pace(const load *l, uint64_t start_ns, uint64_t n) {
    uint64_t now = now_ns();
    if (l->rate > 0) {
        uint64_t due = start_ns + (uint64_t)((double)n * 1e9 / l->rate);
        if (due > now) {
            struct timespec t = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
            }
            now = due;
        }
    }
    return now < l->to_ns;
}

static inline void write_payload(const load *l, char *payload, uint64_t n) {
    size_t words = (l->bytes - STAMP_BYTES) / 8;
    if (l->touch != UNTOUCHED) {
        uint64_t value = n * 0x9e3779b97f4a7c15u;
        uint64_t *at = (uint64_t *)(payload + 16);
        for (size_t i = 0; i < words; i++) at[i] = value + i * 0x0101010101010101u;
    }
    uint64_t time = now_ns();
    memcpy(payload, &n, 8);
    memcpy(payload + 8, &time, 8);
    memcpy(payload + l->bytes - 8, &n, 8);
}

static inline tally tally_new(void) {
    tally t = {0};
    t.times_ns = malloc(sizeof(uint32_t) * TIMES_MAX);
    if (t.times_ns == NULL) die("malloc");
    return t;
}

// Takes an object in; false when it was the last.
static inline bool take(const load *l, tally *t, const char *payload) {
    uint64_t n, last, sent;
    memcpy(&n, payload, 8);
    if (n == END) return false;
    memcpy(&sent, payload + 8, 8);
    uint64_t now = now_ns();
    if (l->touch == TOUCHED) {
        const uint64_t *at = (const uint64_t *)payload;
        uint64_t sum = 0;
        for (size_t i = 0; i < l->bytes / 8; i++) sum += at[i];
        t->sum += sum;
    }
    memcpy(&last, payload + l->bytes - 8, 8);
    t->damaged += last != n;
    if (n < t->next) t->damaged++;
    else t->lost += n - t->next;
    t->next = n + 1;
    t->objects++;
    if (now >= l->from_ns && now < l->to_ns) {
        t->measured++;
        if (t->times < TIMES_MAX) t->times_ns[t->times++] = (uint32_t)(now - sent);
    }
    return true;
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static inline void print_tally(const load *l, tally *t, const char *version) {
    double seconds = (double)(l->to_ns - l->from_ns) / 1e9;
    qsort(t->times_ns, t->times, sizeof(uint32_t), by_size);
    double at[3] = {0.5, 0.99, 0.999}, us[3] = {0};
    for (int i = 0; i < 3 && t->times > 0; i++) us[i] = t->times_ns[(size_t)((double)(t->times - 1) * at[i])] / 1e3;
    printf("{\"objects_per_s\": %.1f, \"gib_per_s\": %.4f, \"objects\": %lu, \"lost\": %lu, \"damaged\": %lu, "
           "\"delivery_us\": {\"p50\": %.2f, \"p99\": %.2f, \"p999\": %.2f}, \"version\": \"%s\"}\n",
           (double)t->measured / seconds, (double)t->measured * (double)l->bytes / seconds / (1u << 30), t->objects,
           t->lost, t->damaged, us[0], us[1], us[2], version);
    fflush(stdout);
}

#endif
