/* Every function, as it is used. */
#include "expect.h"

#include <poll.h>
#include <stdint.h>

static void library(void) {
    EXPECT(jct_abi() == JCT_ABI);
    EXPECT(strchr(jct_version(), '.'));
    EXPECT(!strcmp(jct_code_name(JCT_OK), "Ok") && !strcmp(jct_code_name(JCT_GONE), "Gone"));
    EXPECT(!strcmp(jct_code_name(JCT_PANIC), "Panic") && !jct_code_name(77) && !jct_code_name(-1));
    EXPECT(jct_code_advice(JCT_TIMEOUT) == JCT_RETRY && jct_code_advice(JCT_NOT_FOUND) == JCT_FIX);
    EXPECT(jct_code_advice(JCT_GONE) == JCT_GIVE_UP && jct_code_advice(JCT_PANIC) == JCT_GIVE_UP);
}

static void attributes(jct_pool_t *pool) {
    jct_attributes_t *all = named("attributes");
    const char *const shape[] = {"4", "6"};
    OK(jct_attributes_set_int(all, "step", 6));
    OK(jct_attributes_set_text(all, "unit", "K"));
    OK(jct_attributes_set_text(all, "step", "12"));
    OK(jct_attributes_set_text(all, "dtype", "<f8"));
    OK(jct_attributes_set_list(all, "shape", shape, 2));
    OK(jct_offer(pool, all, "x", 1, "schema=free"));
    jct_object_t *object;
    OK(jct_demand(pool, "name=attributes", NULL, 10, &object));
    EXPECT(!strcmp(jct_object_get(object, "step"), "12") && !strcmp(jct_object_get(object, "unit"), "K"));
    EXPECT(!strcmp(jct_object_get(object, "shape"), "4/6"));
    const char *step = jct_object_get(object, "step");
    EXPECT(jct_object_get(object, "unknown") == NULL && step == jct_object_get(object, "step"));
    jct_object_release(object);
    OK(jct_attributes_set_real(all, "level", 0.5));
    RETURNS(JCT_TYPE_MISMATCH, jct_offer(pool, all, "x", 1, NULL));
    OK(jct_attributes_clear(all));
    RETURNS(JCT_SCHEMA_MISMATCH, jct_offer(pool, all, "x", 1, NULL));
    static const char *const field[][2] = {{"class", "od"},   {"stream", "oper"},  {"date", "2026-11-20"}, {"time", "12"},
                                           {"type", "fc"},    {"levtype", "pl"},   {"param", "t"}};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        OK(jct_attributes_set_text(all, field[i][0], field[i][1]));
    OK(jct_attributes_set_int(all, "step", 6));
    OK(jct_attributes_set_real(all, "levelist", 0.5));
    OK(jct_offer(pool, all, "field", 5, "schema=mars"));
    OK(jct_demand(pool, "param=t,levelist<=0.5", NULL, 10, &object));
    EXPECT(holds(object, "field") && !strcmp(jct_object_get(object, "levelist"), "0.5"));
    jct_object_release(object);
    jct_attributes_free(all);
}

static void offers(jct_pool_t *pool) {
    jct_attributes_t *key = named("offers");
    uint64_t count = 7;
    OK(jct_wanted(pool, key, NULL, &count));
    EXPECT(count == 0);
    RETURNS(JCT_NOT_WANTED, jct_offer(pool, key, NULL, 0, "if_wanted"));
    jct_attributes_t *empty = named("empty");
    OK(jct_offer(pool, empty, NULL, 0, "retention=10min, durability=memory"));
    jct_attributes_free(empty);
    jct_allocation_t *allocation;
    void *data;
    OK(jct_allocate(pool, 1 << 20, &allocation, &data));
    EXPECT((uintptr_t)data % 64 == 0);
    memset(data, 7, 1 << 20);
    OK(jct_allocation_offer(allocation, key, NULL));
    OK(jct_allocate(pool, 100, &allocation, &data));
    jct_allocation_free(allocation);
    jct_object_t *object;
    OK(jct_demand_key(pool, key, "schema=free", 10, &object));
    size_t bytes;
    const unsigned char *payload = jct_object_data(object, &bytes);
    EXPECT(bytes == 1 << 20 && payload[0] == 7 && payload[bytes - 1] == 7);
    EXPECT(strstr(jct_object_key(object), "name=offers") && jct_object_version(object) > 0);
    EXPECT(!jct_object_redelivered(object));
    OK(jct_object_give_back(object));
    OK(jct_withdraw(pool, key, "force", 10, &count));
    EXPECT(count >= 1);
    RETURNS(JCT_GONE, jct_demand_key(pool, key, NULL, 0, &object));
    EXPECT(!object && strstr(jct_error_cause(), "withdrawn"));
    OK(jct_withdraw_all(pool, "name=offers", NULL, 10, &count));
    EXPECT(count == 0);
    jct_attributes_free(key);
}

/* Copies into memory that was used before, and that was not: at once, in parts, and also by its address. */
static void allocations(jct_pool_t *pool) {
    enum { BYTES = 200000 };
    static unsigned char source[BYTES];
    for (size_t at = 0; at < BYTES; at++) source[at] = (unsigned char)(at % 251);
    jct_attributes_t *key = named("written");
    jct_allocation_t *allocation;
    jct_object_t *object;
    void *data;
    size_t bytes;
    for (int turn = 0; turn < 4; turn++) {
        OK(jct_allocate(pool, BYTES, &allocation, turn % 2 ? &data : NULL));
        RETURNS(JCT_INVALID_ARGUMENT, jct_allocation_write(allocation, 1, source, BYTES));
        OK(jct_allocation_write(allocation, 0, source, 3));
        OK(jct_allocation_write(allocation, 100003, source + 100003, BYTES - 100003));
        OK(jct_allocation_write(allocation, 3, source + 3, 100000));
        unsigned char *memory = jct_allocation_data(allocation, &bytes);
        EXPECT(bytes == BYTES && !memcmp(memory, source, BYTES));
        memory[7] = 1;
        OK(jct_allocation_offer(allocation, key, "retention=released:1"));
        OK(jct_demand_key(pool, key, NULL, 10, &object));
        const unsigned char *payload = jct_object_data(object, &bytes);
        EXPECT(bytes == BYTES && payload[7] == 1 && !memcmp(payload + 8, source + 8, BYTES - 8));
        jct_object_release(object);
        OK(jct_withdraw_all(pool, "name=written", "force,forget", 10, NULL));
    }
    OK(jct_allocate(pool, 3, &allocation, NULL));
    OK(jct_allocation_write(allocation, 1, "bc", 2));
    RETURNS(JCT_INVALID_ARGUMENT, jct_allocation_write(allocation, SIZE_MAX, "bc", 2));
    EXPECT(!memcmp(jct_allocation_data(allocation, NULL), "\0bc", 3));
    jct_allocation_free(allocation);
    EXPECT(!jct_allocation_data(NULL, &bytes) && bytes == 0);
    RETURNS(JCT_INVALID_ARGUMENT, jct_allocation_write(NULL, 0, "bc", 2));
    jct_attributes_free(key);
}

static void pipelines(jct_pool_t *pool) {
    jct_pipeline_t *pipeline;
    jct_allocation_t *allocation;
    jct_object_t *object;
    void *data;
    char name[16];
    jct_attributes_t *key = named("p");
    OK(jct_pipeline_open(pool, "window=2", &pipeline));
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "p%d", i);
        OK(jct_attributes_set_text(key, "name", name));
        OK(jct_pipeline_offer(pipeline, key, &i, sizeof i, "retention=withdrawn"));
    }
    OK(jct_allocate(pool, 100000, &allocation, &data));
    memset(data, 5, 100000);
    OK(jct_attributes_set_text(key, "name", "p10"));
    OK(jct_pipeline_offer_allocation(pipeline, allocation, key, NULL));
    OK(jct_pipeline_push(pipeline));
    OK(jct_pipeline_flush(pipeline));
    for (int i = 0; i < 11; i++) {
        char selector[32];
        snprintf(selector, sizeof selector, "name=p%d", i);
        OK(jct_demand(pool, selector, NULL, 0, &object));
        EXPECT(*(const char *)jct_object_data(object, NULL) == (i < 10 ? i : 5));
        jct_object_release(object);
    }
    OK(jct_pipeline_offer(pipeline, key, "again", 5, NULL));
    RETURNS(JCT_ALREADY_EXISTS, jct_pipeline_flush(pipeline));
    OK(jct_pipeline_flush(pipeline));
    RETURNS(JCT_INVALID_ARGUMENT, jct_pipeline_offer_allocation(pipeline, NULL, key, NULL));
    jct_pipeline_close(pipeline);
    RETURNS(JCT_INVALID_ARGUMENT, jct_pipeline_open(pool, "window=many", &pipeline));
    EXPECT(!pipeline);
    jct_attributes_free(key);
}

static void pending(jct_pool_t *pool) {
    jct_pending_t *late;
    jct_object_t *object;
    int descriptor;
    OK(jct_begin_demand(pool, "name=late", NULL, -1, &late));
    RETURNS(JCT_TIMEOUT, jct_pending_take(late, 0, &object));
    RETURNS(JCT_TIMEOUT, jct_pending_take(late, 0.001, &object));
    OK(jct_pool_descriptor(pool, &descriptor));
    offer(pool, "late", "answer");
    for (;;) {
        int code = jct_pending_take(late, 0, &object);
        if (code == JCT_OK)
            break;
        EXPECT(code == JCT_TIMEOUT);
        struct pollfd ready = {.fd = descriptor, .events = POLLIN};
        EXPECT(poll(&ready, 1, 60000) == 1);
    }
    EXPECT(holds(object, "answer"));
    jct_object_release(object);
    RETURNS(JCT_NOT_FOUND, jct_pending_take(late, -1, &object));
    RETURNS(JCT_NOT_FOUND, jct_pending_take(late, 0, &object));
    EXPECT(!object);
    jct_pending_free(late);
    OK(jct_begin_demand(pool, "name=never", NULL, -1, &late));
    jct_pending_free(late);
}

static void requirements(jct_pool_t *pool) {
    jct_requirement_t *requirement;
    jct_follow_t *follow;
    jct_object_t *object;
    uint64_t owed;
    int kind;
    OK(jct_require(pool, "name=r1/r2", "versions=newest, on_full=break, quota=1MiB, stuck_after=1min", &requirement));
    offer(pool, "r1", "one");
    OK(jct_requirement_follow(requirement, "window=1", &follow));
    do
        OK(jct_follow_next(follow, 60, &object, &kind));
    while (kind != JCT_OBJECT);
    EXPECT(holds(object, "one"));
    jct_object_release(object);
    jct_follow_close(follow);
    OK(jct_requirement_retract(requirement));

    OK(jct_require(pool, "name=r1/r2", "name=archive, time_to_live=1h", &requirement));
    jct_requirement_free(requirement);
    offer(pool, "r2", "two");
    OK(jct_demand(pool, "name=r2", "requirement=archive", 60, &object));
    jct_object_release(object);
    OK(jct_pool_sync(pool, 60));
    OK(jct_retract(pool, "archive", &owed));
    EXPECT(owed <= 1);
    RETURNS(JCT_NOT_FOUND, jct_retract(pool, "archive", NULL));
}

static void follows(jct_pool_t *pool) {
    jct_follow_t *follow, *member;
    jct_object_t *object;
    int kind;
    uint64_t missed;
    const char *reason;
    char cursor[512];
    offer(pool, "f1", "early");
    OK(jct_follow(pool, "name=f1/f2/f3", NULL, &follow));
    EXPECT(!strcmp(jct_follow_cursor(follow), ""));
    OK(jct_follow_next(follow, 60, &object, &kind));
    EXPECT(kind == JCT_OBJECT && holds(object, "early"));
    jct_object_release(object);
    OK(jct_follow_next(follow, -1, &object, &kind));
    EXPECT(kind == JCT_LIVE && !object);
    RETURNS(JCT_TIMEOUT, jct_follow_next(follow, 0, &object, &kind));
    RETURNS(JCT_TIMEOUT, jct_follow_next(follow, 0.001, &object, &kind));
    EXPECT(kind == 0);
    snprintf(cursor, sizeof cursor, "window=4,cursor=(%s)", jct_follow_cursor(follow));
    jct_follow_close(follow);
    offer(pool, "f2", "between");
    OK(jct_follow(pool, "name=f1/f2/f3", cursor, &follow));
    do
        OK(jct_follow_next(follow, 60, &object, &kind));
    while (kind != JCT_OBJECT);
    EXPECT(holds(object, "between"));
    OK(jct_follow_gap(follow, &missed, &reason));
    EXPECT(missed == 0 && !strcmp(reason, ""));
    jct_object_release(object);
    jct_follow_close(follow);

    OK(jct_follow(pool, "name=f3", "until_live,order_by=name", &follow));
    OK(jct_follow_next(follow, 60, &object, &kind));
    EXPECT(kind == JCT_LIVE);
    OK(jct_follow_next(follow, 60, &object, &kind));
    EXPECT(kind == JCT_OVER);
    jct_follow_close(follow);

    OK(jct_follow(pool, "name=g", "group=workers,versions=all", &follow));
    OK(jct_join(pool, "workers", "window=1", &member));
    jct_follow_close(member);
    offer(pool, "g", "work");
    do
        OK(jct_follow_next(follow, 60, &object, &kind));
    while (kind != JCT_OBJECT);
    OK(jct_object_give_back(object));
    do
        OK(jct_follow_next(follow, 60, &object, &kind));
    while (kind != JCT_OBJECT);
    EXPECT(jct_object_redelivered(object));
    jct_object_release(object);
    jct_follow_close(follow);
    OK(jct_retract(pool, "workers", NULL));
}

static void gaps(jct_pool_t *pool) {
    jct_requirement_t *requirement;
    jct_follow_t *follow;
    jct_object_t *object;
    int kind;
    uint64_t missed;
    const char *reason;
    OK(jct_require(pool, "name=gap", "name=gaps", &requirement));
    offer(pool, "gap", "lost");
    OK(jct_withdraw_all(pool, "name=gap", "force", 60, NULL));
    OK(jct_follow(pool, "", "requirement=gaps", &follow));
    do
        OK(jct_follow_next(follow, 60, &object, &kind));
    while (kind != JCT_GAP);
    OK(jct_follow_gap(follow, &missed, &reason));
    EXPECT(missed == 1 && !strcmp(reason, "withdrawn"));
    jct_follow_close(follow);
    OK(jct_requirement_retract(requirement));
}

static void events(jct_pool_t *pool) {
    jct_subscription_t *all, *offered;
    const char *kind = "";
    uint64_t number;
    int descriptor;
    RETURNS(JCT_INVALID_ARGUMENT, jct_subscribe(pool, "", "kinds=(offered,lost)", &offered));
    EXPECT(offered == NULL && strstr(jct_error_cause(), "withdrawn"));
    RETURNS(JCT_INVALID_SELECTOR, jct_subscribe(pool, "name=(", NULL, &offered));
    OK(jct_subscribe(pool, "name=event", "kinds=(offered, withdrawn)", &offered));
    OK(jct_subscribe(pool, "name=none", NULL, &all));
    RETURNS(JCT_TIMEOUT, jct_subscription_next(offered, 0, &kind));
    RETURNS(JCT_TIMEOUT, jct_subscription_next(offered, 0.001, &kind));
    EXPECT(kind == NULL && jct_event_text(offered, "key") == NULL);
    OK(jct_pool_descriptor(pool, &descriptor));
    offer(pool, "event", "payload");
    struct pollfd ready = {descriptor, POLLIN, 0};
    int arrived;
    while ((arrived = jct_subscription_next(offered, 0, &kind)) == JCT_TIMEOUT)
        EXPECT(poll(&ready, 1, 60000) == 1);
    OK(arrived);
    EXPECT(!strcmp(kind, "offered") && !strcmp(jct_event_get(offered, "name"), "event"));
    EXPECT(strstr(jct_event_text(offered, "key"), "event") && jct_event_get(offered, "unknown") == NULL);
    EXPECT(!strcmp(jct_event_text(offered, "client"), "functions") && jct_event_text(offered, "host"));
    EXPECT(jct_event_text(offered, "bundle") == NULL && jct_event_text(offered, "nonsense") == NULL);
    EXPECT(jct_event_text(offered, "location") == NULL && jct_event_text(offered, "requirement") == NULL);
    EXPECT(jct_event_text(offered, "selector") == NULL && jct_event_text(offered, "reason") == NULL);
    OK(jct_event_number(offered, "bytes", &number));
    EXPECT(number == 7);
    OK(jct_event_number(offered, "version", &number));
    OK(jct_event_number(offered, "pid", &number));
    OK(jct_event_number(offered, "client", &number));
    RETURNS(JCT_NOT_FOUND, jct_event_number(offered, "members", &number));
    RETURNS(JCT_NOT_FOUND, jct_event_number(offered, "declared", &number));
    RETURNS(JCT_INVALID_ARGUMENT, jct_event_number(offered, "nonsense", &number));
    jct_attributes_t *key = named("event");
    OK(jct_withdraw(pool, key, NULL, -1, NULL));
    jct_attributes_free(key);
    OK(jct_subscription_next(offered, -1, &kind));
    EXPECT(!strcmp(kind, "withdrawn"));
    jct_subscription_close(offered);
    jct_subscription_close(all);
    jct_subscription_close(NULL);
}

static void lists(jct_pool_t *pool) {
    jct_list_t *list;
    const char *key;
    uint64_t bytes;
    offer(pool, "l1", "1");
    offer(pool, "l2", "22");
    OK(jct_list(pool, "name=l1/l2", "order_by=name", &list));
    EXPECT(!jct_list_get(list, "name") && jct_error_code() == JCT_INVALID_ARGUMENT);
    OK(jct_list_next(list, &key, &bytes));
    EXPECT(strstr(key, "name=l1") && bytes == 1 && !strcmp(jct_list_get(list, "name"), "l1"));
    EXPECT(!jct_list_get(list, "unit"));
    OK(jct_list_next(list, &key, NULL));
    EXPECT(strstr(key, "name=l2"));
    OK(jct_list_next(list, &key, &bytes));
    EXPECT(!key && bytes == 0);
    OK(jct_list_next(list, &key, &bytes));
    EXPECT(!key);
    jct_list_close(list);
}

static void bundles(jct_pool_t *pool) {
    jct_bundle_t *mine, *yours;
    jct_attributes_t *first = named("b1"), *second = named("b2");
    jct_object_t *object;
    jct_allocation_t *allocation;
    void *data;
    uint64_t objects;
    OK(jct_bundle_open(pool, NULL, NULL, NULL, &mine));
    OK(jct_bundle_offer(mine, first, "one", 3, NULL));
    OK(jct_bundle_allocate(mine, 3, &allocation, &data));
    memcpy(data, "two", 3);
    OK(jct_allocation_stage(allocation, mine, second, NULL));
    RETURNS(JCT_NOT_FOUND, jct_demand(pool, "name=b1", NULL, 0, &object));
    OK(jct_demand(pool, "name=b1", "incomplete", 0, &object));
    jct_object_release(object);
    OK(jct_bundle_seal(mine, &objects));
    EXPECT(objects == 2);
    RETURNS(JCT_BUNDLE_CLOSED, jct_bundle_offer(mine, first, "one", 3, NULL));
    jct_bundle_close(mine);

    OK(jct_attributes_set_text(first, "name", "b3"));
    OK(jct_attributes_set_text(second, "name", "b4"));
    OK(jct_bundle_open(pool, "run/step=6", NULL, "members=2,orphan_timeout=1min", &mine));
    OK(jct_bundle_open(pool, "run/step=6", NULL, "members=2,orphan_timeout=1min", &yours));
    OK(jct_bundle_offer(mine, first, "one", 3, NULL));
    RETURNS(JCT_TIMEOUT, jct_bundle_wait(mine, 0.001, &objects));
    OK(jct_bundle_offer(yours, second, "two", 3, NULL));
    OK(jct_bundle_wait(mine, 60, &objects));
    EXPECT(objects == 2);
    jct_bundle_close(mine);
    jct_bundle_close(yours);

    jct_pipeline_t *members;
    OK(jct_attributes_set_text(first, "name", "b5"));
    OK(jct_attributes_set_text(second, "name", "b6"));
    OK(jct_bundle_open(pool, NULL, NULL, NULL, &mine));
    OK(jct_bundle_pipeline(mine, "window=1", &members));
    OK(jct_pipeline_offer(members, first, "one", 3, NULL));
    OK(jct_bundle_allocate(mine, 100000, &allocation, NULL));
    OK(jct_pipeline_offer_allocation(members, allocation, second, NULL));
    OK(jct_pipeline_flush(members));
    jct_pipeline_close(members);
    RETURNS(JCT_NOT_FOUND, jct_demand(pool, "name=b5", NULL, 0, &object));
    OK(jct_bundle_seal(mine, &objects));
    EXPECT(objects == 2);
    jct_bundle_close(mine);
    RETURNS(JCT_INVALID_ARGUMENT, jct_bundle_pipeline(NULL, NULL, &members));
    EXPECT(!members);

    OK(jct_bundle_open(pool, "", NULL, "", &mine));
    OK(jct_bundle_abort(mine));
    RETURNS(JCT_CLOSED, jct_bundle_wait(mine, -1, NULL));
    jct_bundle_close(mine);
    RETURNS(JCT_INVALID_ARGUMENT, jct_bundle_open(pool, NULL, first, NULL, &mine));
    jct_attributes_free(first);
    jct_attributes_free(second);
}

/* Layouts in which a rank has no first index: indices with gaps, several blocks, and none. */
static void starts_that_are_none(void) {
    const char *const texts[] = {"shape=8 grid=2 block=2", "shape=2 grid=4", "shape=4 slabs=0:1,2:3;1:2,3:4"};
    const uint64_t ranks[] = {0, 3, 0};
    for (int i = 0; i < 3; i++) {
        jct_layout_t *layout;
        uint64_t start = 7;
        OK(jct_layout_parse(texts[i], &layout));
        RETURNS(JCT_INVALID_ARGUMENT, jct_layout_start(layout, ranks[i], 0, &start));
        EXPECT(start == 0);
        jct_layout_free(layout);
    }
}

/* A layout of very many indices is not listed. */
static void start_of_a_large_array(void) {
    jct_layout_t *layout;
    uint64_t start;
    OK(jct_layout_parse("shape=1000000000000 grid=4", &layout));
    OK(jct_layout_start(layout, 3, 0, &start));
    EXPECT(start == 750000000000);
    jct_layout_free(layout);
}

/* Two ranks have rows of 4 x 6 numbers; three want columns, in the order of Fortran. */
/* An array is a member of a bundle that its ranks share. */
static void pieces_in_a_bundle(jct_pool_t *pool, const jct_layout_t *rows) {
    jct_bundle_t *alone, *one, *other;
    jct_attributes_t *key = named("member");
    jct_layout_t *whole;
    float piece[12] = {0}, all[24];
    uint64_t objects;
    OK(jct_layout_parse("shape=4x6", &whole));
    OK(jct_bundle_open(pool, "run/step=1", NULL, "members=2", &one));
    OK(jct_bundle_open(pool, "run/step=1", NULL, NULL, &other));
    OK(jct_bundle_offer_piece(one, rows, 0, "f4", key, piece, sizeof piece, "retention=withdrawn,schema=free"));
    RETURNS(JCT_CONFLICT, jct_bundle_offer_piece(other, whole, 0, "f4", key, all, sizeof all, NULL));
    piece[11] = 23;
    RETURNS(JCT_ALREADY_EXISTS, jct_bundle_offer_piece(other, rows, 0, "f4", key, piece, sizeof piece, NULL));
    OK(jct_bundle_offer_piece(other, rows, 1, "f4", key, piece, sizeof piece, NULL));
    RETURNS(JCT_NOT_FOUND, jct_demand_array(pool, key, whole, 0, "f4", all, sizeof all, NULL, 0));
    jct_attributes_t *time = named("time");
    OK(jct_bundle_offer(one, time, "1", 1, NULL));
    OK(jct_bundle_wait(other, 60, &objects));
    EXPECT(objects == 4);
    OK(jct_demand_array(pool, key, whole, 0, "f4", all, sizeof all, NULL, 0));
    EXPECT(all[11] == 0 && all[23] == 23);
    RETURNS(JCT_BUNDLE_CLOSED, jct_bundle_offer_piece(one, rows, 0, "f4", time, piece, sizeof piece, NULL));
    jct_bundle_close(one);
    jct_bundle_close(other);
    OK(jct_bundle_open(pool, NULL, NULL, NULL, &alone));
    RETURNS(JCT_INVALID_ARGUMENT, jct_bundle_offer_piece(alone, rows, 0, "f4", time, piece, sizeof piece, NULL));
    RETURNS(JCT_INVALID_ARGUMENT, jct_bundle_offer_piece(NULL, rows, 0, "f4", time, piece, sizeof piece, NULL));
    jct_bundle_close(alone);
    jct_layout_free(whole);
    jct_attributes_free(key);
    jct_attributes_free(time);
}

/* Any number of parts of one object, which is held before and afterwards. */
static void parts_of_a_held_array(jct_pool_t *pool, const jct_attributes_t *key, const jct_layout_t *columns,
                                  const jct_layout_t *blocks) {
    jct_object_t *object, *text;
    double part[8], piece[12];
    float floats[8];
    size_t bytes;
    OK(jct_demand_key(pool, key, NULL, 60, &object));
    const char *head = jct_object_data(object, &bytes);
    for (uint64_t rank = 0; rank < 3; rank++) {
        OK(jct_object_take(pool, object, columns, rank, "f8", part, sizeof part));
        OK(jct_object_take(pool, object, columns, rank, "f4", floats, sizeof floats));
        for (int i = 0; i < 8; i++)
            EXPECT(part[i] == 6 * (i % 4) + 2 * (int)rank + i / 4 && floats[i] == (float)part[i]);
    }
    OK(jct_object_take(pool, object, blocks, 1, "f8", piece, sizeof piece));
    EXPECT(piece[0] == 0 && piece[11] == 11);
    EXPECT(jct_object_data(object, NULL) == head && bytes > 0 && strstr(jct_object_key(object), "name=array"));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, object, columns, 1, "f8", part, 8));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, object, columns, 3, "f8", part, sizeof part));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, object, columns, 1, "no type", part, sizeof part));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, object, NULL, 1, "f8", part, sizeof part));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, NULL, columns, 1, "f8", part, sizeof part));
    OK(jct_object_give_back(object));
    /* An object that is no array stays as it is. */
    offer(pool, "text", "no array");
    OK(jct_demand(pool, "name=text", NULL, 60, &text));
    RETURNS(JCT_INVALID_ARGUMENT, jct_object_take(pool, text, columns, 1, "f8", part, sizeof part));
    EXPECT(memcmp(jct_object_data(text, &bytes), "no array", 8) == 0 && bytes >= 8);
    jct_object_release(text);
}

static void arrays(jct_pool_t *pool) {
    jct_layout_t *rows, *columns, *blocks;
    uint64_t number;
    OK(jct_layout_parse("shape=4x6 grid=2x1", &rows));
    OK(jct_layout_parse("shape=4x6 grid=1x3 order=F", &columns));
    OK(jct_layout_ranks(rows, &number));
    EXPECT(number == 2);
    OK(jct_layout_elements(rows, 1, &number));
    EXPECT(number == 12);
    OK(jct_layout_extent(columns, 2, 1, &number));
    EXPECT(number == 2);
    RETURNS(JCT_INVALID_ARGUMENT, jct_layout_extent(columns, 2, 2, &number));
    RETURNS(JCT_INVALID_ARGUMENT, jct_layout_elements(columns, 3, &number));
    OK(jct_layout_start(columns, 2, 1, &number));
    EXPECT(number == 4);
    OK(jct_layout_start(columns, 2, 0, &number));
    EXPECT(number == 0);
    RETURNS(JCT_INVALID_ARGUMENT, jct_layout_start(columns, 2, 2, &number));
    RETURNS(JCT_INVALID_ARGUMENT, jct_layout_start(columns, 3, 0, &number));
    starts_that_are_none();
    start_of_a_large_array();
    const uint64_t shape[] = {4, 6}, ranks[] = {1, 0}, starts[] = {0, 0, 2, 0}, counts[] = {2, 6, 2, 6};
    OK(jct_layout_blocks(2, shape, 2, ranks, starts, counts, JCT_ORDER_C, &blocks));

    jct_attributes_t *key = named("array");
    double piece[12], part[8];
    for (uint64_t rank = 0; rank < 2; rank++) {
        for (int i = 0; i < 12; i++)
            piece[i] = (double)(12 * rank + (uint64_t)i);
        OK(jct_offer_piece(pool, rows, rank, "f8", key, piece, sizeof piece, "retention=withdrawn"));
    }
    OK(jct_demand_array(pool, key, columns, 1, "f8", part, sizeof part, NULL, 60));
    for (int i = 0; i < 8; i++)
        EXPECT(part[i] == 6 * (i % 4) + 2 + i / 4);
    OK(jct_demand_array(pool, key, blocks, 0, "f8", piece, sizeof piece, "schema=free", 60));
    EXPECT(piece[0] == 12 && piece[11] == 23);
    parts_of_a_held_array(pool, key, columns, blocks);
    /* The key is freed with the pieces, whose bytes are others now. */
    memset(piece, 0, sizeof piece);
    RETURNS(JCT_ALREADY_EXISTS, jct_offer_piece(pool, rows, 0, "f8", key, piece, sizeof piece, NULL));
    RETURNS(JCT_ALREADY_EXISTS, jct_offer_piece(pool, rows, 0, "i8", key, piece, sizeof piece, NULL));
    uint64_t freed;
    OK(jct_withdraw(pool, key, "forget", 60, &freed));
    EXPECT(freed == 1);
    for (uint64_t rank = 0; rank < 2; rank++)
        OK(jct_offer_piece(pool, rows, rank, "f8", key, piece, sizeof piece, "retention=withdrawn"));
    RETURNS(JCT_INVALID_ARGUMENT, jct_demand_array(pool, key, columns, 1, "f8", part, 8, NULL, 60));
    RETURNS(JCT_INVALID_ARGUMENT, jct_demand_array(pool, key, columns, 1, "no type", part, 8, NULL, 60));
    jct_attributes_free(key);
    pieces_in_a_bundle(pool, rows);

    jct_exchange_t *to, *from;
    jct_layout_t *whole;
    jct_attributes_t *run = jct_attributes_new(), *step = named("wind");
    OK(jct_layout_parse("shape=4x6", &whole));
    OK(jct_attributes_set_text(run, "space", "coupled"));
    OK(jct_exchange_open(pool, whole, 0, "f8", run, "retention=withdrawn,schema=free", &from));
    OK(jct_attributes_set_text(step, "step", "1"));
    double all[24];
    for (uint64_t rank = 0; rank < 2; rank++) {
        OK(jct_exchange_open(pool, rows, rank, "f8", run, "retention=withdrawn", &to));
        for (int i = 0; i < 12; i++)
            piece[i] = (double)(12 * rank + (uint64_t)i);
        OK(jct_exchange_put(to, step, piece, sizeof piece));
        jct_exchange_close(to);
    }
    OK(jct_exchange_get(from, step, 60, all, sizeof all));
    for (int i = 0; i < 24; i++)
        EXPECT(all[i] == i);
    jct_exchange_close(from);
    jct_attributes_free(run);
    jct_attributes_free(step);
    jct_layout_free(whole);
    jct_layout_free(rows);
    jct_layout_free(columns);
    jct_layout_free(blocks);
}

static void close_pool(jct_pool_t *pool) {
    jct_follow_t *follow;
    jct_object_t *object, *none;
    char *json;
    int kind;
    OK(jct_pool_note(pool, "step=36, of=240"));
    OK(jct_pool_sync(pool, 60));
    OK(jct_pool_stat(pool, &json));
    EXPECT(json[0] == '{');
    EXPECT(strstr(json, "step=36, of=240"));
    jct_free(json);
    OK(jct_pool_explain(pool, "name=none", &json));
    EXPECT(strstr(json, "\"matches\":0") && strstr(json, "\"without\":["));
    jct_free(json);
    RETURNS(JCT_INVALID_SELECTOR, jct_pool_explain(pool, "name=", &json));
    EXPECT(!json);
    RETURNS(JCT_NOT_FOUND, jct_pool_explain(pool, "{space=default}{}{name=none}", &json));
    RETURNS(JCT_INVALID_ARGUMENT, jct_pool_note(pool, "two\nlines"));
    RETURNS(JCT_INVALID_ARGUMENT, jct_pool_note(pool, NULL));
    EXPECT(strchr(jct_pool_url(pool), ':'));
    offer(pool, "held", "held");
    OK(jct_demand(pool, "name=held", NULL, 60, &object));
    OK(jct_follow(pool, "", NULL, &follow));
    jct_pool_close(pool);
    EXPECT(holds(object, "held"));
    RETURNS(JCT_CLOSED, jct_follow_next(follow, -1, &none, &kind));
    jct_object_release(object);
    jct_follow_close(follow);
}

int main(int count, char **words) {
    jct_pool_t *pool;
    OK(jct_pool_open(count > 1 ? words[1] : "", "name=functions,timeout=1min,schema=(free,mars)", &pool));
    library();
    attributes(pool);
    offers(pool);
    allocations(pool);
    pipelines(pool);
    pending(pool);
    requirements(pool);
    follows(pool);
    gaps(pool);
    events(pool);
    lists(pool);
    bundles(pool);
    arrays(pool);
    close_pool(pool);
    puts("done");
    return 0;
}
