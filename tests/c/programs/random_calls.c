/* Random calls with random arguments, of a fixed seed: nothing breaks, and every code is one of the header.
 * random_calls URL CALLS SEED */
#include "expect.h"

enum { HANDLES = 8 };

static uint64_t state;

/* splitmix64 */
static uint64_t number(uint64_t below) {
    uint64_t value = (state += 0x9e3779b97f4a7c15u);
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return (value ^ (value >> 31)) % below;
}

static const char *word(void) {
    static const char *const words[] = {"a", "b", "c", "name=a", "name=a/b", "", "(", "\xff", "name=~a.*", "space=none"};
    size_t chosen = number(sizeof words / sizeof *words + 1);
    return chosen == sizeof words / sizeof *words ? NULL : words[chosen];
}

static const char *options(void) {
    static const char *const words[] = {"schema=free", "retention=released:1", "if_wanted", "nonsense", "window=2",
                                        "retention=(released_by:x,y)", "until_live", "force", "only_new", "members=2"};
    return number(2) ? NULL : words[number(sizeof words / sizeof *words)];
}

static jct_pool_t *pool;
static jct_attributes_t *sets[HANDLES];
static jct_object_t *objects[HANDLES];
static jct_allocation_t *allocations[HANDLES];
static jct_follow_t *follows[HANDLES];
static jct_list_t *lists[HANDLES];
static jct_bundle_t *bundles[HANDLES];
static jct_requirement_t *requirements[HANDLES];
static jct_pending_t *pendings[HANDLES];
static jct_layout_t *layouts[HANDLES];
static jct_pipeline_t *pipelines[HANDLES];
static jct_subscription_t *subscriptions[HANDLES];

static int sets_call(size_t at) {
    switch (number(5)) {
    case 0:
        jct_attributes_free(sets[at]);
        sets[at] = jct_attributes_new();
        return 0;
    case 1:
        return jct_attributes_set_text(sets[at], "name", word());
    case 2:
        return jct_attributes_set_int(sets[at], word(), (int64_t)number(1000) - 500);
    case 3:
        return jct_attributes_set_real(sets[at], word(), (double)number(1000) / 8);
    default:
        return jct_attributes_clear(sets[at]);
    }
}

static int offers_call(size_t at) {
    static const char payload[100000];
    void *data;
    size_t bytes;
    uint64_t count;
    jct_attributes_t *set = number(8) ? sets[number(HANDLES)] : NULL;
    switch (number(8)) {
    case 0:
    case 1:
        return jct_offer(pool, set, number(9) ? payload : NULL, number(number(2) ? 100 : sizeof payload), options());
    case 2:
        jct_allocation_free(allocations[at]);
        count = number(4) ? number(200000) : 0;
        int is_filled = number(2) > 0;
        int code = jct_allocate(pool, count, &allocations[at], is_filled ? &data : NULL);
        if (code == JCT_OK && is_filled)
            memset(data, 1, count);
        return code;
    case 3: {
        jct_allocation_t *taken = allocations[at];
        allocations[at] = NULL;
        return number(2) ? jct_allocation_offer(taken, set, options())
                         : jct_allocation_stage(taken, bundles[number(HANDLES)], set, options());
    }
    case 4:
        if (number(4))
            return jct_allocation_write(allocations[at], number(100000), payload, number(sizeof payload));
        jct_allocation_data(allocations[at], &bytes);
        return 0;
    case 5:
        return jct_wanted(pool, set, options(), &count);
    case 6:
        return jct_withdraw(pool, set, number(2) ? "force" : options(), 0, number(2) ? &count : NULL);
    default:
        return number(20) ? 0 : jct_withdraw_all(pool, word(), "force", 0, &count);
    }
}

static int reads_call(size_t at) {
    const char *key;
    uint64_t bytes;
    size_t length;
    switch (number(8)) {
    case 0:
    case 1:
        jct_object_release(objects[at]);
        return jct_demand(pool, word(), options(), 0, &objects[at]);
    case 2:
        jct_object_release(objects[at]);
        return jct_demand_key(pool, sets[number(HANDLES)], options(), 0, &objects[at]);
    case 3: {
        const char *data = jct_object_data(objects[at], &length);
        volatile char last = length ? data[length - 1] : 0;
        (void)last;
        jct_object_key(objects[at]);
        jct_object_get(objects[at], word());
        return 0;
    }
    case 4: {
        jct_object_t *given = objects[at];
        objects[at] = NULL;
        return jct_object_give_back(given);
    }
    case 5:
        jct_list_close(lists[at]);
        return jct_list(pool, word(), options(), &lists[at]);
    case 6:
        jct_pending_free(pendings[at]);
        return jct_begin_demand(pool, word(), options(), number(2) ? -1 : 0, &pendings[at]);
    default:
        jct_object_release(objects[at]);
        objects[at] = NULL;
        if (number(2))
            return jct_pending_take(pendings[at], 0, &objects[at]);
        jct_list_get(lists[at], word());
        return jct_list_next(lists[at], &key, number(2) ? &bytes : NULL);
    }
}

static int interests_call(size_t at) {
    int kind;
    switch (number(6)) {
    case 0:
        jct_follow_close(follows[at]);
        return jct_follow(pool, word(), options(), &follows[at]);
    case 1:
    case 2:
        jct_object_release(objects[at]);
        objects[at] = NULL;
        return jct_follow_next(follows[at], 0, &objects[at], &kind);
    case 3:
        jct_requirement_free(requirements[at]);
        return jct_require(pool, word(), options(), &requirements[at]);
    case 4: {
        jct_requirement_t *ended = requirements[at];
        requirements[at] = NULL;
        return jct_requirement_retract(ended);
    }
    default:
        jct_follow_close(follows[at]);
        return jct_requirement_follow(requirements[number(HANDLES)], options(), &follows[at]);
    }
}

static int bundles_call(size_t at) {
    uint64_t count;
    double memory[24];
    switch (number(7)) {
    case 0:
        jct_bundle_close(bundles[at]);
        return jct_bundle_open(pool, number(2) ? NULL : word(), NULL, number(4) ? NULL : options(), &bundles[at]);
    case 1:
        return jct_bundle_offer(bundles[at], sets[number(HANDLES)], "payload", number(8), options());
    case 2:
        return number(2) ? jct_bundle_seal(bundles[at], &count) : jct_bundle_abort(bundles[at]);
    case 3:
        return jct_bundle_wait(bundles[at], 0, NULL);
    case 4:
        jct_layout_free(layouts[at]);
        return jct_layout_parse(number(4) ? "shape=4x6 grid=2x1" : word(), &layouts[at]);
    case 5:
        return jct_offer_piece(pool, layouts[at], number(3), "f8", sets[number(HANDLES)], memory,
                               8 * (number(2) ? 12 : number(24)), NULL);
    default:
        return jct_demand_array(pool, sets[number(HANDLES)], layouts[at], number(3), "f8", memory,
                                8 * (number(2) ? 12 : number(24)), NULL, 0);
    }
}

static int pipelines_call(size_t at) {
    uint64_t start;
    switch (number(6)) {
    case 0:
        jct_pipeline_close(pipelines[at]);
        return number(2) ? jct_pipeline_open(pool, options(), &pipelines[at])
                         : jct_bundle_pipeline(bundles[number(HANDLES)], options(), &pipelines[at]);
    case 1:
    case 2:
        return jct_pipeline_offer(pipelines[at], sets[number(HANDLES)], "payload", number(8), options());
    case 3: {
        jct_allocation_t *offered = allocations[at];
        allocations[at] = NULL;
        return jct_pipeline_offer_allocation(pipelines[at], offered, sets[number(HANDLES)], options());
    }
    case 4:
        return number(2) ? jct_pipeline_push(pipelines[at]) : jct_pipeline_flush(pipelines[at]);
    default:
        return jct_layout_start(layouts[at], number(3), number(3), &start);
    }
}

static int events_call(size_t at) {
    const char *kind;
    uint64_t value;
    switch (number(5)) {
    case 0:
        jct_subscription_close(subscriptions[at]);
        return jct_subscribe(pool, word(), number(2) ? NULL : "kinds=(offered,left)", &subscriptions[at]);
    case 1:
    case 2:
        return jct_subscription_next(subscriptions[at], 0, &kind);
    case 3:
        jct_event_text(subscriptions[at], number(2) ? "key" : word());
        jct_event_get(subscriptions[at], word());
        return 0;
    default:
        return jct_event_number(subscriptions[at], number(2) ? "bytes" : word(), &value);
    }
}

int main(int count, char **words) {
    EXPECT(count == 4);
    int (*const calls[])(size_t) = {sets_call,    offers_call,    reads_call, interests_call,
                                    bundles_call, pipelines_call, events_call};
    uint64_t seen[256] = {0};
    state = strtoull(words[3], NULL, 10);
    OK(jct_pool_open(words[1], "timeout=1ms", &pool));
    for (long left = atol(words[2]); left > 0; left--) {
        int code = calls[number(7)](number(HANDLES));
        EXPECT(code >= 0 && code < 256 && jct_code_name(code) && code != JCT_PANIC && code != JCT_DISCONNECTED);
        seen[code]++;
    }
    for (size_t at = 0; at < HANDLES; at++) {
        jct_attributes_free(sets[at]);
        jct_object_release(objects[at]);
        jct_allocation_free(allocations[at]);
        jct_follow_close(follows[at]);
        jct_list_close(lists[at]);
        jct_bundle_close(bundles[at]);
        jct_requirement_free(requirements[at]);
        jct_pending_free(pendings[at]);
        jct_layout_free(layouts[at]);
        jct_pipeline_close(pipelines[at]);
        jct_subscription_close(subscriptions[at]);
    }
    jct_pool_close(pool);
    for (int code = 0; code < 256; code++)
        if (seen[code])
            printf("%s %llu\n", jct_code_name(code), (unsigned long long)seen[code]);
    return 0;
}
