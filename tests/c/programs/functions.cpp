/* Every function of the C++ header once, in the pool that the first argument names, or in a private one. */
#include <junctura.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using junctura::Attributes;
using junctura::Error;
using junctura::Layout;
using junctura::Object;
using junctura::Pool;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, jct_error_text());    \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

/* The number of the error that a call throws; JCT_OK where it throws none. */
template <typename Call> static int code_of(Call call) {
    try {
        call();
        return JCT_OK;
    } catch (const Error &error) {
        return error.code();
    }
}

static Attributes named(const std::string &name) { return Attributes{{"name", name}}; }

static void errors(const Pool &pool) {
    try {
        pool.demand("name=never", 0);
        EXPECT(!"an object");
    } catch (const std::exception &error) {
        const auto &ours = dynamic_cast<const Error &>(error);
        EXPECT(ours.code() == JCT_NOT_FOUND && !std::strcmp(ours.name(), "NotFound") && ours.advice() == JCT_FIX);
        EXPECT(std::strstr(ours.what(), "NotFound: ") == ours.what());
        EXPECT(std::strstr(ours.what(), ours.cause().c_str()) && std::strstr(ours.what(), ours.subject().c_str()));
    }
    EXPECT(code_of([] { Pool("unix:no-such-pool"); }) == JCT_UNAVAILABLE);
    EXPECT(code_of([&] { pool.demand("name="); }) == JCT_INVALID_SELECTOR);
}

static void attributes(const Pool &pool) {
    Attributes all = named("attributes");
    all.set("step", 6).set("unit", "K").set("step", "12").set_list("shape", {"4", "6"});
    pool.offer(all, std::string("x"), "schema=free");
    const Object object = pool.demand("name=attributes", 60);
    EXPECT(!std::strcmp(object.get("step"), "12") && !std::strcmp(object.get("shape"), "4/6"));
    EXPECT(!object.get("unknown") && std::strstr(object.key(), "name=attributes"));
    all.set("level", 0.5);
    EXPECT(code_of([&] { pool.offer(all, std::string("x")); }) == JCT_TYPE_MISMATCH);
    Attributes field{{"class", "od"}, {"stream", "oper"}, {"date", "2026-11-20"}, {"time", "12"}, {"type", "fc"}};
    field.set("levtype", "pl").set("param", "t").set("step", std::int64_t{6}).set("levelist", 0.5F);
    pool.offer(field, std::string("field"), "schema=mars");
    EXPECT(!std::strcmp(pool.demand("param=t,levelist<=0.5", 60).get("step"), "6"));
    all.clear();
    EXPECT(code_of([&] { pool.offer(all, std::string("x")); }) == JCT_SCHEMA_MISMATCH);
    /* A set that was moved from is empty, and may be assigned to. */
    Attributes other = std::move(all);
    EXPECT(code_of([&] { all.set("name", "x"); }) == JCT_INVALID_ARGUMENT);
    all = named("again");
    other = std::move(all);
}

static void offers(const Pool &pool) {
    const Attributes key = named("offers");
    EXPECT(pool.wanted(key) == 0);
    EXPECT(code_of([&] { pool.offer(key, std::string("x"), "if_wanted"); }) == JCT_NOT_WANTED);
    pool.offer(key, std::vector<double>{1.5, 2.5, 3.5}, "retention=withdrawn");
    Object object = pool.demand_key(key, 60, "schema=free");
    const junctura::Span<const double> values = object.data<double>();
    double sum = 0;
    for (const double value : values)
        sum += value;
    EXPECT(values.size() == 3 && values[2] == 3.5 && sum == 7.5 && !values.empty());
    EXPECT(object.data().size() == 24 && object.version() > 0 && !object.redelivered());
    EXPECT(code_of([&] { object.data<std::array<char, 7>>(); }) == JCT_INVALID_ARGUMENT);
    Object moved = std::move(object);
    EXPECT(!object && moved && code_of([&] { object.data(); }) == JCT_INVALID_ARGUMENT);
    moved.give_back();
    EXPECT(!moved);
    pool.sync(60);
    EXPECT(pool.withdraw(key, "force", 60) == 1 && pool.withdraw_all("name=offers") == 0);
    EXPECT(code_of([&] { pool.demand_key(key, 0); }) == JCT_GONE);
    pool.note("step=36, of=240");
    pool.sync(60);
    EXPECT(pool.stat().find("step=36, of=240") != std::string::npos);
    EXPECT(pool.explain("name=none").find("\"matches\":0") != std::string::npos);
    EXPECT(pool.stat()[0] == '{' && pool.descriptor() > 0 && pool.url().find(':') != std::string::npos);

    auto memory = pool.allocate<float>(2000);
    EXPECT(memory.data().size() == 2000);
    for (float &value : memory.data())
        value = 0.25F;
    memory.offer(named("placed"));
    EXPECT(memory.data().empty() && code_of([&] { memory.offer(key); }) == JCT_INVALID_ARGUMENT);
    EXPECT(pool.demand("name=placed").data<float>()[1999] == 0.25F);
    pool.allocate<char>(10);
    pool.offer(named("empty"), std::string());
    EXPECT(pool.demand("name=empty").text().empty());
}

static void pipelines(const Pool &pool) {
    junctura::Pipeline pipeline = pool.pipeline("window=2");
    for (int i = 0; i < 5; i++)
        pipeline.offer(named("piped." + std::to_string(i)), std::array<int, 1>{i});
    junctura::Allocation<int> copied = pool.allocate<int>(3);
    copied.write(std::array<int, 2>{1, 2});
    copied.write(std::array<int, 1>{3}, 2);
    EXPECT(copied.data()[0] == 1 && copied.data()[1] == 2 && copied.data()[2] == 3);
    EXPECT(code_of([&] { copied.write(std::array<int, 1>{4}, 3); }) == JCT_INVALID_ARGUMENT);
    pipeline.offer(std::move(copied), named("piped.5"));
    pipeline.push();
    pipeline.flush();
    EXPECT(pool.demand("name=piped.4", 0).data<int>()[0] == 4);
    EXPECT(pool.demand("name=piped.5", 0).data<int>().size() == 3);
    pipeline.offer(named("piped.0"), std::string("again"));
    EXPECT(code_of([&] { pipeline.flush(); }) == JCT_ALREADY_EXISTS);
}

static void waits(const Pool &pool) {
    junctura::Pending late = pool.begin_demand("name=late");
    EXPECT(code_of([&] { late.take(0); }) == JCT_TIMEOUT);
    pool.offer(named("late"), std::string("answer"));
    EXPECT(late.take().text() == "answer");

    junctura::Requirement requirement = pool.require("name=required", "versions=newest");
    pool.offer(named("required"), std::string("one"));
    junctura::Follow owed = requirement.follow("window=1");
    Object object = owed.next_object(60);
    EXPECT(object.text() == "one");
    object.release();
    owed.close();
    requirement.retract();
    pool.require("name=nothing", "name=archive");
    EXPECT(pool.retract("archive") == 0);
}

static void follows(const Pool &pool) {
    pool.offer(named("f1"), std::string("early"));
    junctura::Follow follow = pool.follow("name=f1/f2");
    EXPECT(follow.next_object().text() == "early" && follow.next().kind == JCT_LIVE);
    EXPECT(code_of([&] { follow.next(0); }) == JCT_TIMEOUT);
    const std::string cursor = follow.cursor();
    pool.offer(named("f2"), std::string("between"));
    follow = pool.follow("name=f1/f2", "until_live,cursor=(" + cursor + ")");
    EXPECT(follow.next_object().text() == "between" && !follow.next_object());
    pool.follow("name=g", "group=workers");
    pool.join("workers", "window=1");
    pool.retract("workers");

    const junctura::Requirement requirement = pool.require("name=gap", "name=gaps");
    pool.offer(named("gap"), std::string("lost"));
    pool.withdraw_all("name=gap", "force");
    follow = pool.follow("", "requirement=gaps");
    while (follow.next().kind != JCT_GAP) {
    }
    EXPECT(follow.gap().objects == 1 && follow.gap().reason == "withdrawn");
    pool.retract("gaps");
}

static void lists_and_bundles(const Pool &pool) {
    pool.offer(named("l1"), std::string("1"));
    pool.offer(named("l2"), std::string("22"));
    junctura::List list = pool.list("name=l1/l2", "order_by=name");
    EXPECT(list.next() && list.bytes() == 1 && !std::strcmp(list.get("name"), "l1"));
    EXPECT(list.next() && std::strstr(list.key(), "name=l2") && !list.next() && !*list.key());

    const junctura::Bundle mine = pool.bundle();
    mine.offer(named("b1"), std::string("one"));
    mine.stage(mine.allocate<char>(3), named("b2"));
    junctura::Pipeline members = mine.pipeline();
    members.offer(named("b5"), std::string("three"));
    members.flush();
    EXPECT(mine.seal() == 3);
    const Attributes common{{"space", "bundled"}};
    const junctura::Bundle first = pool.bundle("run/step=6", "members=2", common);
    const junctura::Bundle second = pool.bundle("run/step=6", "members=2", common);
    first.offer(named("b3"), std::string("one"));
    EXPECT(code_of([&] { first.wait(0); }) == JCT_TIMEOUT);
    second.offer(named("b4"), std::string("two"));
    EXPECT(first.wait() == 2);
    const junctura::Bundle aborted = pool.bundle();
    aborted.abort();
    EXPECT(code_of([&] { aborted.seal(); }) != JCT_OK);
}

/* Two ranks have rows of 4 x 6 numbers; three want columns, in the order of Fortran. */
static void arrays(const Pool &pool) {
    static_assert(std::string_view(junctura::type_of<double>()) == "f8");
    static_assert(std::string_view(junctura::type_of<const std::uint16_t>()) == "u2");
    const Layout rows("shape=4x6 grid=2x1"), columns("shape=4x6 grid=1x3 order=F");
    EXPECT(rows.ranks() == 2 && rows.elements(1) == 12 && columns.extent(2, 1) == 2 && columns.start(2, 1) == 4);
    EXPECT(code_of([&] { columns.start(3, 0); }) == JCT_INVALID_ARGUMENT);
    EXPECT(code_of([] { Layout("shape=4x6 grid=2"); }) == JCT_INVALID_ARGUMENT);
    const Layout blocks({4, 6}, {{1, {0, 0}, {2, 6}}, {0, {2, 0}, {2, 6}}});
    EXPECT(blocks.ranks() == 2 && blocks.start(0, 0) == 2);
    EXPECT(code_of([] { Layout({4, 6}, {{0, {0}, {4}}}); }) == JCT_INVALID_ARGUMENT);

    const Attributes key = named("array"), run{{"space", "coupled"}}, step{{"name", "wind"}, {"step", "1"}};
    for (std::uint64_t rank = 0; rank < 2; rank++) {
        std::vector<double> piece(12);
        for (std::size_t i = 0; i < 12; i++)
            piece[i] = static_cast<double>(12 * rank + i);
        pool.offer_piece(rows, rank, key, piece, "retention=withdrawn");
        pool.exchange<double>(rows, rank, run, "retention=withdrawn").put(step, piece);
    }
    const std::vector<float> part = pool.demand_array<float>(key, columns, 1, 60);
    EXPECT(part == (std::vector<float>{2, 8, 14, 20, 3, 9, 15, 21}));
    junctura::Object held = pool.demand("name=array", 60);
    std::vector<float> taken(8);
    held.take(pool, columns, 1, taken);
    EXPECT(taken == part && held.version() > 0);
    held.give_back();
    const Attributes within = named("within");
    const junctura::Bundle bundle = pool.bundle("step", "members=1");
    for (std::uint64_t rank = 0; rank < 2; rank++) {
        EXPECT(code_of([&] { pool.demand("name=within", 0); }) == JCT_NOT_FOUND);
        bundle.offer_piece(rows, rank, within, std::vector<float>(12, static_cast<float>(rank)), "schema=free");
    }
    EXPECT(bundle.wait(60) == 3);
    EXPECT((pool.demand_array<float>(within, columns, 0, 60) == std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1}));
    EXPECT(code_of([&] { pool.bundle().offer_piece(rows, 0, within, std::vector<float>(12)); }) == JCT_INVALID_ARGUMENT);
    std::array<double, 8> mine{};
    const auto exchange = pool.exchange<double>(columns, 2, run);
    exchange.get(step, mine, 60);
    EXPECT(mine[0] == 4 && mine[7] == 23);
    exchange.get(step, junctura::Span<double>(mine.data(), mine.size()));
    std::array<double, 7> too_short{};
    EXPECT(code_of([&] { exchange.get(step, too_short); }) == JCT_INVALID_ARGUMENT);
}

static void events(const Pool &pool) {
    junctura::Subscription events = pool.subscribe("name=event", "kinds=offered");
    EXPECT(code_of([&] { events.next(0); }) == JCT_TIMEOUT);
    pool.offer(named("event"), std::string("payload"));
    EXPECT(events.next() == "offered" && events.value("name") == "event" && events.number("bytes") == 7);
    EXPECT(!events.text("key").empty() && events.text("bundle").empty());
    EXPECT(code_of([&] { events.number("members"); }) == JCT_NOT_FOUND);
    events.close();
    EXPECT(code_of([&] { events.next(0); }) == JCT_INVALID_ARGUMENT);
}

static void closing(Pool pool) {
    pool.offer(named("held"), std::string("held"));
    const Object object = pool.demand("name=held");
    junctura::Follow follow = pool.follow("");
    pool.close();
    EXPECT(object.text() == "held" && code_of([&] { follow.next(); }) == JCT_CLOSED);
    EXPECT(pool.url().empty() && code_of([&] { pool.sync(); }) == JCT_INVALID_ARGUMENT);
}

int main(int count, char **words) {
    Pool pool(count > 1 ? words[1] : "", "name=functions,timeout=1min,schema=(free,mars)");
    errors(pool);
    attributes(pool);
    offers(pool);
    pipelines(pool);
    waits(pool);
    follows(pool);
    lists_and_bundles(pool);
    arrays(pool);
    events(pool);
    closing(std::move(pool));
    std::puts("done");
    return 0;
}
