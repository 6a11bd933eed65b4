/* A restart: what comes while a consumer is away is kept for it, under a name. */
#include "../forecast.hpp"

/* A life of the consumer: a connection of its own, as a process of its own would have. */
static void live(const std::string &url, const char *which) {
    const junctura::Pool pool(url, "name=archive");
    junctura::Follow fields = pool.join("archive", "until_live");
    while (junctura::Object field = fields.next_object())
        std::cout << which << ": " << field.text() << '\n';
}

static void story(const junctura::Pool &pool) {
    pool.require("param=t", "name=archive,group");
    offer_temperature(pool, 0);
    live(pool.url(), "first life");
    offer_temperature(pool, 6);
    offer_temperature(pool, 12);
    live(pool.url(), "second life");
    std::cout << "still owed: " << pool.retract("archive") << '\n';
}

int main(int count, char **words) { return in_pool(count, words, story); }
