/* Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order. */
#include "../forecast.hpp"

static void story(const junctura::Pool &pool) {
    junctura::Pending wanted = pool.begin_demand("param=t, levelist=500, step=6");
    std::cout << "asked for: param=t, levelist=500, step=6\n";

    offer_temperature(pool, 0);
    offer_temperature(pool, 6);

    std::cout << "got: " << wanted.take().text() << '\n';
}

int main(int count, char **words) { return in_pool(count, words, story); }
