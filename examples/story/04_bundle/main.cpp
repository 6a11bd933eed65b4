/* A bundle: fields that belong together become visible together, or not at all. */
#include "../forecast.hpp"

static int visible(const junctura::Pool &pool) {
    junctura::List list = pool.list("step=6");
    int found = 0;
    while (list.next())
        found++;
    return found;
}

static void story(const junctura::Pool &pool) {
    /* Two producers know the bundle by its path; either may come first. */
    const junctura::Bundle first = pool.bundle("run/step=6", "members=2");
    first.offer(forecast("t", 6), std::string("temperature"));
    std::cout << "one of two is staged, " << visible(pool) << " to be seen\n";

    const junctura::Bundle second = pool.bundle("run/step=6", "members=2");
    second.offer(forecast("u", 6), std::string("wind"));
    first.wait();
    std::cout << "two of two, " << visible(pool) << " to be seen\n";
}

int main(int count, char **words) { return in_pool(count, words, story); }
