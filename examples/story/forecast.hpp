/* What the stories in C++ share: the attributes of a field, and what to do about an error. */
#ifndef FORECAST_HPP
#define FORECAST_HPP

#include <junctura.hpp>

#include <iostream>
#include <string>

/* The attributes of a field of one forecast. */
inline junctura::Attributes forecast(const std::string &param, int step) {
    junctura::Attributes field{{"class", "od"}, {"stream", "oper"}, {"date", "2026-11-20"},
                               {"time", "12"},  {"type", "fc"},     {"levtype", "pl"}};
    field.set("levelist", 500).set("step", step).set("param", param);
    return field;
}

/* Offers the temperature of a step. */
inline void offer_temperature(const junctura::Pool &pool, int step) {
    pool.offer(forecast("t", step), "temperature of step " + std::to_string(step));
}

/* Opens the pool that an argument names, or a private one, and runs a story in it. */
template <typename Story> int in_pool(int count, char **words, Story story) {
    try {
        const junctura::Pool pool(count > 1 ? words[1] : "");
        story(pool);
        return 0;
    } catch (const junctura::Error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

#endif
