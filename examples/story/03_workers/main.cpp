/* Workers: the members of a group share what matches; each field goes to one of them. */
#include "../forecast.hpp"

#include <array>
#include <thread>

constexpr int STEPS = 5;
using Counts = std::array<int, STEPS>;

/* Takes fields until the group is owed nothing any more, and counts each. */
static void work(const junctura::Pool &pool, Counts &done) {
    junctura::Follow fields = pool.join("workers", "until_live");
    /* Each is done when it is released; Object::give_back would give it to another worker. */
    while (junctura::Object field = fields.next_object())
        done[static_cast<std::size_t>(std::stoi(field.get("step")) / 6)]++;
}

static void story(const junctura::Pool &pool) {
    /* From now on what matches is kept for the group, though nobody is there yet. */
    pool.require("param=t", "name=workers,group");
    for (int step = 0; step < STEPS; step++)
        offer_temperature(pool, 6 * step);

    Counts first{}, second{};
    std::thread one([&] { work(pool, first); }), other([&] { work(pool, second); });
    one.join();
    other.join();
    for (std::size_t step = 0; step < STEPS; step++)
        std::cout << "step " << 6 * step << ": done " << first[step] + second[step] << " time\n";
    pool.retract("workers");
}

int main(int count, char **words) { return in_pool(count, words, story); }
