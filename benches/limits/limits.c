// What this machine allows: the least that any way of handing an object from one process to another has to do.
//
//   limits ring|ring-copy|socket|relay BYTES WINDOW RATE untouched|filled|touched SLOTS WARMUP_S SECONDS
//   limits memcpy BYTES SECONDS
//
// ring:       a ring of slots in shared memory; a number per object is all that is handed over. Who finds nothing to do
//             looks again for some microseconds, then sleeps on a futex.
// ring-copy:  the same, but each payload is copied into its slot from the producer's own memory (64 MiB of it).
// socket:     a unix socket; the producer writes the payload, the consumer answers each quarter of a window with as many
//             bytes, and the producer waits when WINDOW objects have no answer.
// relay:      the payload stays in its slot; a third process is woken by the producer (eventfd, epoll), wakes the consumer
//             (eventfd, poll) and then answers the producer, who waits for that. Nothing else is done, nobody looks again
//             before he sleeps, and WINDOW is 1: the wake-ups that a server costs which decides who receives what.
// memcpy:     copies of BYTES from one end of 256 MiB to the other.
// One line of JSON each. There are no attributes, no index, no query, no crash handling.
#define _GNU_SOURCE
#include "load.h"

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SOURCE_BYTES (64u << 20)
#define MEMCPY_BYTES (256u << 20)
#define LOOKS 200
#define RELAY_SLOTS 1024

// One side waits for the other's position to pass a value.
typedef struct {
    _Alignas(128) _Atomic uint64_t position;
    _Atomic uint32_t word; // changes when the position did and somebody slept
    _Atomic uint32_t sleeps;
} side;

typedef struct {
    side produced, consumed;
} ring;

static void advance(side *s, uint64_t to) {
    atomic_store(&s->position, to);
    if (atomic_load(&s->sleeps)) {
        atomic_fetch_add(&s->word, 1);
        syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void await_at_least(side *s, uint64_t least) {
    for (int looks = 0; atomic_load_explicit(&s->position, memory_order_acquire) < least; looks++) {
        if (looks < LOOKS) {
            __builtin_ia32_pause();
            continue;
        }
        uint32_t word = atomic_load(&s->word);
        atomic_store(&s->sleeps, 1);
        if (atomic_load(&s->position) < least) syscall(SYS_futex, &s->word, FUTEX_WAIT, word, NULL, NULL, 0);
        atomic_store(&s->sleeps, 0);
        looks = 0;
    }
}

static void ring_producer(const load *l, ring *r, char *slots, bool copies) {
    uint64_t sources = SOURCE_BYTES / l->bytes + 1, start = now_ns(), n = 0;
    char *source = copies ? private_bytes(sources * l->bytes) : NULL;
    for (bool more = true; more; n++) {
        more = pace(l, start, n);
        if (n >= l->window) await_at_least(&r->consumed, n - l->window + 1);
        char *slot = slots + n % l->slots * l->bytes;
        char *payload = copies ? source + n % sources * l->bytes : slot;
        write_payload(l, payload, more ? n : END);
        if (copies) memcpy(slot, payload, l->bytes);
        advance(&r->produced, n + 1);
    }
}

static void ring_consumer(const load *l, ring *r, const char *slots) {
    tally t = tally_new();
    for (uint64_t n = 0;; n++) {
        await_at_least(&r->produced, n + 1);
        bool more = take(l, &t, slots + n % l->slots * l->bytes);
        advance(&r->consumed, n + 1);
        if (!more) break;
    }
    print_tally(l, &t, "");
}

static void read_whole(int fd, char *at, size_t bytes) {
    while (bytes > 0) {
        ssize_t got = read(fd, at, bytes);
        if (got <= 0) die("read");
        at += got;
        bytes -= (size_t)got;
    }
}

static void write_whole(int fd, const char *at, size_t bytes) {
    while (bytes > 0) {
        ssize_t put = write(fd, at, bytes);
        if (put <= 0) die("write");
        at += put;
        bytes -= (size_t)put;
    }
}

static void socket_producer(const load *l, int fd) {
    char *payload = private_bytes(l->bytes), answers[4096];
    uint64_t start = now_ns(), outstanding = 0, n = 0;
    for (bool more = true; more; n++) {
        more = pace(l, start, n);
        while (outstanding >= l->window) {
            ssize_t got = read(fd, answers, sizeof answers);
            if (got <= 0) die("read");
            outstanding -= (uint64_t)got;
        }
        write_payload(l, payload, more ? n : END);
        write_whole(fd, payload, l->bytes);
        outstanding++;
    }
}

static void socket_consumer(const load *l, int fd) {
    char *payload = private_bytes(l->bytes);
    uint64_t batch = l->window >= 4 ? l->window / 4 : 1;
    char *answers = private_bytes(batch);
    tally t = tally_new();
    for (;;) {
        read_whole(fd, payload, l->bytes);
        if (!take(l, &t, payload)) break;
        if (t.objects % batch == 0) write_whole(fd, answers, batch);
    }
    print_tally(l, &t, "");
}

// Who rings whom: the producer the relay, the relay the consumer, the relay the producer.
typedef struct {
    int offered, delivered, answered;
} bells;

static void strike(int bell) {
    uint64_t one = 1;
    if (write(bell, &one, sizeof one) != sizeof one) die("eventfd");
}

static void answer(int bell) {
    uint64_t count;
    if (read(bell, &count, sizeof count) != sizeof count) die("eventfd");
}

static void relay_producer(const load *l, ring *r, const bells *b, char *slots) {
    uint64_t start = now_ns(), n = 0;
    for (bool more = true; more; n++) {
        more = pace(l, start, n);
        if (n >= l->slots) await_at_least(&r->consumed, n - l->slots + 1);
        write_payload(l, slots + n % l->slots * l->bytes, more ? n : END);
        strike(b->offered);
        answer(b->answered);
    }
}

static void relay(const bells *b) {
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, b->offered, &event) != 0) die("epoll");
    for (;;) {
        if (epoll_wait(epoll, &event, 1, -1) < 1) die("epoll");
        answer(b->offered);
        strike(b->delivered);
        strike(b->answered);
    }
}

static void relay_consumer(const load *l, ring *r, const bells *b, const char *slots) {
    tally t = tally_new();
    struct pollfd waited = {.fd = b->delivered, .events = POLLIN};
    for (uint64_t n = 0;; n++) {
        if (poll(&waited, 1, -1) < 1) die("poll");
        answer(b->delivered);
        bool more = take(l, &t, slots + n % l->slots * l->bytes);
        advance(&r->consumed, n + 1);
        if (!more) break;
    }
    print_tally(l, &t, "");
}

static pid_t child(void) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    return pid;
}

static int relayed(load *l) {
    // The consumer may fall behind the process between by so many.
    if (l->slots < RELAY_SLOTS) l->slots = RELAY_SLOTS;
    char *slots = shared_bytes(l->slots * l->bytes);
    ring *r = shared_bytes(sizeof(ring));
    bells b = {eventfd(0, EFD_SEMAPHORE), eventfd(0, EFD_SEMAPHORE), eventfd(0, EFD_SEMAPHORE)};
    pid_t between = child();
    if (between == 0) relay(&b);
    pid_t producer = child();
    if (producer == 0) {
        relay_producer(l, r, &b, slots);
        exit(0);
    }
    relay_consumer(l, r, &b, slots);
    int status;
    waitpid(producer, &status, 0);
    kill(between, SIGKILL);
    waitpid(between, NULL, 0);
    return status != 0;
}

static void copy_memory(size_t bytes, double seconds) {
    size_t blocks = MEMCPY_BYTES / bytes;
    char *from = private_bytes(blocks * bytes), *to = private_bytes(blocks * bytes);
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9), copied = 0;
    for (size_t i = 0; now_ns() < end; i = (i + 1) % blocks, copied++) memcpy(to + i * bytes, from + i * bytes, bytes);
    double took = (double)(now_ns() - start) / 1e9;
    printf("{\"objects_per_s\": %.1f, \"gib_per_s\": %.4f, \"objects\": %lu, \"lost\": 0, \"damaged\": 0}\n",
           (double)copied / took, (double)copied * (double)bytes / took / (1u << 30), copied);
}

static int pair(const char *mode, load *l) {
    bool is_socket = strcmp(mode, "socket") == 0;
    ring *r = shared_bytes(sizeof(ring));
    char *slots = is_socket ? NULL : shared_bytes(l->slots * l->bytes);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
    pid_t producer = child();
    if (producer == 0) {
        if (is_socket) socket_producer(l, ends[0]);
        else ring_producer(l, r, slots, strcmp(mode, "ring-copy") == 0);
        exit(0);
    }
    if (is_socket) socket_consumer(l, ends[1]);
    else ring_consumer(l, r, slots);
    int status;
    waitpid(producer, &status, 0);
    return status != 0;
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "memcpy") == 0) {
        copy_memory(strtoull(words[2], NULL, 10), atof(words[3]));
        return 0;
    }
    if (count != 9) {
        fprintf(stderr, "limits ring|ring-copy|socket|relay BYTES WINDOW RATE TOUCH SLOTS WARMUP_S SECONDS, or memcpy BYTES SECONDS\n");
        return 2;
    }
    load l = {.bytes = strtoull(words[2], NULL, 10) / 8 * 8,
              .window = strtoull(words[3], NULL, 10),
              .rate = atof(words[4]),
              .touch = touch_of(words[5]),
              .slots = strtoull(words[6], NULL, 10)};
    if (l.slots <= l.window) l.slots = l.window + 1;
    // All have their memory ready before the time begins.
    l.from_ns = now_ns() + (uint64_t)((atof(words[7]) + 0.2) * 1e9);
    l.to_ns = l.from_ns + (uint64_t)(atof(words[8]) * 1e9);
    return strcmp(words[1], "relay") == 0 ? relayed(&l) : pair(words[1], &l);
}
