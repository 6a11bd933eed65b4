/* Times of the CF conventions. */
#define _GNU_SOURCE
#include "cf_time.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

double cf_time_unit(const char *unit) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1},       {"sec", 1},      {"second", 1},  {"min", 60},    {"minute", 60},
                 {"h", 3600},    {"hr", 3600},    {"hour", 3600}, {"d", 86400},   {"day", 86400},
                 {"ms", 0.001},  {"msec", 0.001}, {"millisecond", 0.001},         {"week", 604800}};
    size_t letters = strlen(unit);
    for (size_t at = 0; at < sizeof units / sizeof *units; at++) {
        size_t whole = strlen(units[at].name);
        bool is_plural = letters == whole + 1 && tolower((unsigned char)unit[whole]) == 's';
        if ((letters == whole || is_plural) && strncasecmp(unit, units[at].name, whole) == 0) return units[at].seconds;
    }
    return 0;
}

bool cf_time_is_gregorian(const char *calendar) {
    static const char *const names[] = {"", "standard", "gregorian", "proleptic_gregorian"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (strcasecmp(calendar, names[at]) == 0) return true;
    return false;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. */
static int64_t days_of(int64_t year, int month, int day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Reads an offset from UTC: nothing, Z, UTC, or hours and minutes. */
static bool read_zone(const char *text, double *seconds) {
    int hours = 0, minutes = 0, used = 0;
    char sign = '+';
    *seconds = 0;
    while (isspace((unsigned char)*text)) text++;
    if (!*text || strcasecmp(text, "z") == 0 || strcasecmp(text, "utc") == 0 || strcasecmp(text, "gmt") == 0) return true;
    if (sscanf(text, "%c%2d%n", &sign, &hours, &used) < 2 || (sign != '+' && sign != '-')) return false;
    text += used;
    if (*text == ':') text++;
    if (*text && (sscanf(text, "%2d%n", &minutes, &used) < 1 || text[used])) return false;
    *seconds = (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
    return true;
}

bool cf_time_read(const char *units, CfTime *time) {
    char unit[32];
    int year, month, day, hour = 0, minute = 0, used = 0, more = 0;
    double second = 0, zone;
    if (sscanf(units, "%31s since %d-%d-%d%n", unit, &year, &month, &day, &used) < 4 || used == 0) return false;
    time->seconds_in_unit = cf_time_unit(unit);
    if (time->seconds_in_unit == 0 || month < 1 || month > 12 || day < 1 || day > 31) return false;
    const char *rest = units + used;
    if (*rest == 'T') rest++;
    if (sscanf(rest, "%d:%d%n", &hour, &minute, &more) >= 2) {
        rest += more;
        if (*rest == ':' && sscanf(rest, ":%lf%n", &second, &more) >= 1) rest += more;
    }
    if (!read_zone(rest, &zone)) return false;
    time->base = (double)days_of(year, month, day) * 86400 + hour * 3600.0 + minute * 60.0 + second - zone;
    return true;
}

bool cf_time_write(double seconds, const char *format, char *text, size_t room) {
    time_t whole = (time_t)floor(seconds + 0.5);
    struct tm parts;
    if (!gmtime_r(&whole, &parts)) return false;
    return strftime(text, room, format, &parts) > 0;
}
