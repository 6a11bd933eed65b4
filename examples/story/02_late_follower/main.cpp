/* A late follower: what was there before it came, and what comes after, are one stream without a gap. */
#include "../forecast.hpp"

static void story(const junctura::Pool &pool) {
    offer_temperature(pool, 0);
    offer_temperature(pool, 6);

    junctura::Follow fields = pool.follow("param=t, step=0/to/240/by/6");
    for (int existing = 0; existing < 2; existing++)
        std::cout << "there: " << fields.next_object().text() << '\n';
    offer_temperature(pool, 12);
    std::cout << "comes: " << fields.next_object().text() << '\n';
}

int main(int count, char **words) { return in_pool(count, words, story); }
