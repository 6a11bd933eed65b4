// Redis streams with the C client over a unix socket, under the load of load.h.
//
//   redis_streams producer|consumer BYTES WINDOW RATE TOUCH SLOTS CONTROL SOCKET
//
// The producer keeps up to WINDOW XADDs unanswered (an answer means: the object is in the stream); the consumer asks with
// XREAD BLOCK for what is new. An entry has the attributes as a text and the payload. The producer learns from CONTROL, a
// page of shared memory, how many the consumer has taken: the stream is cut to a length that the consumer never lags
// behind by. Redis itself has no such brake; it costs nothing measurable. Says "ready", reads when to measure.
#define _GNU_SOURCE
#include "../limits/load.h"

#include <hiredis/hiredis.h>

static const char ATTRIBUTES[] =
    "class=od,expver=0001,stream=enfo,date=20000101,time=0000,type=pf,levtype=pl,step=24,number=1,levelist=500,param=t,n=";

static redisContext *context;
static uint64_t outstanding;

static void failed(const char *what) {
    fprintf(stderr, "redis_streams: %s\n", what);
    exit(1);
}

static void check_answer(void *answer) {
    redisReply *reply = answer;
    if (reply == NULL) failed(context->errstr);
    if (reply->type == REDIS_REPLY_ERROR) failed(reply->str);
    freeReplyObject(reply);
    outstanding--;
}

// Sends what has gathered, waits for an answer, and takes those that came with it.
static void await_answers(uint64_t most) {
    while (outstanding > most) {
        void *answer = NULL;
        if (redisGetReply(context, &answer) != REDIS_OK) failed(context->errstr);
        check_answer(answer);
        while (outstanding > 0 && redisGetReplyFromReader(context, &answer) == REDIS_OK && answer != NULL)
            check_answer(answer);
    }
}

static void await_room(_Atomic uint64_t *taken, uint64_t n, uint64_t bound) {
    for (int looks = 0; n - atomic_load_explicit(taken, memory_order_acquire) >= bound; looks++) {
        await_answers(0);
        if (looks < 1000) sched_yield();
        else usleep(50);
    }
}

static void add(const load *l, const char *payload, uint64_t n, const char *length) {
    char attributes[sizeof ATTRIBUTES + 24];
    int bytes = snprintf(attributes, sizeof attributes, "%s%lu", ATTRIBUTES, n);
    const char *words[] = {"XADD", "objects", "MAXLEN", "~", length, "*", "a", attributes, "p", payload};
    size_t sizes[] = {4, 7, 6, 1, strlen(length), 1, 1, (size_t)bytes, 1, l->bytes};
    if (redisAppendCommandArgv(context, 10, words, sizes) != REDIS_OK) failed(context->errstr);
    outstanding++;
}

static void produce(const load *l, _Atomic uint64_t *taken) {
    uint64_t bound = 2 * (l->window > 64 ? l->window : 64), start = now_ns(), n = 0;
    char *payload = private_bytes(l->bytes), length[24];
    snprintf(length, sizeof length, "%lu", 2 * bound);
    for (bool more = true; more; n++) {
        if (l->rate > 0) await_answers(0);
        more = pace(l, start, n);
        await_room(taken, n, bound);
        await_answers(l->window - 1);
        write_payload(l, payload, more ? n : END);
        add(l, payload, n, length);
    }
    await_answers(0);
}

static void consume(const load *l, _Atomic uint64_t *taken) {
    char last[64] = "0", version[64];
    tally t = tally_new();
    int most = l->bytes > 65536 ? 4 : 256;
    uint64_t count = 0;
    for (bool more = true; more;) {
        redisReply *reply = redisCommand(context, "XREAD COUNT %d BLOCK 10000 STREAMS objects %s", most, last);
        if (reply == NULL) failed(context->errstr);
        if (reply->type != REDIS_REPLY_ARRAY) failed(reply->type == REDIS_REPLY_ERROR ? reply->str : "nothing comes");
        redisReply *entries = reply->element[0]->element[1];
        for (size_t i = 0; i < entries->elements && more; i++) {
            redisReply *entry = entries->element[i];
            snprintf(last, sizeof last, "%s", entry->element[0]->str);
            more = take(l, &t, entry->element[1]->element[3]->str);
            count++;
        }
        freeReplyObject(reply);
        atomic_store_explicit(taken, count, memory_order_release);
    }
    snprintf(version, sizeof version, "hiredis %d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    print_tally(l, &t, version);
}

int main(int count, char **words) {
    if (count != 9) failed("producer|consumer BYTES WINDOW RATE TOUCH SLOTS CONTROL SOCKET");
    load l = {.bytes = strtoull(words[2], NULL, 10) / 8 * 8,
              .window = strtoull(words[3], NULL, 10),
              .rate = atof(words[4]),
              .touch = touch_of(words[5])};
    int fd = open(words[7], O_RDWR);
    if (fd < 0) die(words[7]);
    _Atomic uint64_t *taken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (taken == MAP_FAILED) die("mmap");
    context = redisConnectUnix(words[8]);
    if (context == NULL || context->err) failed(context ? context->errstr : "no memory");
    printf("ready\n");
    fflush(stdout);
    if (scanf("%lu %lu", &l.from_ns, &l.to_ns) != 2) failed("no times");
    if (strcmp(words[1], "producer") == 0) produce(&l, taken);
    else consume(&l, taken);
    return 0;
}
